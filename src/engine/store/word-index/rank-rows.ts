/**
 * Ranks the rows of one partition by their words. A stretch of rows at a time is scored, so that its sums stay in the
 * processor's cache and the best rows so far tell early what a row needs to be among the best. Words that together
 * cannot bring a row there are looked up only for rows that other words brought near (MaxScore: Turtle and Flood,
 * "Query evaluation: strategies and optimizations", 1995).
 */
import { type BestRows, putRow } from './best-rows.ts';
import { addedHere, addRows, BLOCK_BITS, type Cursor, NO_ROW, skipTo, type Sums, type Weighing } from './cursors.ts';

/** A word or phrase of a search, in one partition. */
export interface ScoredText {
  /** The most that it can add to a row. */
  readonly most: number;
  /** Upper bound of what it and all later texts can add to a row. */
  readonly mostFrom: number;
  /** Its rows, one cursor for each segment that has some. */
  readonly cursors: readonly Cursor[];
}

/** Rows in a stretch. */
const STRETCH = 2 ** 12;
const BLOCK_ROWS = 2 ** BLOCK_BITS;

/** Working memory of a search, kept since it takes time to allocate. Only one search runs at a time. */
const sums: Sums = {
  start: 0,
  bm25: new Float64Array(STRETCH),
  isKnown: new Uint8Array(STRETCH),
  isUsed: new Uint8Array(STRETCH / BLOCK_ROWS),
};

/** Rows that can still be among the best, ascending within their partition, with their sums. */
const contenders = { count: 0, rows: new Int32Array(STRETCH), bm25: new Float64Array(STRETCH) };

/**
 * Scores the rows of a partition and puts those that may be among the best into `best`. BM25 is added up in the order
 * of `texts`, so that sums are equal to the last digit whatever is left out.
 * @param texts rarest first, which leaves out most
 * @param base number of the first row of the partition
 */
export function rankRows(texts: readonly ScoredText[], base: number, weighing: Weighing, best: BestRows): void {
  for (;;) {
    // From this text on, words can lift no row among the best that has none of the earlier words.
    const late = texts.findIndex(({ mostFrom }) => mostFrom < best.least);
    const leading = late === -1 ? texts.length : late;
    sums.start = firstRow(texts, leading);
    if (sums.start === NO_ROW) return;
    const stop = sums.start + STRETCH;
    for (let place = 0; place < leading; place += 1) {
      const { cursors, most } = texts[place]!;
      for (const cursor of cursors) if (cursor.row < stop) addRows(cursor, stop, most, weighing, sums);
    }
    takeContenders(texts[leading]?.mostFrom ?? 0, best.least);
    for (let place = leading; place < texts.length && contenders.count > 0; place += 1) {
      const { cursors, most } = texts[place]!;
      for (const cursor of cursors) addToContenders(cursor, most, weighing);
      keepContenders(texts[place + 1]?.mostFrom ?? 0, best.least);
    }
    const { count, rows, bm25 } = contenders;
    for (let at = 0; at < count; at += 1) putRow(best, base + rows[at]!, bm25[at]!);
  }
}

/** The first row that any of the first `leading` texts still has. */
function firstRow(texts: readonly ScoredText[], leading: number): number {
  let first = NO_ROW;
  for (let place = 0; place < leading; place += 1) {
    for (const { row } of texts[place]!.cursors) if (row < first) first = row;
  }
  return first;
}

/**
 * Moves the rows that can reach `least` if `mostLeft` is added to them from the sums to the contenders, and clears the
 * sums.
 */
function takeContenders(mostLeft: number, least: number): void {
  const { start, bm25, isKnown, isUsed } = sums;
  let count = 0;
  for (let block = 0; block < isUsed.length; block += 1) {
    if (isUsed[block] === 0) continue;
    isUsed[block] = 0;
    const end = (block + 1) << BLOCK_BITS;
    for (let place = block << BLOCK_BITS; place < end; place += 1) {
      const sum = bm25[place]!;
      if (sum + mostLeft >= least && isKnown[place] === 1) {
        contenders.rows[count] = start + place;
        contenders.bm25[count++] = sum;
      }
      bm25[place] = 0;
      isKnown[place] = 0;
    }
  }
  contenders.count = count;
}

/** Leaves out the contenders that cannot reach `least` if at most `mostLeft` is added to them. */
function keepContenders(mostLeft: number, least: number): void {
  const { rows, bm25, count } = contenders;
  let kept = 0;
  for (let at = 0; at < count; at += 1) {
    const sum = bm25[at]!;
    if (sum + mostLeft < least) continue;
    rows[kept] = rows[at]!;
    bm25[kept++] = sum;
  }
  contenders.count = kept;
}

/** Adds to the contenders what a word adds to them. */
function addToContenders(cursor: Cursor, most: number, weighing: Weighing): void {
  const { rows, bm25, count } = contenders;
  if (cursor.row > rows[count - 1]!) return;
  for (let at = 0; at < count; at += 1) {
    const row = rows[at]!;
    if (cursor.row < row) skipTo(cursor, row);
    if (cursor.row === row) bm25[at]! += addedHere(cursor, most, weighing) ?? 0;
  }
}

/**
 * Scores some rows of a partition and puts those that have any of the words into `best`.
 * @param memoryNos rows of the partition, ascending
 */
export function rankRowsOf(
  texts: readonly ScoredText[],
  memoryNos: readonly number[],
  weighing: Weighing,
  best: BestRows,
): void {
  const found = new Array<number | undefined>(memoryNos.length);
  for (const { cursors, most } of texts) {
    for (const cursor of cursors) {
      for (let at = 0; at < memoryNos.length && cursor.row !== NO_ROW; at += 1) {
        const row = memoryNos[at]! - cursor.base;
        skipTo(cursor, row);
        const added = cursor.row === row ? addedHere(cursor, most, weighing) : undefined;
        if (added !== undefined) found[at] = added + (found[at] ?? 0);
      }
    }
  }
  for (const [at, bm25] of found.entries()) if (bm25 !== undefined) putRow(best, memoryNos[at]!, bm25);
}
