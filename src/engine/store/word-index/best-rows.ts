import type { TextRank } from './word-search.ts';

/** The best rows (by BM25) of those that were added with `putRow`, as a heap whose root is the worst of them. */
export interface BestRows {
  /** Number of rows in the heap. Only this many entries of the arrays are valid. */
  count: number;
  readonly memoryNos: Float64Array;
  readonly bm25: Float64Array;
  /**
   * BM25 that a further row needs to get into the heap; -1 until the heap is full. A row with exactly this BM25 gets in
   * only if its number is lower than that of the worst row.
   */
  least: number;
}

/** Makes an empty heap. @param limit greatest number of rows that it keeps */
export function createBestRows(limit: number): BestRows {
  return { count: 0, memoryNos: new Float64Array(limit), bm25: new Float64Array(limit), least: -1 };
}

/**
 * Adds a row to the heap; each row may be added only once. If the heap is full, the row replaces the worst row, or is
 * ignored if it is worse than all rows in the heap.
 */
export function putRow(best: BestRows, memoryNo: number, bm25: number): void {
  const limit = best.memoryNos.length;
  if (best.count < limit) {
    best.memoryNos[best.count] = memoryNo;
    best.bm25[best.count++] = bm25;
    if (best.count < limit) return;
    for (let at = limit >> 1; at >= 0; at -= 1) sink(best, at);
  } else {
    if (limit === 0 || bm25 < best.bm25[0]! || (bm25 === best.bm25[0]! && memoryNo > best.memoryNos[0]!)) return;
    best.memoryNos[0] = memoryNo;
    best.bm25[0] = bm25;
    sink(best, 0);
  }
  best.least = best.bm25[0]!;
}

/** Lists the rows of a heap, highest BM25 first; ties by ascending number. */
export function rowsInOrder({ count, memoryNos, bm25 }: BestRows): TextRank[] {
  return Array.from({ length: count }, (_, at) => ({ memoryNo: memoryNos[at]!, bm25: bm25[at]! })).sort(
    (a, b) => b.bm25 - a.bm25 || a.memoryNo - b.memoryNo,
  );
}

/** Moves an entry of the heap down until none of its children is worse. */
function sink(best: BestRows, from: number): void {
  const { count, memoryNos, bm25 } = best;
  const [memoryNo, sum] = [memoryNos[from]!, bm25[from]!];
  let at = from;
  for (let child = 2 * at + 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && isWorse(best, child + 1, bm25[child]!, memoryNos[child]!)) child += 1;
    if (!isWorse(best, child, sum, memoryNo)) break;
    bm25[at] = bm25[child]!;
    memoryNos[at] = memoryNos[child]!;
    at = child;
  }
  bm25[at] = sum;
  memoryNos[at] = memoryNo;
}

/**
 * Tells whether the row at an index of the heap is worse than another row: lower BM25, or a higher number with the same
 * BM25.
 */
function isWorse({ bm25, memoryNos }: BestRows, place: number, sum: number, memoryNo: number): boolean {
  return bm25[place]! < sum || (bm25[place]! === sum && memoryNos[place]! > memoryNo);
}
