/**
 * The port of the word index: what a query asks it, and what a reader of the index owes whoever opens it. Two readers meet it, and one
 * suite holds both to it (test/conformance/word-search.ts): `fts5-direct`, which decodes the index where FTS5 wrote it, and
 * `fts5-match`, plain SQL, which reads any index that SQLite itself reads.
 */

/** How the word index is read: by the quickest reader that knows its format, or by a named one. */
export type WordIndexChoice = 'auto' | 'fts5-direct' | 'fts5-match';

/** A row and its BM25: higher is better. */
export interface TextRank {
  readonly seq: number;
  readonly bm25: number;
}

/** The rows that any of some words and phrases stands in, with the BM25 that `bm25()` of FTS5 gives them, its sign turned. */
export interface WordScores {
  /** The best rows, ties by ascending number. */
  best(limit: number): TextRank[];
  /** The best among these rows. */
  bestOf(seqs: readonly number[], limit: number): TextRank[];
}

/** The word index at one snapshot. Words and phrases are given as `queryTerms` makes them. */
export interface WordSearch {
  /** Rows of the index. */
  readonly rows: number;
  /**
   * What it costs to score a word or phrase, in bytes of the index: at most this many are read, some six for a row that has it. 0 where
   * no row has it.
   */
  bytesOf(text: string): number;
  /** In how many rows a word or phrase stands. */
  frequencyOf(text: string): number;
  /**
   * BM25 of all rows that any of the words and phrases stands in.
   * @param weights of the columns in their order: each place where a word stands counts as much as its column
   * @param limit how many of the best rows will be asked for at most; other rows may then be missing, or have less than their BM25
   * @returns scores that hold until the next call, whatever the file
   */
  score(texts: readonly string[], weights: readonly number[], limit?: number): WordScores;
}

/** One way to read the word index of one connection. All is called on a snapshot. */
export interface WordReader {
  /** Takes over a slice of what was written since, so that the next search has little left to do. */
  load(): 'more' | 'done';
  /**
   * The index at the snapshot that the connection reads.
   * @param version the name of that snapshot
   * @returns undefined where the reader does not know the format of the index
   */
  open(version: string): WordSearch | undefined;
}
