/** The messages between a thread that blocks on a connection and the thread that holds the connection's socket. */

import type { MessagePort } from 'node:worker_threads';

/** The data with which the thread of a connection is started. */
export interface ThreadData {
  readonly port: MessagePort;
  /** A single number: that of the last request that was answered; a reply to `end` carries 0. */
  readonly signal: Int32Array;
  readonly url: string;
}

/** A value of a parameter or of a column, as SQLite has them. */
export type SqlValue = null | number | string | Uint8Array;

/** A parameter: a value, or an array of PostgreSQL. */
export type Parameter = SqlValue | readonly SqlValue[];

export interface SentStatement {
  /** Name of the prepared statement; undefined for a text that runs once. */
  readonly name?: string | undefined;
  readonly text: string;
  readonly values: readonly Parameter[];
}

export interface Request {
  readonly no: number;
  /** Ends the connection and its thread. */
  readonly end?: true;
  /** Whether nobody waits for a reply; an error ends the session then. */
  readonly isPosted?: true;
  /**
   * Starts to read the number that the only statement, a text, returns every `everyMs` (ms), on a further connection,
   * whose reads may take `timeoutMs` (ms). Where the number and the time of its read are noted is as `noteSeen` says.
   */
  readonly watch?: { readonly everyMs: number; readonly timeoutMs: number; readonly seen: BigInt64Array };
  /**
   * Statements that run one after the other and are sent in one go, none behind one that fails; or a text of several
   * statements without parameters, which has one result, that of its last statement.
   */
  readonly statements: readonly SentStatement[] | string;
  /**
   * The session that the statements belong to; null to make a new one if there is none. A statement whose session is
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
  /** Message about an error in the statement itself; left out where it could quote a value. */
  readonly detail?: string;
  /** Place of the statement that failed among those of the request; left out for a session that is gone. */
  readonly place?: number;
}

export interface QueryResult {
  readonly columns: readonly string[];
  readonly rows: readonly unknown[][];
  /** Number of rows that were changed. */
  readonly changes: number;
  /** What the server says that the statement did, such as COMMIT. */
  readonly command: string;
}

export type Reply = {
  readonly no: number;
} & (
  | {
      /** Number of the session that answered, from 1, never given twice by one thread. */
      readonly session: number;
      /** A result for each statement. */
      readonly results: readonly QueryResult[];
    }
  | { readonly error: RequestError }
);

/**
 * Notes a number and the time at which its read began (ns, `process.hrtime.bigint`). The time comes last, so that the
 * number is never older than its time.
 */
export function noteSeen(seen: BigInt64Array, number: number, readAt: bigint): void {
  Atomics.store(seen, 0, BigInt(number));
  Atomics.store(seen, 1, readAt);
}
