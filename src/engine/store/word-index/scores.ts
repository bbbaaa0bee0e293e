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

export function rarityOf(frequency: number, rows: number): number {
  return Math.max(RARITY_LEAST, Math.log((rows - frequency + 0.5) / (frequency + 0.5)));
}

/** The BM25 of every row that any of some phrases stands in, by number of row. */
export interface Scores {
  /** @param size above the number of every row */
  clear(size: number): void;
  /** @param lengths how many tokens each row has, by its number */
  add(postings: Postings, lengths: Uint32Array, totals: Totals): void;
  /**
   * The same for the last phrase where no more than the `limit` best rows will be asked for: where none that has only this phrase can be one
   * of them, such rows are left out, which are most of those of a common word.
   */
  addLast(postings: Postings, lengths: Uint32Array, totals: Totals, limit: number): void;
  /** The best rows, ties by ascending number. */
  best(limit: number): TextRank[];
  /** The best of these. */
  bestOf(seqs: readonly number[], limit: number): TextRank[];
}

export function createScores(): Scores {
  let bm25 = new Float64Array(1_024);
  /** 1 for a row that any phrase stands in; of others `bm25` says nothing. A byte a row stays in the cache, where eight would not. */
  let isKnown = new Uint8Array(1_024);
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

  function add({ count: added, seqs, frequencies }: Postings, lengths: Uint32Array, totals: Totals): void {
    const rarity = rarityOf(added, totals.rows) * (K1 + 1);
    const byLength = (K1 * B * totals.rows) / totals.tokens;
    for (let place = 0; place < added; place += 1) {
      const seq = seqs[place]!;
      const frequency = frequencies[place]!;
      const more = (rarity * frequency) / (frequency + K1 * (1 - B) + byLength * lengths[seq]!);
      if (isKnown[seq] === 1) {
        bm25[seq] = bm25[seq]! + more;
        continue;
      }
      isKnown[seq] = 1;
      rows[count++] = seq;
      bm25[seq] = more;
    }
  }

  /** A loop of its own: it writes nothing for most rows, and reads no length. */
  function addToKnown({ count: added, seqs, frequencies }: Postings, lengths: Uint32Array, totals: Totals): void {
    const rarity = rarityOf(added, totals.rows) * (K1 + 1);
    const byLength = (K1 * B * totals.rows) / totals.tokens;
    for (let place = 0; place < added; place += 1) {
      const seq = seqs[place]!;
      if (isKnown[seq] === 0) continue;
      const frequency = frequencies[place]!;
      bm25[seq] = bm25[seq]! + (rarity * frequency) / (frequency + K1 * (1 - B) + byLength * lengths[seq]!);
    }
  }

  return {
    clear(size) {
      isKnown.fill(0);
      count = 0;
      if (bm25.length >= size) return;
      bm25 = new Float64Array(size);
      isKnown = new Uint8Array(size);
      rows = new Uint32Array(size);
    },

    add,

    addLast(postings, lengths, totals, limit) {
      const best = count < limit ? [] : select(rows.subarray(0, count), limit);
      // However often a phrase stands in a row, it adds less than this.
      const most = rarityOf(postings.count, totals.rows) * (K1 + 1);
      if (best.length < limit || best.at(-1)!.bm25 < most) add(postings, lengths, totals);
      else addToKnown(postings, lengths, totals);
    },

    best: (limit) => select(rows.subarray(0, count), limit),

    bestOf: (seqs, limit) =>
      select(
        seqs.filter((seq) => isKnown[seq] === 1),
        limit,
      ),
  };
}
