import type { Postings } from './postings.ts';
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
/** In place of the BM25 of a row that no phrase stands in: a word in a column without weight gives 0. */
const NONE = -1;

export function rarityOf(frequency: number, rows: number): number {
  return Math.max(RARITY_LEAST, Math.log((rows - frequency + 0.5) / (frequency + 0.5)));
}

/** The BM25 of every row that any of some phrases stands in, by number of row. */
export interface Scores {
  /** @param size above the number of every row */
  clear(size: number): void;
  /** @param lengths how many tokens each row has, by its number */
  add(postings: Postings, lengths: Uint32Array, totals: Totals): void;
  /** The best rows, ties by ascending number. */
  best(limit: number): TextRank[];
  /** The best of these. */
  bestOf(seqs: readonly number[], limit: number): TextRank[];
}

export function createScores(): Scores {
  let bm25 = new Float64Array(1_024).fill(NONE);
  let rows = new Uint32Array(1_024);
  let count = 0;

  const isWorse = (a: number, b: number) => bm25[a]! < bm25[b]! || (bm25[a]! === bm25[b]! && a > b);

  /** A heap of the best, its worst on top: of a hundred thousand rows few get past it. */
  function select(candidates: ArrayLike<number>, limit: number): TextRank[] {
    const heap: number[] = [];
    const sink = (from: number) => {
      for (let at = from, child = 2 * at + 1; child < heap.length; at = child, child = 2 * at + 1) {
        if (child + 1 < heap.length && isWorse(heap[child + 1]!, heap[child]!)) child += 1;
        if (!isWorse(heap[child]!, heap[at]!)) return;
        [heap[at], heap[child]] = [heap[child]!, heap[at]!];
      }
    };
    // By place and against a number: an iterator, or two look-ups a row, would take as long again.
    const values = bm25;
    let worst = -Infinity;
    for (let place = 0; place < candidates.length; place += 1) {
      const row = candidates[place]!;
      if (values[row]! < worst) continue;
      if (heap.length < limit) {
        heap.push(row);
        if (heap.length < limit) continue;
        for (let at = limit >> 1; at >= 0; at -= 1) sink(at);
      } else {
        if (!isWorse(heap[0]!, row)) continue;
        heap[0] = row;
        sink(0);
      }
      worst = values[heap[0]!]!;
    }
    return heap.sort((a, b) => (isWorse(a, b) ? 1 : -1)).map((seq) => ({ seq, bm25: bm25[seq]! }));
  }

  return {
    clear(size) {
      for (let place = 0; place < count; place += 1) bm25[rows[place]!] = NONE;
      count = 0;
      if (bm25.length >= size) return;
      bm25 = new Float64Array(size).fill(NONE);
      rows = new Uint32Array(size);
    },

    add({ count: added, seqs, frequencies }, lengths, totals) {
      const rarity = rarityOf(added, totals.rows) * (K1 + 1);
      const byLength = (K1 * B * totals.rows) / totals.tokens;
      for (let place = 0; place < added; place += 1) {
        const seq = seqs[place]!;
        const frequency = frequencies[place]!;
        let before = bm25[seq]!;
        if (before === NONE) {
          rows[count++] = seq;
          before = 0;
        }
        bm25[seq] = before + (rarity * frequency) / (frequency + K1 * (1 - B) + byLength * lengths[seq]!);
      }
    },

    best: (limit) => select(rows.subarray(0, count), limit),

    bestOf: (seqs, limit) =>
      select(
        seqs.filter((seq) => seq < bm25.length && bm25[seq]! !== NONE),
        limit,
      ),
  };
}
