import type { Contenders, Postings } from './postings.ts';
import type { Totals } from './structure.ts';
import type { TextRank, WordScores } from './word-search.ts';

/** Parameter k1 of BM25 as in FTS5: how soon more occurrences of a word add little. */
const K1 = 1.2;
/** Parameter b of BM25 as in FTS5: how much long rows are set back. */
const B = 0.75;
/** Least rarity of a word, as in FTS5: that of a word in half of all rows or more. */
const MIN_RARITY = 1e-6;

/**
 * Returns the inverse document frequency of a word or phrase as in FTS5: log((rows without it + 0.5) / (rows with it +
 * 0.5)), at least MIN_RARITY.
 * @param frequency number of rows with the word or phrase
 * @param rows number of all rows
 */
export function rarityOf(frequency: number, rows: number): number {
  return Math.max(MIN_RARITY, Math.log((rows - frequency + 0.5) / (frequency + 0.5)));
}

/** Returns an upper bound of what a phrase that `frequency` of `rows` rows contain adds to the BM25 of a row. */
export function mostAdded(frequency: number, rows: number): number {
  return rarityOf(frequency, rows) * (K1 + 1);
}

/** Sums of BM25 by row number. Phrases are added one after another; rows that contain none of them have no score. */
export interface Scores extends WordScores {
  /** Removes all scores. Call it first. @param size above every row number that will be added */
  clear(size: number): void;
  /**
   * Adds the BM25 of one phrase to the scores of the rows that contain it.
   * @param frequency number of rows with the phrase, even if `postings` leaves some of them out
   * @param lengths number of terms of each row, by row number
   */
  add(postings: Postings, frequency: number, lengths: Uint32Array, totals: Totals): void;
  /**
   * Finds the rows that may be among the `limit` best if at most `mostLeft` is still added to each. The result shows
   * the scores themselves, so it is valid until the next `add` or `clear`.
   * @returns undefined if a row that no phrase has scored so far may be among the best
   */
  contenders(limit: number, mostLeft: number): Contenders | undefined;
}

/**
 * Rows in a block, as a power of two. The highest BM25 of each block is noted, so that the best of a hundred thousand
 * scored rows are found without a look at most rows.
 */
const BLOCK_BITS = 6;
const BLOCK_ROWS = 2 ** BLOCK_BITS;
/** Highest BM25 of a block without scored rows. */
const NONE = -1;

/** Scores of rows, by row number. */
interface ScoreTable {
  bm25: Float64Array;
  /**
   * 1 for a row that any phrase scored; `bm25` is meaningless for other rows. One byte for each row stays in the cache,
   * where eight would not.
   */
  isKnown: Uint8Array;
  /** Highest BM25 of each block. */
  highest: Float64Array;
  /** Number of rows that any phrase scored. */
  count: number;
}

/** Makes an empty table of scores. It grows as needed and can be used again. */
export function createScores(): Scores {
  const table: ScoreTable = {
    bm25: new Float64Array(1_024),
    isKnown: new Uint8Array(1_024),
    highest: new Float64Array(1_024 / BLOCK_ROWS),
    count: 0,
  };
  const inOrder = (rows: number[]): TextRank[] => {
    const { bm25 } = table;
    return rows.sort((a, b) => (isWorse(bm25, a, b) ? 1 : -1)).map((memoryNo) => ({ memoryNo, bm25: bm25[memoryNo]! }));
  };
  return {
    clear: (size) => clearTable(table, size),
    add: (postings, frequency, lengths, totals) => addPostings(table, { postings, frequency, lengths, totals }),

    contenders(limit, mostLeft) {
      const { bm25, isKnown, count } = table;
      if (count < limit) return undefined;
      const least = bm25[selectBest(table, limit)[0]!]! - mostLeft;
      return least < 0 ? undefined : { isKnown, bm25, least };
    },

    best: (limit) => inOrder(selectBest(table, limit)),

    bestOf: (memoryNos, limit) =>
      inOrder(memoryNos.filter((memoryNo) => table.isKnown[memoryNo] === 1)).slice(0, limit),
  };
}

function clearTable(table: ScoreTable, size: number): void {
  table.isKnown.fill(0);
  table.highest.fill(NONE);
  table.count = 0;
  if (table.bm25.length >= size) return;
  table.bm25 = new Float64Array(size);
  table.isKnown = new Uint8Array(size);
  table.highest = new Float64Array(Math.ceil(size / BLOCK_ROWS)).fill(NONE);
}

interface Addition {
  readonly postings: Postings;
  readonly frequency: number;
  readonly lengths: Uint32Array;
  readonly totals: Totals;
}

function addPostings(table: ScoreTable, { postings, frequency: frequencyOfAll, lengths, totals }: Addition): void {
  const { bm25, isKnown, highest } = table;
  const { count: added, memoryNos, frequencies } = postings;
  const rarity = rarityOf(frequencyOfAll, totals.rows) * (K1 + 1);
  const byLength = (K1 * B * totals.rows) / totals.terms;
  let count = table.count;
  for (let place = 0; place < added; place += 1) {
    const memoryNo = memoryNos[place]!;
    const frequency = frequencies[place]!;
    let now = (rarity * frequency) / (frequency + K1 * (1 - B) + byLength * lengths[memoryNo]!);
    if (isKnown[memoryNo] === 1) now += bm25[memoryNo]!;
    else {
      isKnown[memoryNo] = 1;
      count += 1;
    }
    bm25[memoryNo] = now;
    const block = memoryNo >> BLOCK_BITS;
    if (now > highest[block]!) highest[block] = now;
  }
  table.count = count;
}

function isWorse(bm25: Float64Array, a: number, b: number): boolean {
  return bm25[a]! < bm25[b]! || (bm25[a]! === bm25[b]! && a > b);
}

/**
 * Selects at most `limit` best rows by a heap with the worst of them on top. Few blocks have a row that is better than
 * the worst.
 * @returns row numbers, unsorted; the first is the worst if there are `limit` of them
 */
function selectBest({ bm25, isKnown, highest }: ScoreTable, limit: number): number[] {
  const heap: number[] = [];
  let worst = 0;
  for (let block = 0; block < highest.length; block += 1) {
    if (highest[block]! < worst) continue;
    const end = Math.min(bm25.length, (block + 1) << BLOCK_BITS);
    for (let row = block << BLOCK_BITS; row < end; row += 1) {
      if (isKnown[row] === 0 || bm25[row]! < worst) continue;
      if (heap.length < limit) {
        heap.push(row);
        if (heap.length < limit) continue;
        for (let at = limit >> 1; at >= 0; at -= 1) sink(heap, bm25, at);
      } else {
        if (!isWorse(bm25, heap[0]!, row)) continue;
        heap[0] = row;
        sink(heap, bm25, 0);
      }
      worst = bm25[heap[0]!]!;
    }
  }
  return heap;
}

/** Moves a row of the heap down until no row below it is worse. */
function sink(heap: number[], bm25: Float64Array, from: number): void {
  for (let at = from, child = 2 * at + 1; child < heap.length; at = child, child = 2 * at + 1) {
    if (child + 1 < heap.length && isWorse(bm25, heap[child + 1]!, heap[child]!)) child += 1;
    if (!isWorse(bm25, heap[child]!, heap[at]!)) return;
    [heap[at], heap[child]] = [heap[child]!, heap[at]!];
  }
}
