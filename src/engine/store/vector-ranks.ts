import { assert } from '../errors.ts';
import type { CompiledFilter } from './filter.ts';
import type { Store } from './open-store.ts';
import { createRowReader, type RowReader } from './ranking-rows.ts';
import { compareInt5, compareParts, encodedLength } from './vector-encoding.ts';
import { STORED_BYTES } from './vector-parts.ts';
import { formOf, type VectorSpace } from './vectors.ts';

/** How near a memory is to the query: its nearest window (part of at most 512 tokens of its text) and the cosine. */
export interface VectorRank {
  readonly memoryNo: number;
  /** Index of the window of the memory's text that is nearest to the query, from 0. */
  readonly window: number;
  /** Cosine of the query and this window, -1..1. */
  readonly similarity: number;
}

/** A search with a query's vector in one vector space. */
export interface VectorScan {
  readonly space: VectorSpace;
  /** Vector of the query, with the dimensions of the space. */
  readonly embedding: Float32Array;
  /** Greatest number of memories that are returned as the nearest. */
  readonly limit: number;
}

/** Result of comparing a query with memories. */
export interface VectorRanks {
  /** The nearest memories, at most `limit`, nearest first; ties by ascending number. */
  readonly nearest: readonly VectorRank[];
  /** Every memory that was compared, once with its nearest window, in no certain order. */
  readonly compared: readonly VectorRank[];
}

/**
 * Ranks memories by the exact cosine of the query and their nearest windows. The memories must have passed the filter
 * before. Those without vectors in the space are left out.
 * @param vectorNos numbers of all vectors of these memories, if they are known; may include vectors of other memories,
 *   which are ignored
 */
export function rankVectorsOf(
  store: Store,
  scan: VectorScan,
  memoryNos: readonly number[],
  vectorNos?: readonly number[],
): VectorRanks {
  const compared =
    vectorNos === undefined
      ? compareWindows(store, scan, `v.memory = wanted.value AND v.sector = ''`, memoryNos)
      : amongOnly(memoryNos, compareWindows(store, scan, 'v.vector_no = wanted.value', vectorNos));
  if (compared.length <= scan.limit) return { nearest: compared.toSorted(byNearness), compared };
  // Sorting all of them would take as long as comparing a fifth of them, so only the nearest are sorted.
  const least = Float64Array.from(compared, ({ similarity }) => similarity)
    .sort()
    .at(-scan.limit)!;
  const near = compared.filter(({ similarity }) => similarity >= least);
  return { nearest: near.sort(byNearness).slice(0, scan.limit), compared };
}

function amongOnly(memoryNos: readonly number[], ranks: readonly VectorRank[]): readonly VectorRank[] {
  const wanted = new Set(memoryNos);
  return ranks.filter(({ memoryNo }) => wanted.has(memoryNo));
}

/**
 * Ranks the candidates that a vector index found by the exact cosine of their stored vectors.
 * @param vectorNos numbers of the candidates; vectors of other spaces, mean vectors, and deleted vectors are ignored
 * @param rows applies the filter, and caches the rows of the memories that pass
 * @returns the nearest memories that pass the filter, each with its nearest window among the candidates, nearest first;
 *   at most `scan.limit`
 */
export function rankVectors(
  store: Store,
  scan: VectorScan,
  vectorNos: readonly number[],
  filter: CompiledFilter,
  rows: RowReader = createRowReader(store),
): VectorRank[] {
  const ranks = compareWindows(store, scan, 'v.vector_no = wanted.value', vectorNos);
  return rows.firstPassing(filter, ranks.sort(byNearness), scan.limit);
}

function byNearness(a: VectorRank, b: VectorRank): number {
  return b.similarity - a.similarity || a.memoryNo - b.memoryNo || a.window - b.window;
}

/** Greatest number of numbers (of memories or of vectors, by `condition`) that one SQL statement gets. */
const COMPARED_AT_ONCE = 1_000;

/**
 * Finds the nearest window of each memory, among the windows that the SQL `condition` with the values `wanted` selects.
 * The result has no certain order.
 */
function compareWindows(store: Store, scan: VectorScan, condition: string, wanted: readonly number[]): VectorRank[] {
  const compare = scan.space.encoding === 'int5' ? inCode(store, scan, condition) : inParts(store, scan, condition);
  const best = new Map<number, VectorRank>();
  for (let at = 0; at < wanted.length; at += COMPARED_AT_ONCE) {
    for (const rank of compare(wanted.slice(at, at + COMPARED_AT_ONCE))) {
      const other = best.get(rank.memoryNo);
      if (other === undefined || byNearness(rank, other) < 0) best.set(rank.memoryNo, rank);
    }
  }
  return [...best.values()];
}

