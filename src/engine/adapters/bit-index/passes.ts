import type { Question } from '../following-index/following-index.ts';
import { addressOf, turnColumns } from './codes.ts';
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

/** The two passes of a search: over all rows, or over a list of them; and over what is left. */

/** Rows after which the first pass looks at how near candidates must be; then after as many again, and so on up to a segment. */
const FIRST_ROWS = 1_024;

/**
 * First pass over all rows: those that differ least in the chosen dimensions, for each question. Twice as many as are wanted come together
 * before those farther off are dropped, and what is as far off as these is passed over from then on.
 */
export function scanColumns(matrix: Matrix, searches: readonly Search[]): void {
  const { codes, rows } = matrix;
  turnColumns(codes, rows.size);
  for (const { choice, bound } of searches) writeStart(codes.memory, choice, OVERFLOW - bound);
  for (let row = 0, next = FIRST_ROWS; row < rows.size; row = next, next = Math.min(2 * next, row + SEGMENT_ROWS)) {
    for (const search of searches) scanRows(matrix, search, { row, endRow: Math.min(next, rows.size) });
  }
  for (const search of searches) dropFarthest(codes, search);
}

/** @param row the first of the rows, which are all of one segment */
function scanRows({ codes, rows }: Matrix, search: Search, { row, endRow }: { row: number; endRow: number }): void {
  const { kernels, layout, memory } = codes;
  const { segment, place } = addressOf(codes, row);
  const [from, end] = [place / 8, (place + Math.ceil((endRow - row) / STEP_ROWS) * STEP_ROWS) / 8];
  const { batches, choice, clearBatches, bound } = search;
  kernels.addFirst(choice, segment, from, end);
  for (let batch = 1; batch < batches; batch += 1) {
    const add = batch < clearBatches ? kernels.addClear : kernels.addSet;
    add(choice + batch * BATCH_BYTES, segment, from, end);
  }
  const { mask, label } = labelOfScope(rows, search.question);
  search.end = kernels.collect(
    ...([from, row - place, endRow, segment + layout.labels] as const),
    ...([mask, label, OVERFLOW - bound, search.counts, search.end] as const),
  );
  if (countCandidates(search) < 2 * search.wanted) return;
  dropFarthest(codes, search);
  writeStart(memory, choice, OVERFLOW - search.bound);
}

/**
 * The nearest of a list of rows: by whole codes, since to look at the columns of some takes longer.
 * @param list rows in ascending order
 */
export function nearestAmong(matrix: Matrix, list: Uint32Array, question: Question): number[] {
  const { codes } = matrix;
  const { kernels, layout, memory } = codes;
  const [search] = beginSearches(matrix, [question]) as [Search];
  putQuery(codes, question.embedding);
  for (let at = 0; at < list.length; at += SEGMENT_ROWS) {
    const some = list.subarray(at, at + SEGMENT_ROWS);
    const added = new Uint32Array(memory.buffer, search.end, 2 * some.length);
    for (let place = 0; place < some.length; place += 1) added[2 * place] = some[place]!;
    const from = search.end;
    search.end += some.length * CANDIDATE_BYTES;
    kernels.measure(from, search.end, layout.query, search.counts);
    if (countCandidates(search) >= 2 * search.wanted) dropFarthest(codes, search);
  }
  dropFarthest(codes, search);
  return nearestOf(matrix, search);
}

/** Second pass over candidates: the numbers of the `k` nearest, nearest first. */
export function nearestOf({ codes, rows }: Matrix, search: Search): number[] {
  const { question, components, start } = search;
  const count = countCandidates(search);
  if (count === 0) return [];
  putComponents(codes, components);
  codes.kernels.estimate(start, search.end, codes.layout.components);
  const candidates = new Int32Array(codes.memory.buffer, start, 2 * count);
  const least = leastOfBest(candidates, question.k);
  // Sorted as bare numbers, which takes a tenth of the time: by estimate, and of equal ones the oldest last.
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
  return Array.from(best, (key) => rows.vectorNos[2 ** 32 - 1 - (key - Math.floor(key / 2 ** 32) * 2 ** 32)]!);
}

/** What the `k` candidates of the highest estimates reach, and few others. To sort all of them takes as long as to estimate them. */
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
