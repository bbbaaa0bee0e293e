/**
 * The words of a tenant where no FTS5 table holds them. A row has a list of terms, as `termsOf` makes them, for each of
 * TEXT_COLUMNS. What is put and deleted in a write is stored before its commit.
 */
export interface WordTable {
  /** Writes the row of a memory, or replaces it. Call inside a write. */
  put(memoryNo: number, columns: readonly (readonly string[])[]): void;
  /** Deletes the row of a memory. Call inside a write. */
  delete(memoryNo: number): void;
  /** Deletes all rows. Call inside a write. */
  clear(): void;
  /** Stores what was put and deleted so far, so that a savepoint can follow. Call inside a write. */
  flush(): void;
  /** Forgets what was put and deleted since the last `flush`, as its transaction or savepoint is undone. */
  forget(): void;
}
