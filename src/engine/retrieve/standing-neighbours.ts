/**
 * Finds the standing queries whose vectors are near that of a memory, by their sign bits. The queries stand by their
 * users, so that a memory is compared with those that may be its own only.
 */
import type { PreparedQuery } from './standing-index.ts';

/** A standing query with the sign bits of its vector. */
export interface PlacedQuery {
  readonly query: PreparedQuery;
  /** One sign bit for each dimension, as `signBits` orders them. */
  readonly code: Uint8Array;
}

/** A query, and how near it is. */
interface Neighbour {
  readonly query: PreparedQuery;
  /** Number of sign bits that differ. */
  readonly distance: number;
}

export interface StandingNeighbours {
  /**
   * Lists the queries of a user, and of all users, that are near a memory: the nearest `MAX_NEIGHBOURS`.
   * @param codes sign bits of the memory's vectors; a long memory has several
   * @param reachOf returns the most bits in which a query may differ; below 0 if no vector is near enough for it
   */
  near(codes: readonly Uint8Array[], userId: string, reachOf: (query: PreparedQuery) => number): PreparedQuery[];
}

/** Most queries that a memory is compared with for its vector alone. Each takes some 0.05 ms. */
const MAX_NEIGHBOURS = 32;
const WORD_BITS = 32;

/** Queries of one user, or of all, that have the same reach. */
interface Group {
  readonly queries: PreparedQuery[];
  readonly codes: Uint32Array[];
}

/** Makes the index. A query of 768 dimensions takes some 200 bytes. @param dimensions a multiple of 32 */
export function createStandingNeighbours(placed: Iterable<PlacedQuery>, dimensions: number): StandingNeighbours {
  const wordCount = Math.ceil(dimensions / WORD_BITS);
  const byUser = new Map<string | null, Map<string, Group>>();
  for (const { query, code } of placed) {
    const groups = byUser.get(query.userId) ?? new Map<string, Group>();
    byUser.set(query.userId, groups);
    const key = `${query.minScore} ${query.knowsForms}`;
    const group = groups.get(key) ?? { queries: [], codes: [] };
    groups.set(key, group);
    group.queries.push(query);
    group.codes.push(wordsOf(code, wordCount));
  }
  return {
    near(codes, userId, reachOf) {
      const found = new Map<PreparedQuery, Neighbour>();
      const own = codes.map((code) => wordsOf(code, wordCount));
      for (const owner of [null, userId]) {
        for (const group of byUser.get(owner)?.values() ?? []) {
          const reach = reachOf(group.queries[0]!);
          if (reach < 0) continue;
          for (const code of own) collect(group, { code, reach, found });
        }
      }
      return [...found.values()]
        .sort((a, b) => a.distance - b.distance || a.query.queryNo - b.query.queryNo)
        .slice(0, MAX_NEIGHBOURS)
        .map(({ query }) => query);
    },
  };
}

function collect(
  { queries, codes }: Group,
  {
    code,
    reach,
    found,
  }: { readonly code: Uint32Array; readonly reach: number; readonly found: Map<PreparedQuery, Neighbour> },
): void {
  for (let slot = 0; slot < codes.length; slot += 1) {
    const distance = distanceOf(codes[slot]!, code, reach);
    if (distance > reach) continue;
    const query = queries[slot]!;
    if (distance < (found.get(query)?.distance ?? Infinity)) found.set(query, { query, distance });
  }
}

/** Counts the bits in which two codes differ; it may stop once there are more than `most`. */
function distanceOf(a: Uint32Array, b: Uint32Array, most: number): number {
  let distance = 0;
  for (let place = 0; place < a.length && distance <= most; place += 1) {
    let bits = a[place]! ^ b[place]!;
    bits -= (bits >>> 1) & 0x55555555;
    bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
    distance += Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
  }
  return distance;
}

/** Copies a code as whole numbers of 32 bits, the last one filled up with zeros. */
function wordsOf(code: Uint8Array, wordCount: number): Uint32Array {
  const bytes = new Uint8Array(4 * wordCount);
  bytes.set(code);
  return new Uint32Array(bytes.buffer);
}

/** Standard deviations by which the distance of two codes may exceed what their cosine lets expect. */
const DEVIATIONS = 3;

/**
 * Most sign bits in which the codes of two vectors differ whose cosine is at least this, but for one pair in some 700:
 * each bit differs with the probability angle / π (Goemans and Williamson, JACM 1995).
 */
export function bitsWithin(cosine: number, dimensions: number): number {
  const share = Math.acos(Math.min(1, Math.max(-1, cosine))) / Math.PI;
  return Math.ceil(dimensions * share + DEVIATIONS * Math.sqrt(dimensions * share * (1 - share)));
}
