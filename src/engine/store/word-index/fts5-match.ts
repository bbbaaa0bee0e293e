import type { Store } from '../open-store.ts';
import { rarityOf } from './scores.ts';
import { marksUpTo, matchString } from './tokens.ts';
import type { TextRank, WordReader, WordScores, WordSearch } from './word-search.ts';

/**
 * The plain reader of the word index: FTS5's own MATCH and `bm25()`, whatever format its tables have. Each row costs a microsecond, and
 * `bm25()` counts all rows of a word before it gives out the first, so that a common word of a large file takes a tenth of a second.
 */

/** What a row of a word takes in the index on the average, for those who weigh words by what it costs to score them. */
const BYTES_PER_ROW = 6;

/** A reader that knows every format that SQLite knows. */
export function createMatchReader(store: Store): WordReader {
  let current: { readonly version: string; readonly search: WordSearch } | undefined;
  return {
    load: () => 'done',
    open(version) {
      if (current?.version !== version) current = { version, search: searchByMatch(store) };
      return current.search;
    },
  };
}

function searchByMatch(store: Store): WordSearch {
  const rows = store.prepare('SELECT count(*) FROM memory_text').pluck().get() as number;
  const last = store.prepare('SELECT rowid FROM memory_text ORDER BY rowid DESC LIMIT 1').pluck().get() as
    number | undefined;
  const marks = marksUpTo(last ?? 0);
  const frequencies = new Map<string, number>();

  const frequencyOf = (text: string) => {
    let frequency = frequencies.get(text);
    if (frequency === undefined) {
      const count = store.prepare('SELECT count(*) FROM memory_text WHERE memory_text MATCH ?').pluck();
      frequency = count.get(marks.map((mark) => matchString(text, mark)).join(' OR ')) as number;
      frequencies.set(text, frequency);
    }
    return frequency;
  };

  return {
    rows,
    bytesOf: (text) => BYTES_PER_ROW * frequencyOf(text),
    frequencyOf,
    score(texts, weights) {
      const select = store
        .prepare(
          `SELECT rowid, -bm25(memory_text, ${weights.map(() => '?').join(', ')}) FROM memory_text WHERE memory_text MATCH ?`,
        )
        .raw();
      const scores = new Map<number, number>();
      for (const text of texts) {
        const rarity = rarityOf(frequencyOf(text), rows);
        for (const mark of marks) {
          const found = select.all(...weights, matchString(text, mark)) as [seq: number, bm25: number][];
          // FTS5 takes the rarity of the partition's own token. BM25 is a multiple of it.
          const scale = rarity / rarityOf(found.length, rows);
          for (const [seq, bm25] of found) scores.set(seq, (scores.get(seq) ?? 0) + scale * bm25);
        }
      }
      return rankedScores(scores);
    },
  };
}

function rankedScores(scores: ReadonlyMap<number, number>): WordScores {
  const inOrder = (seqs: Iterable<number>): TextRank[] =>
    Array.from(seqs, (seq) => ({ seq, bm25: scores.get(seq)! })).sort((a, b) => b.bm25 - a.bm25 || a.seq - b.seq);
  return {
    best: (limit) => inOrder(scores.keys()).slice(0, limit),
    bestOf: (seqs, limit) => inOrder(seqs.filter((seq) => scores.has(seq))).slice(0, limit),
  };
}
