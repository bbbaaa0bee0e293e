/**
 * The interface of the word index: what a query needs, and what a reader of the index provides. There are two readers
 * of FTS5, and one test suite for both (test/conformance/word-search.ts): `fts5-direct` decodes the tables that FTS5
 * wrote, and `fts5-match` is plain SQL and reads every index that SQLite itself reads. A tenant in PostgreSQL has a
 * `WordTable` instead of FTS5, with a reader of its own.
 */

/**
 * Choice of the reader of the word index: 'auto' is `fts5-direct` if it knows the format of the index, otherwise
 * `fts5-match`; the other two choose one reader in any case.
 */
export type WordIndexChoice = 'auto' | 'fts5-direct' | 'fts5-match';

/** A row found by a search: its number (`memoryNo`) and its BM25, higher is better. */
export interface TextRank {
  readonly memoryNo: number;
  readonly bm25: number;
}

/** The word index at one snapshot. Words and phrases are passed as `queryTerms` returns them. */
export interface WordSearch {
  /** Number of rows of the index. */
  readonly rows: number;
  /**
   * Announces words and phrases that are about to be counted, or counted and ranked by, so that an index in another
   * process is asked once for all of them.
   */
  expect(texts: readonly string[], use: 'count' | 'rank'): void;
  /**
   * Returns the cost of scoring a word or phrase: about how many bytes of the index must be read, some six for each
   * row that has the word. For a phrase they may be the bytes of all its words, even if no row has the phrase. The cost
   * is 0 if one of the words occurs nowhere.
   */
  bytesOf(text: string): number;
  /**
   * Returns the number of rows that contain a word or phrase; an upper bound of it if counting would take too much of
   * the work budget.
   */
  frequencyOf(text: string): number;
  /**
   * Ranks all rows that contain at least one of the words and phrases, by the sum of FTS5's `bm25()` over them, with
   * its sign inverted so that higher is better. A word or phrase that would take too much of the work budget is left
   * out. The order of the words does not change the sums, not even by rounding.
   * @param texts words and phrases, each only once
   * @param weights one weight for each of TEXT_COLUMNS, in their order; an occurrence of a word counts as much as the
   *   weight of its column
   * @returns at most `limit` rows, highest BM25 first; ties by ascending number
   */
  best(texts: readonly string[], weights: readonly number[], limit: number): TextRank[];
  /** Ranks as `best` does, but only the given rows. Rows without any of the words are left out. */
  bestOf(texts: readonly string[], weights: readonly number[], memoryNos: readonly number[], limit: number): TextRank[];
}

/** Reader of the word index of a tenant in PostgreSQL (`WordTable`). */
export interface TableReader extends WordReader {
  /**
   * Asks for the state of the index in the round trip of the next query. An index that is opened after that query knows
   * which of the words that were read before are still valid.
   */
  askForState(): void;
  open(version: string): TableSearch;
}

/** The word index of a tenant in PostgreSQL (`WordTable`) at one snapshot. */
export interface TableSearch extends WordSearch {
  /**
   * Finds which of these memories contain a word or phrase, in no certain order.
   * @param columns indexes in TEXT_COLUMNS of the columns that may contain it
   */
  matching(text: string, memoryNos: readonly number[], columns: ReadonlySet<number>): number[];
}

/** Reads the word index of one connection. Every method must be called on a snapshot. */
export interface WordReader {
  /**
   * Loads a slice of what was committed since the last call into memory, so that the next search is fast.
   * @returns 'more' if there is more to load
   */
  load(): 'more' | 'done';
  /**
   * Opens the index at the snapshot that the connection reads.
   * @param version version of that snapshot, as `snapshotVersion` returns it
   * @returns undefined if the reader does not know the format of the index
   */
  open(version: string): WordSearch | undefined;
}
