/** What a thread that waits and the thread of its connection say to each other. */
import type { MessagePort } from 'node:worker_threads';

/** What a connection's thread is started with. */
export interface ThreadData {
  readonly port: MessagePort;
  /** One number: that of the last request that was answered. */
  readonly signal: Int32Array;
  readonly url: string;
}

/** A value of a parameter or of a column, as SQLite has them. */
export type SqlValue = null | number | string | Uint8Array;

/** A parameter: a value, or an array of PostgreSQL. */
export type Parameter = SqlValue | readonly SqlValue[];

export interface Request {
  readonly no: number;
  /** Ends the connection and its thread. */
  readonly end?: true;
  /** Name of the prepared statement; undefined for a text that runs once. */
  readonly name?: string | undefined;
  readonly text: string;
  /** Undefined for a text of several statements, which takes none. */
  readonly values?: readonly Parameter[] | undefined;
  /**
   * The session that the statement belongs to; null to make a new one if there is none. A statement whose session is
   * gone is refused: what was set in it, and its transaction, are gone with it.
   */
  readonly session: number | null;
  /** Longest time that connecting may take, ms. */
  readonly timeoutMs: number;
}

export interface RequestError {
  /** SQLSTATE, or a code of the system for a connection that could not be made or was lost. */
  readonly code: string;
  /** Name of the constraint that was violated; null for none. */
  readonly constraint: string | null;
  /** Whether the session is gone. */
  readonly isLost: boolean;
  /** What is wrong with the statement itself; left out where it could quote a value. */
  readonly detail?: string;
}

export interface QueryResult {
  /** Number of the session that answered, from 1, never given twice by one thread. */
  readonly session: number;
  readonly columns: readonly string[];
  /** Places of the columns of bytes. */
  readonly bytes: readonly number[];
  readonly rows: readonly unknown[][];
  /** Number of rows that were changed. */
  readonly changes: number;
}

export type Reply = { readonly no: number } & (QueryResult | { readonly error: RequestError });
