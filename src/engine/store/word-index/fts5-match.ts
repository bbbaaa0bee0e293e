/**
 * The simple reader of the word index, through FTS5's own MATCH and `bm25()`, which works with every format of its
 * tables. Each row costs a microsecond, and `bm25()` counts all rows of a word before it returns the first. So a common
 * word of a large file takes a tenth of a second.
 */

import type { Store } from '../open-store.ts';
import { rarityOf } from './scores.ts';
import { marksUpTo, matchString } from './terms.ts';
import type { TextRank, WordReader, WordSearch } from './word-search.ts';

/**
 * Assumed number of bytes that a row of a word takes in the index. Callers estimate the cost of a word by its bytes.
 */
const BYTES_PER_ROW = 6;

/** Makes a reader of a connection's word index, for every format that SQLite itself reads. */
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

  const scoresOf = (texts: readonly string[], weights: readonly number[]) => {
    const select = store
      .prepare(
        `SELECT rowid, -bm25(memory_text, ${weights.map(() => '?').join(', ')})
         FROM memory_text WHERE memory_text MATCH ?`,
      )
      .raw();
    const scores = new Map<number, number>();
    const ordered = texts
      .map((text) => ({ text, rarity: rarityOf(frequencyOf(text), rows) }))
      .sort((a, b) => b.rarity - a.rarity || (a.text < b.text ? -1 : 1));
    for (const { text, rarity } of ordered) {
      for (const mark of marks) {
        const matches = select.all(...weights, matchString(text, mark)) as [memoryNo: number, bm25: number][];
        // FTS5 uses the rarity of the partition's own term. BM25 is a multiple of the rarity, so it can be rescaled.
        const scale = rarity / rarityOf(matches.length, rows);
        for (const [memoryNo, bm25] of matches) scores.set(memoryNo, (scores.get(memoryNo) ?? 0) + scale * bm25);
      }
    }
    return scores;
  };

  return {
    rows,
    expect: () => {},
    bytesOf: (text) => BYTES_PER_ROW * frequencyOf(text),
    frequencyOf,
    best(texts, weights, limit) {
      const scores = scoresOf(texts, weights);
      return inOrder(scores, scores.keys()).slice(0, limit);
    },
    bestOf(texts, weights, memoryNos, limit) {
      const scores = scoresOf(texts, weights);
      const scored = new Set(memoryNos.filter((memoryNo) => scores.has(memoryNo)));
      return inOrder(scores, scored).slice(0, limit);
    },
  };
}

function inOrder(scores: ReadonlyMap<number, number>, memoryNos: Iterable<number>): TextRank[] {
  return Array.from(memoryNos, (memoryNo) => ({ memoryNo, bm25: scores.get(memoryNo)! })).sort(
    (a, b) => b.bm25 - a.bm25 || a.memoryNo - b.memoryNo,
  );
}
