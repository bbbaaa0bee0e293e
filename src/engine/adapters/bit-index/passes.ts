/**
 * The two passes of a search in the bit index: the first over all rows or a list of rows, the second over the
 * candidates that the first finds.
 */

import type { Question } from '../following-index/followed-vectors.ts';
import { numberReader, segmentOf } from './codes.ts';
import { BUCKETS } from './dimensions.ts';
import { BATCH_BYTES, CANDIDATE_BYTES, OVERFLOW, SEGMENT_ROWS, STEP_ROWS, writeStart } from './kernels.ts';
import { labelOfScope } from './rows.ts';
import {
  beginSearches,
  countCandidates,
  dropFarthest,
  type Matrix,
  putComponents,
  putQuery,
  type Search,
} from './searches.ts';

/**
 * Number of rows in the first step of the first pass. After each step the greatest distance of candidates may become
 * smaller. Steps double in length up to the size of a segment.
 */
const FIRST_ROWS = 1_024;

/**
 * Runs the first pass over all rows: finds for each question the rows that differ least in the chosen dimensions, and
 * keeps at most `wanted` of them as candidates. When a step leaves at least twice that number, all but the nearest
 * `wanted` are dropped, and from then on rows are skipped that are no nearer than the farthest candidate left.
 * @param matrix columns of all its rows must have been made
 * @param searches all searches that one call of `beginSearches` returned
 */
export function scanColumns(matrix: Matrix, searches: readonly Search[]): void {
  const { codes, rows } = matrix;
  for (const { choice, bound } of searches) writeStart(codes.memory, choice, OVERFLOW - bound);
  for (let row = 0, next = FIRST_ROWS; row < rows.size; row = next, next = Math.min(2 * next, row + SEGMENT_ROWS)) {
    for (const search of searches) scanRows(matrix, search, { row, endRow: Math.min(next, rows.size) });
  }
  for (const search of searches) dropFarthest(codes, search);
}

/**
 * Runs the first pass of one question over the rows from `row` up to, but not including, `endRow`, all in one segment.
 */
function scanRows({ codes }: Matrix, search: Search, { row, endRow }: { row: number; endRow: number }): void {
  const { kernels, layout, memory } = codes;
  const segment = segmentOf(layout, row);
  const place = row % SEGMENT_ROWS;
  const [from, end] = [place / 8, (place + Math.ceil((endRow - row) / STEP_ROWS) * STEP_ROWS) / 8];
  const { batches, choice, clearBatches, bound } = search;
  kernels.addFirst(choice, segment, from, end);
  for (let batch = 1; batch < batches; batch += 1) {
    const add = batch < clearBatches ? kernels.addClear : kernels.addSet;
    add(choice + batch * BATCH_BYTES, segment, from, end);
  }
  const { mask, label } = labelOfScope(search.question);
  search.end = kernels.collect(
    ...([from, row - place, endRow, segment + layout.labels] as const),
    ...([mask, label, OVERFLOW - bound, search.counts, search.end] as const),
  );
  if (countCandidates(search) < 2 * search.wanted) return;
  dropFarthest(codes, search);
  writeStart(memory, choice, OVERFLOW - search.bound);
}

/**
 * Returns the numbers of the `k` vectors in a list of rows that are nearest to a question, nearest first; fewer if the
 * list has fewer. The first pass compares whole codes, since reading the columns of few rows takes longer. Searches
 * that began earlier are no longer valid.
 * @param list rows in ascending order, none of them removed; may be empty
 */
export function nearestAmong(matrix: Matrix, list: Uint32Array, question: Question): number[] {
  const { codes } = matrix;
  const { kernels, layout, memory } = codes;
  const [search] = beginSearches(matrix, [question]) as [Search];
  putQuery(codes, question.embedding);
  for (let at = 0; at < list.length; at += SEGMENT_ROWS) {
    const slice = list.subarray(at, at + SEGMENT_ROWS);
    const added = new Uint32Array(memory.buffer, search.end, 2 * slice.length);
    for (let place = 0; place < slice.length; place += 1) added[2 * place] = slice[place]!;
    const from = search.end;
    search.end += slice.length * CANDIDATE_BYTES;
    kernels.measure(from, search.end, layout.query, search.counts);
    if (countCandidates(search) >= 2 * search.wanted) dropFarthest(codes, search);
  }
  dropFarthest(codes, search);
  return nearestOf(matrix, search);
}

/**
 * Runs the second pass over the candidates of a search, whose distances it overwrites by estimates of similarity.
 * Returns the numbers of the `k` nearest vectors, nearest first; fewer if there are fewer candidates.
 */
export function nearestOf({ codes }: Matrix, search: Search): number[] {
  const { question, components, start } = search;
  const count = countCandidates(search);
  if (count === 0) return [];
  putComponents(codes, components);
  codes.kernels.estimate(start, search.end, codes.layout.components);
  const candidates = new Int32Array(codes.memory.buffer, start, 2 * count);
  const least = leastOfBest(candidates, question.k);
  // A key is the estimate and, in its low 32 bits, the row reversed, so that the oldest of equals is last in the sorted
  // array. To sort bare numbers takes a tenth of the time that a comparison function takes.
  const keys = new Float64Array(count);
  let kept = 0;
  for (let place = 0; place < count; place += 1) {
    const estimated = candidates[2 * place + 1]!;
    if (estimated >= least) keys[kept++] = (estimated + 1) * 2 ** 32 - 1 - candidates[2 * place]!;
  }
  const best = keys
    .subarray(0, kept)
    .sort()
    .subarray(Math.max(0, kept - question.k))
    .reverse();
  const vectorNoOf = numberReader(codes, 'vectorNos');
  return Array.from(best, (key) => vectorNoOf(2 ** 32 - 1 - (key - Math.floor(key / 2 ** 32) * 2 ** 32)));
}

/**
 * Returns a least estimate that at least the `k` best candidates reach, and few others; with fewer than `k` candidates,
 * all reach it. It avoids sorting all candidates, which would take as long as estimating them.
 * @param candidates pairs of a row and its estimate, at least one pair
 */
function leastOfBest(candidates: Int32Array, k: number): number {
  let [lowest, highest] = [Infinity, -Infinity];
  for (let at = 1; at < candidates.length; at += 2) {
    lowest = Math.min(lowest, candidates[at]!);
    highest = Math.max(highest, candidates[at]!);
  }
  const width = Math.ceil((highest - lowest + 1) / BUCKETS);
  const counts = new Uint32Array(BUCKETS);
  for (let at = 1; at < candidates.length; at += 2) counts[Math.floor((candidates[at]! - lowest) / width)]! += 1;
  let bucket = BUCKETS - 1;
  for (let reached = counts[bucket]!; reached < k && bucket > 0; reached += counts[bucket]!) bucket -= 1;
  return lowest + bucket * width;
}
