import { signBits } from '../../store/vector-encoding.ts';
import type { Question } from '../following-index/following-index.ts';
import type { Codes } from './codes.ts';
import { rankDimensions, type Sides, wholeComponents } from './dimensions.ts';
import {
  BATCH_COLUMNS,
  BATCHES_MOST,
  CANDIDATE_BYTES,
  CANDIDATES_MOST,
  chosenOf,
  columnOf,
  COMPONENT_BITS,
  QUESTIONS_AT_ONCE,
  SEGMENT_ROWS,
} from './kernels.ts';
import { countRows, type Rows } from './rows.ts';

/** What questions need in memory while they are searched for: the dimensions they look at, their components, their candidates. */

/** All that a search works on. */
export interface Matrix {
  readonly codes: Codes;
  readonly rows: Rows;
  readonly sides: Sides;
}

/** A question on its way: candidates lie from `start` to `end`, in ascending order of row, and are counted by distance. */
export interface Search {
  readonly question: Question;
  readonly components: Int8Array;
  /** How many candidates go on. */
  readonly wanted: number;
  readonly choice: number;
  readonly batches: number;
  /** Of the batches, those of whose columns clear bits count; they come first. */
  readonly clearBatches: number;
  readonly counts: number;
  readonly start: number;
  end: number;
  /** What is as far off, or farther, is not among the nearest. */
  bound: number;
}

/**
 * Batches of dimensions that the first pass looks at, those that say most: where the question's component is large, and vectors are on both
 * sides of zero. In an eighth of them lies half of what tells vectors apart. Of 150,000 texts embedded offline, all but .5 % of the ten
 * nearest to a question were among the 4,096 that differ least in 96 dimensions; a third of all in no order left 16,384. Links are drawn to
 * what is near: of 188 two were missed with 48, as with 96.
 */
const BATCHES_OF = { rank: BATCHES_MOST, link: BATCHES_MOST / 2 } as const;
/** Rows that go on from the first pass to the second at least, and which share of all rows where that is more. */
const CANDIDATES = { rank: { least: 4_096, share: 1 / 96 }, link: { least: 256, share: 1 / 1024 } } as const;
/** And for each that is wanted in the end. */
const CANDIDATES_EACH = 8;
const CANDIDATES_UPMOST = 32_768;

const COMPONENT_MOST = 2 ** (COMPONENT_BITS - 1) - 1;

/** How many rows go on from the first pass to the second. */
export function candidatesWanted(rows: Rows, { purpose, k }: Question): number {
  const { least, share } = CANDIDATES[purpose];
  return Math.min(
    CANDIDATES_UPMOST,
    Math.max(least, CANDIDATES_EACH * k, Math.ceil(share * countRows(rows, undefined))),
  );
}

/** Begins as many of the questions, but at least one, as there is room for. */
export function beginSearches({ codes, rows, sides }: Matrix, questions: readonly Question[]): Search[] {
  const { layout } = codes;
  const searches: Search[] = [];
  let start = layout.candidates;
  for (const question of questions.slice(0, QUESTIONS_AT_ONCE)) {
    const place = searches.length;
    const components = wholeComponents(question.embedding, COMPONENT_MOST);
    const wanted = candidatesWanted(rows, question);
    const room = 2 * wanted + SEGMENT_ROWS;
    if (place > 0 && start + room * CANDIDATE_BYTES > layout.candidates + CANDIDATES_MOST * CANDIDATE_BYTES) break;
    const batches = BATCHES_OF[question.purpose];
    const ranked = rankDimensions(question.embedding, sides.spreads());
    const { choice, clearBatches, chosen } = putChoice(codes, question.embedding, { ranked, batches, place });
    const counts = layout.counts + place * layout.countsBytes;
    new Uint8Array(codes.memory.buffer, counts, layout.countsBytes).fill(0);
    searches.push({
      ...{ question, components, wanted, batches, choice, clearBatches, start, end: start, bound: chosen + 1 },
      counts,
    });
    start += room * CANDIDATE_BYTES;
  }
  codes.usedBefore = Math.max(codes.usedBefore, start);
  return searches;
}

/**
 * Chooses the dimensions of a question's first pass, by whole batches on either side of zero: as many above it as fit what says most, and
 * where a side has too few, columns that count nothing.
 * @param ranked the dimensions, those that say most first
 * @param place that of the question among those that are searched for together
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

/** Puts the sign bits of a question where whole codes are compared with them. */
export function putQuery({ layout, memory }: Codes, embedding: Float32Array): void {
  new Uint8Array(memory.buffer, layout.query, layout.codeBytes).set(signBits(embedding));
}

/** Puts the components of a question, bit by bit, where the last pass reads them. */
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

/** How many candidates a search has. */
export function countCandidates({ start, end }: Search): number {
  return (end - start) / CANDIDATE_BYTES;
}

/** Leaves the nearest candidates, as many as are wanted; of equally near ones the oldest. */
export function dropFarthest({ layout, memory, kernels }: Codes, search: Search): void {
  const { wanted } = search;
  if (countCandidates(search) <= wanted) return;
  const counts = new Uint32Array(memory.buffer, search.counts, layout.countsBytes / 4);
  let [limit, below] = [0, 0];
  while (below + counts[limit]! < wanted) below += counts[limit++]!;
  search.end = kernels.keep(search.start, search.end, limit, wanted - below);
  counts[limit] = wanted - below;
  counts.fill(0, limit + 1);
  // What comes later is no older.
  search.bound = limit;
}
