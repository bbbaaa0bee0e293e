/**
 * The port of the word index: what a query asks of it, and what a reader of the index provides. There are two readers,
 * and one suite (test/conformance/word-search.ts) tests both: `fts5-direct`, which decodes the tables that FTS5 wrote,
 * and `fts5-match`, plain SQL, which reads any index that SQLite itself reads. A tenant in PostgreSQL has a `WordTable`
 * in place of FTS5, with a reader of its own.
 */

/**
 * Reader of the word index: 'auto' is `fts5-direct` if it knows the format of the index, or else `fts5-match`; the
 * other two name the only reader to use.
 */
export type WordIndexChoice = 'auto' | 'fts5-direct' | 'fts5-match';

/** A row and its BM25, higher is better. */
export interface TextRank {
  readonly memoryNo: number;
  readonly bm25: number;
}

/** The word index at one snapshot. Words and phrases are given as `queryTerms` makes them. */
export interface WordSearch {
  /** Number of rows of the index. */
  readonly rows: number;
  /**
   * Tells which words and phrases are about to be asked for, so that an index in another process is asked once for all
   * of them.
   */
  expect(texts: readonly string[]): void;
  /**
   * Returns the cost of scoring a word or phrase: about the number of bytes of the index to read, some six for each row
   * that has it; 0 if no row has it.
   */
  bytesOf(text: string): number;
  /** Returns the number of rows that contain a word or phrase. */
  frequencyOf(text: string): number;
  /**
   * Ranks all rows that contain any of the words and phrases by the sum of FTS5's `bm25()` over these, its sign turned,
   * so that higher is better.
   * @param texts words and phrases; rarest first is quickest
   * @param weights one weight for each of TEXT_COLUMNS, in that order; an occurrence of a word counts as much as the
   *   weight of its column
   * @returns at most `limit` rows, highest BM25 first; ties by ascending number
   */
  best(texts: readonly string[], weights: readonly number[], limit: number): TextRank[];
  /** Ranks as `best` does, but only the given rows. Rows with none of the words are left out. */
  bestOf(texts: readonly string[], weights: readonly number[], memoryNos: readonly number[], limit: number): TextRank[];
}

/** Reader of a `WordTable`. */
export interface TableReader extends WordReader {
  open(version: string): TableSearch;
}

/** The words of a `WordTable` at one snapshot. */
export interface TableSearch extends WordSearch {
  /**
   * Finds which of these memories contain a word or phrase, in no order.
   * @param columns places in TEXT_COLUMNS of the columns that it may stand in
   */
  matching(text: string, memoryNos: readonly number[], columns: ReadonlySet<number>): number[];
}

/** A way to read the word index of one connection. Every method is called on a snapshot. */
export interface WordReader {
  /** Takes over a slice of recent changes, so that the next search has little left to do; 'more' if some are left. */
  load(): 'more' | 'done';
  /**
   * Opens the index at the snapshot that the connection reads.
   * @param version version of that snapshot, as `snapshotVersion` returns it
   * @returns undefined if the reader does not know the format of the index
   */
  open(version: string): WordSearch | undefined;
}
