/**
 * The word index of a tenant in a database without FTS5 (PostgreSQL). A row has a list of terms (results of `termsOf`)
 * for each of TEXT_COLUMNS. Changes within a write are collected, and stored before its commit.
 */
export interface WordTable {
  /**
   * Writes the row of a memory, in place of an earlier one. Call inside a write.
   * @param columns the terms of each of TEXT_COLUMNS, in the order of the text
   * @returns how many of the row's terms are in no other row that this write has collected and not stored yet. For each
   *   of them, the commit writes a further row of a table
   */
  put(memoryNo: number, columns: readonly (readonly string[])[]): number;
  /** Deletes the row of a memory, if there is one. Call inside a write. */
  delete(memoryNo: number): void;
  /** Deletes all rows. Call inside a write. */
  clear(): void;
  /** Stores the changes that were collected so far, before a savepoint is made. Call inside a write. */
  flush(): void;
  /** Drops the changes that were collected since the last `flush`, when their transaction or savepoint is undone. */
  forget(): void;
  /**
   * Tells whether the index has old blocks that `joinBlocks` should join, so that searches read them faster. Call
   * outside of a write.
   */
  hasBlocksToJoin(): boolean;
  /** Joins some old blocks, as many as one commit may. Call inside a write that does nothing else. */
  joinBlocks(): void;
}
