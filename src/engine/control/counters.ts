/** What counters are, in a file of the data folder or in a database that nodes share. */

import type { Statement } from '../store/statement.ts';

/** Prepared statements by name. They are valid only inside the `write` or `note` that passes them. */
export type Prepared<Name extends string> = Readonly<Record<Name, Statement>>;

/** Where is counted: the path of a file, or the name of the counts in a database that the nodes share. */
export type CounterPlace = string | SharedCounts;

/** The place of counts in a database. */
export interface SharedCounts {
  /** Address of the database, `postgres://…`. */
  readonly database: string;
  /** Name of the counts, which every node gives to the same ones. */
  readonly name: string;
}

/** The tables of a counter file, and the SQL of the statements on them by name. */
export interface CounterTables<Name extends string> {
  /** Makes the tables in a file; in PostgreSQL a migration does. */
  readonly schema: string;
  readonly statements: Readonly<Record<Name, string>>;
}

/** An open counter file. */
export interface CounterFile<Name extends string> {
  /**
   * Runs `work` in one `BEGIN IMMEDIATE` transaction. `work` runs a second time, on a new file, if the first run shows
   * that the file is damaged.
   * @param about what the work is about, where work about something else need not wait for it; PostgreSQL heeds it
   * @throws EngineError `unavailable` once closed; SQLite's errors as `storageError` turns them
   */
  write<T>(work: (statements: Prepared<Name>) => T, about?: string): T;
  /** Like `write`, but if the file is closed or locked or the disk is full, the change is lost without an error. */
  note(work: (statements: Prepared<Name>) => void): void;
  close(): void;
}
