/**
 * Finds the standing queries whose vectors are near the vector of a memory, by their sign bits. The queries are grouped
 * by user, so that a memory is compared only with those of its own user and those of all users.
 */

import type { PreparedQuery } from './standing-index.ts';

/** A standing query with the sign bits of its vector, for the index. */
export interface PlacedQuery {
  readonly query: PreparedQuery;
  /** Sign bits of the query's vector, one for each dimension, as `signBits` orders them. */
  readonly code: Uint8Array;
}

/** A standing query with its distance from a memory. */
interface Neighbour {
  readonly query: PreparedQuery;
  /** Number of sign bits in which query and memory differ. */
  readonly distance: number;
}

export interface StandingNeighbours {
  /**
   * Lists the queries of a user, and of all users, that are near a memory: at most 32 (`MAX_NEIGHBOURS`), nearest
   * first.
   * @param codes sign bits of the memory's vectors, one code for each window of its text; the nearest counts
   * @param reachOf returns the greatest number of bits in which a query may differ from the memory; below 0 if no
   *    vector is near enough for the query. Queries with equal `minScore` and `forms` must have an equal reach, since
   *    one of them is asked for all
   */
  near(codes: readonly Uint8Array[], userId: string, reachOf: (query: PreparedQuery) => number): PreparedQuery[];
}

/**
 * Greatest number of queries that a memory is compared with because of its vector alone. Each comparison takes some
 * 0.05 ms.
 */
const MAX_NEIGHBOURS = 32;
const WORD_BITS = 32;

/** The queries of one user, or of all users, that have an equal reach. */
interface Group {
  readonly queries: readonly PreparedQuery[];
  /** The codes of the queries, concatenated. */
  readonly codes: Uint32Array;
}

/** Creates the index. A query of 768 dimensions takes some 100 bytes. */
export function createStandingNeighbours(placed: readonly PlacedQuery[], dimensions: number): StandingNeighbours {
  // Words are counted in pairs.
  const wordCount = 2 * Math.ceil(dimensions / (2 * WORD_BITS));
  const byUser = new Map<string | null, readonly Group[]>();
  for (const [userId, own] of Map.groupBy(placed, ({ query }) => query.userId)) {
    const groups = Map.groupBy(own, ({ query: { minScore, forms } }) => `${minScore} ${forms}`);
    byUser.set(
      userId,
      [...groups.values()].map((members) => ({
        queries: members.map(({ query }) => query),
        codes: joined(
          members.map(({ code }) => code),
          wordCount,
        ),
      })),
    );
  }
  return {
    near(codes, userId, reachOf) {
      const found = new Map<PreparedQuery, Neighbour>();
      for (const owner of [null, userId]) {
        for (const group of byUser.get(owner) ?? []) {
          const reach = reachOf(group.queries[0]!);
          if (reach < 0) continue;
          for (const code of codes) collect(group, { code: joined([code], wordCount), reach, found });
        }
      }
      return [...found.values()]
        .sort((a, b) => a.distance - b.distance || a.query.queryNo - b.query.queryNo)
        .slice(0, MAX_NEIGHBOURS)
        .map(({ query }) => query);
    },
  };
}

/**
 * Concatenates codes as whole 32-bit numbers. The last number of each code is padded with zero bits.
 * @param wordCount number of 32-bit numbers of each code
 */
function joined(codes: readonly Uint8Array[], wordCount: number): Uint32Array {
  const bytes = new Uint8Array(4 * wordCount * codes.length);
  for (const [place, code] of codes.entries()) bytes.set(code, 4 * wordCount * place);
  return new Uint32Array(bytes.buffer);
}

function collect(
  { queries, codes }: Group,
  {
    code,
    reach,
    found,
  }: { readonly code: Uint32Array; readonly reach: number; readonly found: Map<PreparedQuery, Neighbour> },
): void {
  for (let slot = 0; slot < queries.length; slot += 1) {
    const distance = distanceOf(code, codes, slot * code.length);
    if (distance > reach) continue;
    const query = queries[slot]!;
    if (distance < (found.get(query)?.distance ?? Infinity)) found.set(query, { query, distance });
  }
}

/**
 * Greatest number of 32-bit numbers whose bits are counted in the four bytes of one number: 15 pairs, each of which
 * adds at most 16 to a byte.
 */
const COUNTED_WORDS = 30;

/**
 * Returns the number of bits in which a code differs from the one at `start` of `codes`. The counts of several numbers
 * are added up in the four bytes of one number, which takes half the time of counting each by itself.
 */
function distanceOf(code: Uint32Array, codes: Uint32Array, start: number): number {
  let distance = 0;
  for (let from = 0; from < code.length; from += COUNTED_WORDS) {
    const end = Math.min(code.length, from + COUNTED_WORDS);
    let bytes = 0;
    for (let place = from; place < end; place += 2) {
      let one = code[place]! ^ codes[start + place]!;
      let other = code[place + 1]! ^ codes[start + place + 1]!;
      one -= (one >>> 1) & 0x55555555;
      other -= (other >>> 1) & 0x55555555;
      const ofOne = (one & 0x33333333) + ((one >>> 2) & 0x33333333);
      const ofOther = (other & 0x33333333) + ((other >>> 2) & 0x33333333);
      const pair = (ofOne + ofOther) | 0;
      bytes = (bytes + (pair & 0x0f0f0f0f) + ((pair >>> 4) & 0x0f0f0f0f)) | 0;
    }
    distance += (bytes & 0xff) + ((bytes >>> 8) & 0xff) + ((bytes >>> 16) & 0xff) + (bytes >>> 24);
  }
  return distance;
}

/** Number of standard deviations by which the differing bits may exceed their expected number. */
const DEVIATIONS = 3;

/**
 * Returns the greatest number of sign bits in which the codes of two vectors of at least this cosine are expected to
 * differ. One pair in some 700 differs in more. Each bit differs with the probability angle / π (Goemans and
 * Williamson, JACM 1995).
 */
export function bitsWithin(cosine: number, dimensions: number): number {
  const share = Math.acos(Math.min(1, Math.max(-1, cosine))) / Math.PI;
  return Math.ceil(dimensions * share + DEVIATIONS * Math.sqrt(dimensions * share * (1 - share)));
}
