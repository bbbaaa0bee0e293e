import type { Contenders, Postings } from './postings.ts';
import type { Totals } from './segments.ts';

/** A row and its BM25: higher is better. */
export interface TextRank {
  readonly seq: number;
  readonly bm25: number;
}

/** BM25 as FTS5 has it: how soon more of the same word adds little, and how much long rows are set back. */
const K1 = 1.2;
const B = 0.75;
/** What a word says that half of all rows have. */
const RARITY_LEAST = 1e-6;

export function rarityOf(frequency: number, rows: number): number {
  return Math.max(RARITY_LEAST, Math.log((rows - frequency + 0.5) / (frequency + 0.5)));
}

/** However often a phrase stands in a row, it adds less than this. */
export function mostAdded(frequency: number, rows: number): number {
  return rarityOf(frequency, rows) * (K1 + 1);
}

/** The BM25 of every row that any of some phrases stands in, by number of row. */
export interface Scores {
  /** @param size above the number of every row */
  clear(size: number): void;
  /**
   * @param frequency the rows that the phrase stands in, of which some may have been left out
   * @param lengths how many tokens each row has, by its number
   */
  add(postings: Postings, frequency: number, lengths: Uint32Array, totals: Totals): void;
  /**
   * Rows that may be one of the `limit` best when at most `mostLeft` is added to each; undefined where that may be one that no phrase
   * stood in so far.
   */
  contenders(limit: number, mostLeft: number): Contenders | undefined;
  /** The best rows, ties by ascending number. */
  best(limit: number): TextRank[];
  /** The best of these. */
  bestOf(seqs: readonly number[], limit: number): TextRank[];
}

/** So many rows share a note of their highest BM25: of a hundred thousand that were scored, the best are found without a look at most. */
const BLOCK_BITS = 6;
const BLOCK_ROWS = 2 ** BLOCK_BITS;
const NONE = -1;

export function createScores(): Scores {
  let bm25 = new Float64Array(1_024);
  /** 1 for a row that any phrase stands in; of others `bm25` says nothing. A byte a row stays in the cache, where eight would not. */
  let isKnown = new Uint8Array(1_024);
  let highest = new Float64Array(1_024 / BLOCK_ROWS);
  let count = 0;

  const isWorse = (a: number, b: number) => bm25[a]! < bm25[b]! || (bm25[a]! === bm25[b]! && a > b);

  /** A heap of the best, its worst on top: few blocks have a row that gets past it. */
  function select(limit: number): number[] {
    const heap: number[] = [];
    const sink = (from: number) => {
      for (let at = from, child = 2 * at + 1; child < heap.length; at = child, child = 2 * at + 1) {
        if (child + 1 < heap.length && isWorse(heap[child + 1]!, heap[child]!)) child += 1;
        if (!isWorse(heap[child]!, heap[at]!)) return;
        [heap[at], heap[child]] = [heap[child]!, heap[at]!];
      }
    };
    let worst = 0;
    for (let block = 0; block < highest.length; block += 1) {
      if (highest[block]! < worst) continue;
      const end = Math.min(bm25.length, (block + 1) << BLOCK_BITS);
      for (let row = block << BLOCK_BITS; row < end; row += 1) {
        if (isKnown[row] === 0 || bm25[row]! < worst) continue;
        if (heap.length < limit) {
          heap.push(row);
          if (heap.length < limit) continue;
          for (let at = limit >> 1; at >= 0; at -= 1) sink(at);
        } else {
          if (!isWorse(heap[0]!, row)) continue;
          heap[0] = row;
          sink(0);
        }
        worst = bm25[heap[0]!]!;
      }
    }
    return heap;
  }

  const inOrder = (rows: number[]) =>
    rows.sort((a, b) => (isWorse(a, b) ? 1 : -1)).map((seq) => ({ seq, bm25: bm25[seq]! }));

  return {
    clear(size) {
      isKnown.fill(0);
      highest.fill(NONE);
      count = 0;
      if (bm25.length >= size) return;
      bm25 = new Float64Array(size);
      isKnown = new Uint8Array(size);
      highest = new Float64Array(Math.ceil(size / BLOCK_ROWS)).fill(NONE);
    },

    add({ count: added, seqs, frequencies }, frequencyOfAll, lengths, totals) {
      const rarity = rarityOf(frequencyOfAll, totals.rows) * (K1 + 1);
      const byLength = (K1 * B * totals.rows) / totals.tokens;
      for (let place = 0; place < added; place += 1) {
        const seq = seqs[place]!;
        const frequency = frequencies[place]!;
        let now = (rarity * frequency) / (frequency + K1 * (1 - B) + byLength * lengths[seq]!);
        if (isKnown[seq] === 1) now += bm25[seq]!;
        else {
          isKnown[seq] = 1;
          count += 1;
        }
        bm25[seq] = now;
        const block = seq >> BLOCK_BITS;
        if (now > highest[block]!) highest[block] = now;
      }
    },

    contenders(limit, mostLeft) {
      if (count < limit) return undefined;
      const least = bm25[select(limit)[0]!]! - mostLeft;
      return least < 0 ? undefined : { isKnown, bm25, least };
    },

    best: (limit) => inOrder(select(limit)),

    bestOf: (seqs, limit) => inOrder(seqs.filter((seq) => isKnown[seq] === 1)).slice(0, limit),
  };
}