type Compare = (wanted: readonly number[]) => VectorRank[];

/**
 * Reads the windows of memories or vectors, which are given by their numbers; the SQL condition says which of the two
 * the numbers are. Mean vectors are left out.
 */
type ReadWindows = (wanted: readonly number[]) => readonly StoredWindow[];

interface StoredWindow {
  readonly memoryNo: number;
  readonly window: number;
  readonly precision: number;
  readonly bytes: Buffer;
  /** Index of the first byte of the window's vector in `bytes`. */
  readonly start: number;
}

interface WindowReading {
  readonly modelNo: number;
  /** Whether the vectors may differ in precision, and lie in parts. */
  readonly isInParts: boolean;
  readonly condition: string;
  readonly lengthOf: (precision: number) => number;
}

/**
 * Makes a function that reads windows. From a file they come as one blob, since a blob for each vector costs twice as
 * much as the comparison. A database sends a row for each, since the blob, and its digits, would cost it more than all
 * else: it gets and gives back memory beyond some kilobytes each time.
 */
function readWindows(store: Store, { modelNo, isInParts, condition, lengthOf }: WindowReading): ReadWindows {
  const stored = isInParts ? STORED_BYTES : 'v.embedding';
  const from = `FROM json_each(?) AS wanted CROSS JOIN vectors v ON ${condition}
    WHERE v.model_no = ? AND v.window_no >= 0`;
  if (store.ahead !== null) {
    const select = store.prepare(`SELECT v.memory, v.window_no, v.precision, ${stored} ${from}`).raw();
    return (wanted) => {
      const rows = select.all(JSON.stringify(wanted), modelNo) as [number, number, number, Buffer][];
      return rows.map(([memoryNo, window, precision, bytes]) => {
        assert(bytes.length === lengthOf(precision), 'a stored vector of another length');
        return { memoryNo, window, precision, bytes, start: 0 };
      });
    };
  }
  const select = store
    .prepare(
      `SELECT json_group_array(v.memory), json_group_array(v.window_no),
         ${isInParts ? 'json_group_array(v.precision)' : `'[]'`}, CAST(group_concat(${stored}, '') AS BLOB) ${from}`,
    )
    .raw();
  return (wanted) => {
    const row = select.get(JSON.stringify(wanted), modelNo) as [string, string, string, Buffer | null];
    const [memoryNos, windowNos, precisions] = row.slice(0, 3).map((list) => JSON.parse(list as string) as number[]);
    const bytes = row[3] ?? Buffer.alloc(0);
    let end = 0;
    const windows = memoryNos!.map((memoryNo, place) => {
      const [precision, start] = [precisions![place] ?? 0, end];
      end += lengthOf(precision);
      return { memoryNo, window: windowNos![place]!, precision, bytes, start };
    });
    assert(bytes.length === end, 'stored vectors of another length');
    return windows;
  };
}

/** Makes a function that compares the query with stored vectors of a provider, whose precisions may differ. */
function inParts(store: Store, { space, embedding }: VectorScan, condition: string): Compare {
  const { encoding, dimensions, modelNo } = space;
  assert(encoding === 'float32', `vectors in ${encoding} have no parts`);
  const cosineOf = compareParts(embedding);
  const precisionOf = (precision: number) => formOf({ encoding }, precision);
  const lengthOf = (precision: number) => encodedLength(precisionOf(precision), dimensions);
  const read = readWindows(store, { modelNo, isInParts: true, condition, lengthOf });
  return (wanted) =>
    read(wanted).map(({ memoryNo, window, precision, bytes, start }) => {
      return { memoryNo, window, similarity: cosineOf(bytes, start, precisionOf(precision)) };
    });
}

/** Cache of the compare functions by the query's vector, since each is used at several stages of a query. */
const comparisons = new WeakMap<Float32Array, ReturnType<typeof compareInt5>>();

function comparisonWith(embedding: Float32Array): ReturnType<typeof compareInt5> {
  let comparison = comparisons.get(embedding);
  if (comparison === undefined) comparisons.set(embedding, (comparison = compareInt5(embedding)));
  return comparison;
}

/** Makes a function that compares the query with stored int5 vectors. */
function inCode(store: Store, { space, embedding }: VectorScan, condition: string): Compare {
  const cosineOf = comparisonWith(embedding);
  const length = encodedLength(space.encoding, space.dimensions);
  const { modelNo } = space;
  const read = readWindows(store, { modelNo, isInParts: false, condition, lengthOf: () => length });
  return (wanted) =>
    read(wanted).map(({ memoryNo, window, bytes, start }) => {
      return { memoryNo, window, similarity: cosineOf(bytes, start) };
    });
}
