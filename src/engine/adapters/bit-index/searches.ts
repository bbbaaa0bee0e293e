/**
 * Running searches of the bit index, and what each question (query vector) needs in memory: the dimensions to compare,
 * its components and its candidates.
 */

import { signBits } from '../../store/vector-encoding.ts';
import type { Question } from '../following-index/followed-vectors.ts';
import type { Codes } from './codes.ts';
import { rankDimensions, wholeComponents } from './dimensions.ts';
import {
  BATCH_COLUMNS,
  MAX_BATCHES,
  CANDIDATE_BYTES,
  MAX_CANDIDATES,
  chosenOf,
  columnOf,
  COMPONENT_BITS,
  QUESTIONS_AT_ONCE,
  SEGMENT_ROWS,
} from './kernels.ts';
import { countRows, type Rows } from './rows.ts';

/** The rows and counts that a search uses, at one snapshot. */
export interface Matrix {
  readonly codes: Codes;
  readonly rows: Rows;
  /** How evenly vectors are distributed on both sides of zero, by dimension, 0..1: the result of `spreadsOf`. */
  readonly spreads: Float32Array;
}

/**
 * A search for the vectors nearest to one question. Its candidates are in the memory of the index (`Codes.memory`), by
 * ascending row; a table gives their number at each distance. Addresses are byte offsets in that memory.
 */
export interface Search {
  readonly question: Question;
  /** The question's components, rounded to whole numbers from -31 to 31 (`MAX_COMPONENT`). */
  readonly components: Int8Array;
  /** Greatest number of candidates that the first pass gives to the second (`candidatesWanted`). */
  readonly wanted: number;
  /**
   * Address of the question's choice: the start value of the sums, then the list of the columns (one for each
   * dimension) that the first pass compares.
   */
  readonly choice: number;
  /** Number of batches of 16 columns that the first pass compares. */
  readonly batches: number;
  /**
   * Number of batches whose clear bits (0) are counted, since the question's components there are positive; they come
   * before the batches whose set bits (1) are counted.
   */
  readonly clearBatches: number;
  /** Address of the table with the number of candidates at each distance. */
  readonly counts: number;
  /** Address of the first candidate. */
  readonly start: number;
  /** Address after the last candidate. */
  end: number;
  /**
   * Rows at this distance or farther do not become candidates. In the first pass over all rows, a distance is the
   * number of chosen dimensions in which the signs of row and question differ.
   */
  bound: number;
}

/**
 * Number of batches of 16 dimensions that the first pass compares, by purpose. They are the dimensions that distinguish
 * best: where the question's component is large and vectors are on both sides of zero. The best eighth of all
 * dimensions has half of the information that distinguishes vectors. Of 150,000 texts embedded offline, all but 0.5 %
 * of the ten nearest to a question were among the 4,096 that differ least in 96 dimensions; with a third of all
 * dimensions in no order, 16,384 were needed. Links lead to near vectors and need fewer dimensions: of 188 links, two
 * were missed with 48 dimensions, and two with 96.
 */
const BATCHES_OF = { rank: MAX_BATCHES, link: MAX_BATCHES / 2 } as const;
/**
 * Number of candidates that the first pass gives to the second, by purpose: at least `least`, or `share` of all rows if
 * that is more.
 */
const CANDIDATES = { rank: { least: 4_096, share: 1 / 96 }, link: { least: 256, share: 1 / 1024 } } as const;
/** Least number of candidates that the first pass gives to the second for each vector that the search must return. */
const CANDIDATES_EACH = 8;
/** Greatest number of candidates that the second pass compares, whatever the other limits say. */
const MAX_SECOND_PASS = 32_768;

/** Greatest absolute value of a question's component after rounding to a whole number. */
const MAX_COMPONENT = 2 ** (COMPONENT_BITS - 1) - 1;

/**
 * Returns the greatest number of candidates that the first pass gives to the second, from the question's purpose, its
 * `k` and the number of all rows.
 */
export function candidatesWanted(rows: Rows, { purpose, k }: Question): number {
  const { least, share } = CANDIDATES[purpose];
  return Math.min(MAX_SECOND_PASS, Math.max(least, CANDIDATES_EACH * k, Math.ceil(share * countRows(rows, undefined))));
}

/**
 * Prepares searches for the first of `questions`, in order: as many as fit in memory together, at least one and at most
 * 16. Searches that were prepared earlier are no longer valid, as the new ones overwrite them in memory.
 */
