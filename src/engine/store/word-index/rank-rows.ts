/**
 * Ranks the rows of one partition (range of 131,072 row numbers) by BM25. One stretch (range of 4,096 rows) is scored
 * at a time, so that its sums stay in the processor's cache, and the best rows so far soon show which score a row needs
 * to be among the best. Words that together cannot give a row this score are looked up only in rows that other words
 * brought near it (MaxScore: Turtle and Flood, "Query evaluation: strategies and optimizations", 1995).
 */

import { type BestRows, putRow } from './best-rows.ts';
import { addedHere, addRows, BLOCK_BITS, type Cursor, NO_ROW, skipTo, type Sums, type Weighing } from './cursors.ts';
import { ROUNDING } from './scores.ts';

/** A word or phrase of a search, with its rows in one partition. */
export interface ScoredText {
  /** Upper bound of what this word or phrase can add to the score of a row. */
  readonly most: number;
  /**
   * Upper bound of what this word or phrase and all later ones of the search together can add to the score of a row.
   */
  readonly mostFrom: number;
  /** Cursors over the rows that have the word or phrase, one for each segment that has any. */
  readonly cursors: readonly Cursor[];
}

/**
 * Sorts the words and phrases of a search for scoring: the rarest first, equally rare ones by their text. As
 * floating-point sums depend on the order, a fixed order gives exactly equal scores however the index stores the words.
 */
export function inOrderOfSums(
  texts: readonly (Pick<ScoredText, 'most' | 'cursors'> & { readonly text: string })[],
): ScoredText[] {
  const ordered = [...texts].sort((a, b) => b.most - a.most || (a.text < b.text ? -1 : 1));
  return ordered.map(({ most, cursors }, place) => {
    const mostFrom = ordered.slice(place).reduce((sum, later) => sum + later.most, 0) * (1 + ROUNDING);
    return { most, mostFrom, cursors };
  });
}

/** Number of rows in a stretch, the range of rows that is scored at a time. */
const STRETCH = 2 ** 12;
const BLOCK_ROWS = 2 ** BLOCK_BITS;

/** Working memory of a search. It is reused, because allocating it takes time; only one search runs at a time. */
const sums: Sums = {
  start: 0,
  bm25: new Float64Array(STRETCH),
  isKnown: new Uint8Array(STRETCH),
  isUsed: new Uint8Array(STRETCH / BLOCK_ROWS),
};

/** The rows of a stretch that can still get among the best rows, ascending, with their sums of BM25. */
const contenders = { count: 0, rows: new Int32Array(STRETCH), bm25: new Float64Array(STRETCH) };

/**
 * Scores the rows of a partition, and adds those that may be among the best to `best`. BM25 is summed in the order of
 * `texts`, so that a row's score is the same to the last bit whichever rows and words are skipped.
 * @param texts as `inOrderOfSums` returns them; in this order most work can be skipped
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

/** Returns the lowest current row of the cursors of the first `leading` texts; NO_ROW if all have reached their end. */
function firstRow(texts: readonly ScoredText[], leading: number): number {
  let first = NO_ROW;
  for (let place = 0; place < leading; place += 1) {
    for (const { row } of texts[place]!.cursors) if (row < first) first = row;
  }
  return first;
}

/**
 * Fills `contenders` with the rows of the stretch whose sum plus `mostLeft` reaches `least`, and clears the sums.
 * @param mostLeft upper bound of what the remaining words can add
 * @param least score that a row needs to be among the best
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

/**
 * Removes the contenders whose sum plus `mostLeft`, the upper bound of what the remaining words can add, is below
 * `least`.
 */
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

/** Adds the BM25 of a word to the sums of those contenders that have the word. */
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
 * Scores some rows of a partition, and adds those that have at least one of the words to `best`.
 * @param memoryNos numbers of the rows, ascending
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
