import type { Contenders, Postings } from './postings.ts';
import type { Totals } from './structure.ts';
import type { TextRank, WordScores } from './word-search.ts';

/** BM25 as FTS5 has it: how soon more of the same word adds little, and how much long rows are set back. */
const K1 = 1.2;
const B = 0.75;
/** The rarity of a word that half of all rows have. */
const RARITY_LEAST = 1e-6;

/** How much a word or phrase tells: the logarithm of how many rows lack it for each that has it, above 0. */
export function rarityOf(frequency: number, rows: number): number {
  return Math.max(RARITY_LEAST, Math.log((rows - frequency + 0.5) / (frequency + 0.5)));
}

/** An upper bound of what a phrase adds to a row, however often it stands there. */
export function mostAdded(frequency: number, rows: number): number {
  return rarityOf(frequency, rows) * (K1 + 1);
}

/** The BM25 of every row that any of some phrases stands in, by number of row. */
export interface Scores extends WordScores {
  /** @param size above the number of every row */
  clear(size: number): void;
  /**
   * Adds what one phrase gives to its rows.
   * @param frequency the rows that the phrase stands in, of which some may have been left out
   * @param lengths how many tokens each row has, by its number
   */
  add(postings: Postings, frequency: number, lengths: Uint32Array, totals: Totals): void;
  /**
   * Rows that may be one of the `limit` best when at most `mostLeft` is added to each; undefined where that may be one that no phrase
   * stood in so far.
   */
  contenders(limit: number, mostLeft: number): Contenders | undefined;
}

/**
 * Rows that share a note of their highest BM25, as a power of two: of a hundred thousand that were scored, the best are found without a look
 * at most.
 */
const BLOCK_BITS = 6;
const BLOCK_ROWS = 2 ** BLOCK_BITS;
const NONE = -1;

/** What is known of each row, by its number. */
interface ScoreTable {
  bm25: Float64Array;
  /** 1 for a row that any phrase stands in; of others `bm25` says nothing. A byte a row stays in the cache, where eight would not. */
  isKnown: Uint8Array;
  /** The highest BM25 of each block. */
  highest: Float64Array;
  /** Rows that any phrase stands in. */
  count: number;
}

/** Makes an empty table of scores, which grows as needed and is used again. */
export function createScores(): Scores {
  const table: ScoreTable = {
    bm25: new Float64Array(1_024),
    isKnown: new Uint8Array(1_024),
    highest: new Float64Array(1_024 / BLOCK_ROWS),
    count: 0,
  };
  const inOrder = (rows: number[]): TextRank[] => {
    const { bm25 } = table;
    return rows.sort((a, b) => (isWorse(bm25, a, b) ? 1 : -1)).map((seq) => ({ seq, bm25: bm25[seq]! }));
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

    bestOf: (seqs, limit) => inOrder(seqs.filter((seq) => table.isKnown[seq] === 1)).slice(0, limit),
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
  const { count: added, seqs, frequencies } = postings;
  const rarity = rarityOf(frequencyOfAll, totals.rows) * (K1 + 1);
  const byLength = (K1 * B * totals.rows) / totals.tokens;
  let known = table.count;
  for (let place = 0; place < added; place += 1) {
    const seq = seqs[place]!;
    const frequency = frequencies[place]!;
    let now = (rarity * frequency) / (frequency + K1 * (1 - B) + byLength * lengths[seq]!);
    if (isKnown[seq] === 1) now += bm25[seq]!;
    else {
      isKnown[seq] = 1;
      known += 1;
    }
    bm25[seq] = now;
    const block = seq >> BLOCK_BITS;
    if (now > highest[block]!) highest[block] = now;
  }
  table.count = known;
}

function isWorse(bm25: Float64Array, a: number, b: number): boolean {
  return bm25[a]! < bm25[b]! || (bm25[a]! === bm25[b]! && a > b);
}

/** The best rows as a heap with the worst of them on top: few blocks have a row that gets past it. */
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

/** Moves the row at a place of the heap down, until none below it is worse. */
function sink(heap: number[], bm25: Float64Array, from: number): void {
  for (let at = from, child = 2 * at + 1; child < heap.length; at = child, child = 2 * at + 1) {
    if (child + 1 < heap.length && isWorse(bm25, heap[child + 1]!, heap[child]!)) child += 1;
    if (!isWorse(bm25, heap[child]!, heap[at]!)) return;
    [heap[at], heap[child]] = [heap[child]!, heap[at]!];
  }
}
