/**
 * Finds the standing queries (stored queries that are compared with each new memory) whose vectors are near the vector
 * of a memory, by the signs of the dimensions. The queries are grouped by user, so that a memory is compared only with
 * those of its own user and those of all users.
 */

import type { PreparedQuery } from './standing-index.ts';

/** A standing query with its binary code: the sign bits of its vector. */
interface PlacedQuery {
  readonly query: PreparedQuery;
  /** Sign bits of the query's vector, one for each dimension, as `signBits` orders them. */
  readonly code: Uint8Array;
}

/** A standing query with the Hamming distance of its code from a memory's code. */
interface Neighbour {
  readonly query: PreparedQuery;
  /** Number of sign bits in which the codes of query and memory differ. */
  readonly distance: number;
}

/** Finds the standing queries whose vectors are near a memory's vector. */
export interface StandingNeighbours {
  /**
   * Lists the queries of a user, and of all users, that are near a memory: at most 32 (`MAX_NEIGHBOURS`), nearest
   * first.
   * @param codes sign bits of the memory's vectors, one code for each window of its text; the nearest code counts
   * @param reachOf returns the greatest number of bits in which a query's code may differ from the memory's; below 0 if
   *   no vector is near enough for the query. Its result must be equal for queries with equal `userId`, `minScore` and
   *   `forms`, since it is called for one query of each such group
   */
  near(codes: readonly Uint8Array[], userId: string, reachOf: (query: PreparedQuery) => number): PreparedQuery[];
  /** Counts the queries of a user and of all users, with which `near` compares each code of a memory. */
  countFor(userId: string): number;
  /** The queries that have a code, by their number (`queryNo`). */
  readonly queries: ReadonlyMap<number, PreparedQuery>;
  /** Adds a query with its code, in place of the one with the same number. */
  place(placed: PlacedQuery): void;
  /** Removes the query with this number; does nothing if there is none. */
  remove(queryNo: number): void;
}

/**
 * Greatest number of queries that a memory is compared with because of its vector alone. Each full comparison takes
 * some 0.05 ms.
 */
const MAX_NEIGHBOURS = 32;
const WORD_BITS = 32;

/** Queries of one user, or of all users, for which one greatest distance applies (equal `minScore` and `forms`). */
interface Group {
  readonly queries: PreparedQuery[];
  /** The codes (sign bits of the vectors) of the queries, concatenated, with room for further ones. */
  codes: Uint32Array;
}

/** Creates an index of standing queries by their vectors. A query of 768 dimensions takes some 100 bytes. */
export function createStandingNeighbours(dimensions: number): StandingNeighbours {
  // `distanceOf` reads the 32-bit numbers of a code in pairs.
  const wordCount = 2 * Math.ceil(dimensions / (2 * WORD_BITS));
  const byUser = new Map<string | null, Map<string, Group>>();
  const queries = new Map<number, PreparedQuery>();
  const remove = (queryNo: number) => {
    const query = queries.get(queryNo);
    if (query === undefined) return;
    queries.delete(queryNo);
    const groups = byUser.get(query.userId)!;
    const group = groups.get(groupKeyOf(query))!;
    takeOut(group, group.queries.indexOf(query), wordCount);
    if (group.queries.length === 0) groups.delete(groupKeyOf(query));
    if (groups.size === 0) byUser.delete(query.userId);
  };
  return {
    queries,
    remove,
    near(codes, userId, reachOf) {
      const found = new Map<PreparedQuery, Neighbour>();
      for (const owner of [null, userId]) {
        for (const group of byUser.get(owner)?.values() ?? []) {
          const reach = reachOf(group.queries[0]!);
          if (reach < 0) continue;
          for (const code of codes) collect(group, { code: wordsOfCode(code, wordCount), reach, found });
        }
      }
      return [...found.values()]
        .sort((a, b) => a.distance - b.distance || a.query.queryNo - b.query.queryNo)
        .slice(0, MAX_NEIGHBOURS)
        .map(({ query }) => query);
    },
    countFor(userId) {
      const groups = [null, userId].flatMap((owner) => [...(byUser.get(owner)?.values() ?? [])]);
      return groups.reduce((count, group) => count + group.queries.length, 0);
    },
    place({ query, code }) {
      remove(query.queryNo);
      queries.set(query.queryNo, query);
      const groups = byUser.get(query.userId) ?? new Map<string, Group>();
      byUser.set(query.userId, groups);
      const group = groups.get(groupKeyOf(query)) ?? { queries: [], codes: new Uint32Array() };
      groups.set(groupKeyOf(query), group);
      append(group, query, wordsOfCode(code, wordCount));
    },
  };
}

const groupKeyOf = ({ minScore, forms }: PreparedQuery) => `${minScore} ${forms}`;

function append(group: Group, query: PreparedQuery, code: Uint32Array): void {
  const start = group.queries.length * code.length;
  if (start === group.codes.length) {
    const wider = new Uint32Array(Math.max(code.length, 2 * start));
    wider.set(group.codes);
    group.codes = wider;
  }
  group.codes.set(code, start);
  group.queries.push(query);
}

/** Removes the query at a slot of a group; the last one takes its slot. */
function takeOut({ queries, codes }: Group, slot: number, wordCount: number): void {
  const last = queries.pop()!;
  if (slot === queries.length) return;
  queries[slot] = last;
  codes.copyWithin(slot * wordCount, queries.length * wordCount, (queries.length + 1) * wordCount);
}

/** Returns a binary code as 32-bit numbers. It is padded with zero bits to `wordCount` numbers. */
function wordsOfCode(code: Uint8Array, wordCount: number): Uint32Array {
  const bytes = new Uint8Array(4 * wordCount);
  bytes.set(code);
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
 * Greatest number of 32-bit numbers whose bits are counted before the counts, one in each byte of a number, could
 * overflow: 15 pairs, each of which adds at most 16 to a byte.
 */
const COUNTED_WORDS = 30;

/**
 * Returns the Hamming distance of a code and the code at `start` of `codes`. The bit counts of several numbers are
 * summed in the four bytes of one number, which takes half the time of counting each by itself.
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

/**
 * Number of standard deviations by which the number of differing bits may exceed its expected value (see `bitsWithin`).
 */
const DEVIATIONS = 3;

/**
 * Returns an upper limit of the number of sign bits in which the codes of two vectors with at least this cosine differ:
 * the expected number plus 3 standard deviations, which one pair in some 700 exceeds. Each bit differs with the
 * probability angle / π (Goemans and Williamson, JACM 1995).
 */
export function bitsWithin(cosine: number, dimensions: number): number {
  const share = Math.acos(Math.min(1, Math.max(-1, cosine))) / Math.PI;
  return Math.ceil(dimensions * share + DEVIATIONS * Math.sqrt(dimensions * share * (1 - share)));
}
