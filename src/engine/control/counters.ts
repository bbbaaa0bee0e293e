/** The types of counters that several processes share, in a file of the data folder or in a PostgreSQL database. */

import type { Statement } from '../store/statement.ts';

/** Prepared statements by name. They are valid only inside the `write` or `note` that passes them. */
export type Prepared<Name extends string> = Readonly<Record<Name, Statement>>;

/**
 * Where counts are kept: the path of a file, or the name of the counts in a PostgreSQL database that all nodes share.
 */
export type CounterPlace = string | SharedCounts;

/** The database and the name under which nodes share counts. */
export interface SharedCounts {
  /** Address of the database, `postgres://…`. */
  readonly database: string;
  /** Name of the counts. Every node must give the same name to share them. */
  readonly name: string;
}

/** The tables of a counter file, and the SQL of the statements on them by name. */
export interface CounterTables<Name extends string> {
  /** SQL that makes the tables in a file. It is not used in PostgreSQL, where a migration makes them. */
  readonly schema: string;
  readonly statements: Readonly<Record<Name, string>>;
}

/** Open counters: a file, or the same tables in PostgreSQL. */
export interface CounterFile<Name extends string> {
  /**
   * Runs `work` in one write transaction. For a file, `work` runs a second time, on a new file, if the first run shows
   * that the file is damaged.
   * @param about key of what `work` changes. In PostgreSQL only calls with an equal key wait for each other; a file
   *   ignores it
   * @throws EngineError `unavailable` once closed; errors of the database as EngineErrors
   */
  write<T>(work: (statements: Prepared<Name>) => T, about?: string): T;
  /**
   * Writes as `write` does, but if the counters are closed or cannot be written, the change is lost without an error.
   * @param about as for `write`
   */
  note(work: (statements: Prepared<Name>) => void, about?: string): void;
  close(): void;
}
