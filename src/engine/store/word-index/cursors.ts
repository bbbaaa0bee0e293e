/**
 * Reads doclists (the rows that have a term) row by row: the rows in ascending order, and the frequency of the term in
 * each.
 */

import type { Doclist } from './doclists.ts';
import { PARTITION_ROWS } from './terms.ts';

/** Value of `Cursor.row` after the last row of the doclist. It is greater than every row number within a partition. */
export const NO_ROW = 2 ** 29;

/** Position of a reader in a doclist. */
export interface Cursor extends Doclist {
  /** Number of the first row of the partition, a range of 131,072 row numbers. */
  readonly base: number;
  /** Current row, as its number minus `base`, even if the row was deleted; NO_ROW after the last row. */
  row: number;
  /** Offset after the number of the current row; the size of the row's position list begins there. */
  at: number;
  /**
   * Index in `restarts` of the first restart after the current row. A restart is a row whose number is stored in full.
   */
  restart: number;
}

/** Makes a cursor at the first row of a doclist; its row is NO_ROW if the doclist is empty. */
export function openCursor(list: Doclist): Cursor {
  const { bytes, from, end, restarts, partition, isDeleted } = list;
  const base = partition * PARTITION_ROWS;
  const cursor = { bytes, from, end, restarts, partition, isDeleted, base, row: NO_ROW, at: from, restart: 0 };
  if (from < end) restartAt(cursor, 0);
  return cursor;
}

/**
 * Moves a cursor to a row whose number is stored in full.
 * @param restart index of that row in `restarts`
 */
function restartAt(cursor: Cursor, restart: number): void {
  const { bytes, restarts } = cursor;
  let at = restarts[restart]!;
  let byte: number;
  let number = 0;
  while ((byte = bytes[at++]!) > 127) number = number * 128 + byte - 128;
  cursor.row = number * 128 + byte - cursor.base;
  cursor.at = at;
  cursor.restart = restart + 1;
}

/**
 * Moves a cursor forward to the first row that is not below `target`. Whole pages are skipped by their first rows, and
 * rows within a page by the sizes of their position lists.
 * @param target row number minus `base`
 */
export function skipTo(cursor: Cursor, target: number): void {
  if (cursor.row >= target) return;
  const { bytes, end, restarts } = cursor;
  let last = cursor.restart;
  while (last < restarts.length && rowAt(cursor, restarts[last]!) <= target) last += 1;
  if (last > cursor.restart) restartAt(cursor, last - 1);
  let { at, row, restart } = cursor;
  let nextRestart = restart < restarts.length ? restarts[restart]! : end;
  while (row < target) {
    let byte: number;
    let number = 0;
    while ((byte = bytes[at++]!) > 127) number = number * 128 + byte - 128;
    // The lowest bit marks a deletion, which only a table with content has.
    at += (number * 128 + byte) >>> 1;
    if (at >= end) {
      row = NO_ROW;
      break;
    }
    if (at === nextRestart) {
      row = 0 - cursor.base;
      restart += 1;
      nextRestart = restart < restarts.length ? restarts[restart]! : end;
    }
    number = 0;
    while ((byte = bytes[at++]!) > 127) number = number * 128 + byte - 128;
    row += number * 128 + byte;
  }
  cursor.at = at;
  cursor.row = row;
  cursor.restart = restart;
}

function rowAt({ bytes, base }: Cursor, offset: number): number {
  let at = offset;
  let byte: number;
  let number = 0;
  while ((byte = bytes[at++]!) > 127) number = number * 128 + byte - 128;
  return number * 128 + byte - base;
}

/** Marker byte in a position list: the next byte is the number of the column of the positions that follow. */
export const COLUMN = 1;

/**
 * Binary logarithm of the number of rows in a block. Rows are scored in ranges, called stretches, which consist of
 * blocks.
 */
export const BLOCK_BITS = 6;

/**
 * BM25 sums of the rows of a stretch, a range of consecutive rows of one partition. BM25 is added word by word. The
 * index of a row in the arrays is the row minus `start`; `isUsed` has one entry for each block of 64 rows.
 */
export interface Sums {
  /** First row of the stretch, as its number minus that of the partition's first row. */
  start: number;
  /** Sum of each row; 0 for a row without any of the words. */
  readonly bm25: Float64Array;
  /** 1 for each row that has at least one of the words, else 0. */
  readonly isKnown: Uint8Array;
  /** 1 for each block in which a row may have one of the words, else 0. */
  readonly isUsed: Uint8Array;
}

