import type { Totals } from './structure.ts';
import type { Weighing } from './cursors.ts';

/** Parameter k1 of BM25 as in FTS5: how soon more occurrences of a word add little. */
const K1 = 1.2;
/** Parameter b of BM25 as in FTS5: how much long rows are set back. */
const B = 0.75;
/** Least rarity of a word, as in FTS5: that of a word in half of all rows or more. */
const MIN_RARITY = 1e-6;

/**
 * Upper bounds of sums are raised by this share, far more than what adding up rounds away and far less than what would
 * keep more rows.
 */
export const ROUNDING = 1e-9;

/**
 * Returns the inverse document frequency of a word or phrase as in FTS5: log((rows without it + 0.5) / (rows with it +
 * 0.5)), at least MIN_RARITY.
 * @param frequency number of rows with the word or phrase
 * @param rows number of all rows
 */
export function rarityOf(frequency: number, rows: number): number {
  return Math.max(MIN_RARITY, Math.log((rows - frequency + 0.5) / (frequency + 0.5)));
}

/**
 * Returns the most that a word or phrase can add to the BM25 of a row: rarity × (k1 + 1). What it really adds is this
 * times the saturated frequency of the word in the row, 0..1.
 */
export function mostAdded(frequency: number, rows: number): number {
  return rarityOf(frequency, rows) * (K1 + 1);
}

/** Makes what BM25 needs beside the occurrences of a word. */
export function weighingOf(weights: readonly number[], lengths: Uint32Array, { rows, terms }: Totals): Weighing {
  const addendByLength = (K1 * B * rows) / terms;
  return { weights: Float64Array.from(weights), lengths, addend: K1 * (1 - B), addendByLength };
}
