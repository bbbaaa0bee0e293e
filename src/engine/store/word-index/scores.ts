import type { Totals } from './structure.ts';
import type { Weighing } from './cursors.ts';

/** Parameter k1 of BM25, as in FTS5: how quickly further occurrences of a word add less. */
const K1 = 1.2;
/** Parameter b of BM25, as in FTS5: how much the score of long rows is lowered. */
const B = 0.75;
/** Least rarity (inverse document frequency) of a word, as in FTS5: that of a word in half of all rows or more. */
const MIN_RARITY = 1e-6;

/**
 * Share by which upper bounds of sums are raised, to be safe from rounding errors. It is far too small to let further
 * rows pass.
 */
export const ROUNDING = 1e-9;

/**
 * Returns the inverse document frequency of a word or phrase as in FTS5: log((rows without it + 0.5) / (rows with it +
 * 0.5)), at least 1e-6.
 * @param frequency number of rows with the word or phrase
 * @param rows number of all rows
 */
export function rarityOf(frequency: number, rows: number): number {
  return Math.max(MIN_RARITY, Math.log((rows - frequency + 0.5) / (frequency + 0.5)));
}

/**
 * Returns the upper bound of what a word or phrase adds to the BM25 of a row: its rarity (inverse document frequency)
 * times (k1 + 1). The actual amount is this bound times the saturated frequency of the word in the row, 0..1.
 * @param frequency number of rows with the word or phrase
 * @param rows number of all rows
 */
export function mostAdded(frequency: number, rows: number): number {
  return rarityOf(frequency, rows) * (K1 + 1);
}

/**
 * Returns the inputs of the BM25 formula that do not depend on the word.
 * @param weights one weight for each of TEXT_COLUMNS
 * @param lengths number of terms of each row, by row number
 */
export function weighingOf(weights: readonly number[], lengths: Uint32Array, { rows, terms }: Totals): Weighing {
  const addendByLength = (K1 * B * rows) / terms;
  return { weights: Float64Array.from(weights), lengths, addend: K1 * (1 - B), addendByLength };
}