/** Inputs of the BM25 formula that do not depend on the word. */
export interface Weighing {
  /** One weight for each of TEXT_COLUMNS. It is what an occurrence in that column adds to the frequency of a word. */
  readonly weights: Float64Array;
  /** Number of terms (length) of each row, by row number. */
  readonly lengths: Uint32Array;
  /** Part of the denominator of BM25 that is the same for all rows. */
  readonly addend: number;
  /** Part of the denominator of BM25 that is multiplied by the row's number of terms. */
  readonly addendByLength: number;
}

/**
 * Adds the BM25 of a word to the sums of the rows from the cursor's current one to before `stop`, and moves the cursor
 * to its first row from `stop` on. Deleted rows are skipped. This is the inner loop of every search.
 * @param stop a row number relative to `cursor.base`, as `cursor.row` is; at most the end of the stretch of `sums`
 * @param most factor of the word in each sum (`mostAdded`): what it adds to a row comes near to it, from below, as the
 *   word becomes more frequent in the row
 */
export function addRows(cursor: Cursor, stop: number, most: number, weighing: Weighing, sums: Sums): void {
  const { bytes, end, restarts, base, isDeleted } = cursor;
  const { weights, lengths, addend, addendByLength } = weighing;
  const { start, bm25, isKnown, isUsed } = sums;
  let { at, row, restart } = cursor;
  let nextRestart = restart < restarts.length ? restarts[restart]! : end;
  while (row < stop) {
    let byte: number;
    let number = 0;
    while ((byte = bytes[at++]!) > 127) number = number * 128 + byte - 128;
    // The lowest bit marks a deletion, which only a table with content has.
    const last = at + ((number * 128 + byte) >>> 1);
    if (isDeleted === undefined || !isDeleted(base + row)) {
      const frequency = frequencyIn(bytes, at, last, weights);
      const added = (most * frequency) / (frequency + addend + addendByLength * lengths[base + row]!);
      // Whether a row has a sum already is no question here: every second answer would be a surprise to the processor.
      const place = row - start;
      bm25[place]! += added;
      isKnown[place] = 1;
      isUsed[place >> BLOCK_BITS] = 1;
    }
    at = last;
    if (at >= end) {
      row = NO_ROW;
      break;
    }
    if (at === nextRestart) {
      row = 0 - base;
      restart += 1;
      nextRestart = restart < restarts.length ? restarts[restart]! : end;
    }
    number = 0;
    while ((byte = bytes[at++]!) > 127) number = number * 128 + byte - 128;
    row += number * 128 + byte;
  }
  cursor.at = at;
  cursor.row = row;
  cursor.restart = restart;
}

/**
 * Returns what a word adds to the BM25 of the cursor's current row, as in `addRows`; undefined if the row was deleted.
 */
export function addedHere(cursor: Cursor, most: number, weighing: Weighing): number | undefined {
  const memoryNo = cursor.base + cursor.row;
  if (cursor.isDeleted?.(memoryNo) === true) return undefined;
  const frequency = frequencyHere(cursor, weighing.weights);
  return (most * frequency) / (frequency + weighing.addend + weighing.addendByLength * weighing.lengths[memoryNo]!);
}

/**
 * Returns the frequency of the term in the cursor's current row: each occurrence counts as the weight of its column.
 */
function frequencyHere({ bytes, at: sizeAt }: Cursor, weights: Float64Array): number {
  let at = sizeAt;
  let byte: number;
  let number = 0;
  while ((byte = bytes[at++]!) > 127) number = number * 128 + byte - 128;
  return frequencyIn(bytes, at, at + ((number * 128 + byte) >>> 1), weights);
}

/**
 * Returns the frequency of a term from its position list: each position counts as the weight of its column. A varint
 * has bit 7 set in every byte but its last. Most lists have one position, either in the first column or after the
 * marker of another column, and need no loop.
 * @param from offset in `bytes` at which the list begins
 * @param end offset at which the list ends
 */
function frequencyIn(bytes: Uint8Array, from: number, end: number, weights: Float64Array): number {
  const size = end - from;
  if (size === 1) return weights[0]!;
  if (size === 3 && bytes[from] === COLUMN) return weights[bytes[from + 1]!]!;
  let weight = weights[0]!;
  let frequency = 0;
  for (let at = from; at < end;) {
    let byte = bytes[at++]!;
    if (byte === COLUMN) {
      weight = weights[bytes[at++]!]!;
      continue;
    }
    while (byte > 127) byte = bytes[at++]!;
    frequency += weight;
  }
  return frequency;
}