export function beginSearches({ codes, rows, spreads }: Matrix, questions: readonly Question[]): Search[] {
  const { layout } = codes;
  const searches: Search[] = [];
  let start = layout.candidates;
  for (const question of questions.slice(0, QUESTIONS_AT_ONCE)) {
    const place = searches.length;
    const components = wholeComponents(question.embedding, MAX_COMPONENT);
    const wanted = candidatesWanted(rows, question);
    const room = 2 * wanted + SEGMENT_ROWS;
    if (place > 0 && start + room * CANDIDATE_BYTES > layout.candidates + MAX_CANDIDATES * CANDIDATE_BYTES) break;
    const batches = BATCHES_OF[question.purpose];
    const ranked = rankDimensions(question.embedding, spreads);
    const { choice, clearBatches, chosen } = putChoice(codes, question.embedding, { ranked, batches, place });
    const counts = layout.counts + place * layout.countsBytes;
    codes.views().bytes.fill(0, counts, counts + layout.countsBytes);
    searches.push({
      question,
      components,
      wanted,
      batches,
      choice,
      clearBatches,
      start,
      end: start,
      bound: chosen + 1,
      counts,
    });
    start += room * CANDIDATE_BYTES;
  }
  codes.noteUse(start);
  return searches;
}

/**
 * Chooses the dimensions of a question's first pass and writes their columns into its choice. Dimensions with positive
 * and with negative components fill separate batches, in about the proportion that they have among the best dimensions.
 * If there are too few dimensions of one sign, its batches are filled with columns that count nothing.
 * @param ranked the dimensions, the best first
 * @param place index of the question among those that are searched for together
 * @returns the address of the choice, the number of batches whose clear bits are counted, and the number of dimensions
 *   chosen
 */
function putChoice(
  { layout, memory }: Codes,
  embedding: Float32Array,
  { ranked, batches, place }: { readonly ranked: Uint16Array; readonly batches: number; readonly place: number },
): { choice: number; clearBatches: number; chosen: number } {
  const choice = layout.choices + place * layout.choiceBytes;
  const end = batches * BATCH_COLUMNS;
  let above = 0;
  for (let at = 0; at < Math.min(end, ranked.length); at += 1) above += Number(embedding[ranked[at]!]! > 0);
  const clearBatches = Math.min(batches - 1, Math.max(1, Math.round(above / BATCH_COLUMNS)));
  const clearEnd = clearBatches * BATCH_COLUMNS;
  const columns = chosenOf(memory, choice).fill(layout.ones, 0, clearEnd).fill(layout.zeros, clearEnd);
  let [clear, set] = [0, clearEnd];
  for (let at = 0; at < ranked.length && (clear < clearEnd || set < end); at += 1) {
    const dimension = ranked[at]!;
    if (embedding[dimension]! < 0) {
      if (set < end) columns[set++] = columnOf(layout, dimension);
    } else if (clear < clearEnd) columns[clear++] = columnOf(layout, dimension);
  }
  return { choice, clearBatches, chosen: clear + set - clearEnd };
}

/** Writes the sign bits of a question to `layout.query`, where `measure` reads them. */
export function putQuery({ layout, memory }: Codes, embedding: Float32Array): void {
  new Uint8Array(memory.buffer, layout.query, layout.codeBytes).set(signBits(embedding));
}

/** Writes the rounded components of a question, bit by bit, to `layout.components`, where `estimate` reads them. */
export function putComponents({ layout, memory }: Codes, components: Int8Array): void {
  const { codeBytes } = layout;
  const bits = new Uint8Array(memory.buffer, layout.components, COMPONENT_BITS * codeBytes);
  for (let at = 0; at < codeBytes; at += 1) {
    for (let bit = 0; bit < COMPONENT_BITS; bit += 1) {
      let byte = 0;
      for (let place = 0; place < 8; place += 1) byte |= ((components[8 * at + place]! >> bit) & 1) << place;
      bits[bit * codeBytes + at] = byte;
    }
  }
}

export function countCandidates({ start, end }: Search): number {
  return (end - start) / CANDIDATE_BYTES;
}

/**
 * Keeps only the nearest `wanted` candidates; of equally near ones the oldest. Lowers `bound` accordingly. Does nothing
 * if there are at most `wanted`.
 */
export function dropFarthest({ layout, memory, kernels }: Codes, search: Search): void {
  const { wanted } = search;
  if (countCandidates(search) <= wanted) return;
  const counts = new Uint32Array(memory.buffer, search.counts, layout.countsBytes / 4);
  let [limit, below] = [0, 0];
  while (below + counts[limit]! < wanted) below += counts[limit++]!;
  search.end = kernels.keep(search.start, search.end, limit, wanted - below);
  counts[limit] = wanted - below;
  counts.fill(0, limit + 1);
  // Rows that are read later are newer: at the distance `limit` they cannot replace a candidate.
  search.bound = limit;
}
