/**
 * The messages between a thread that blocks on a connection and the second thread that holds the connection's socket.
 */

import type { MessagePort } from 'node:worker_threads';
import type { Field } from './wire-values.ts';

/** The data with which the thread of a connection is started. */
export interface ThreadData {
  readonly port: MessagePort;
  /** Shared memory with a single number: the number of the last request whose reply was sent. */
  readonly signal: Int32Array;
  readonly url: string;
  /** Greatest number of a session that an earlier thread of the same connection had; 0 if there was none. */
  readonly sessionsBefore: number;
}

/** A value of a parameter or of a column, as SQLite has them. */
export type SqlValue = null | number | string | Uint8Array;

/** A parameter of a statement: a single value, or a list that becomes an array of PostgreSQL. */
export type Parameter = SqlValue | readonly SqlValue[];

export interface SentStatement {
  /** Name of the prepared statement; undefined for a text that runs once. */
  readonly name?: string | undefined;
  readonly text: string;
  readonly values: readonly Parameter[];
}

export interface Request {
  readonly no: number;
  /** Set in a request that ends the connection and its thread. */
  readonly end?: true;
  /** Set if nobody waits for a reply; an error then ends the session. */
  readonly isPosted?: true;
  /**
   * Set in a request that starts to poll a number. The request's only statement, a text, returns that number. It is
   * read every `everyMs` (ms) on a second connection, whose reads may take `timeoutMs` (ms). `seen` gets the number and
   * the time of its read, as `noteSeen` writes them.
   */
  readonly watch?: { readonly everyMs: number; readonly timeoutMs: number; readonly seen: BigInt64Array };
  /**
   * Statements that are sent together and run one after the other until one fails, or a text of several statements
   * without parameters, whose only result is that of its last statement.
   */
  readonly statements: readonly SentStatement[] | string;
  /**
   * Session in which the statements must run; null to make a new session if there is none. If this session is gone, the
   * request is refused, since its settings and its transaction are lost.
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
  /**
   * Message about an error in the statement's own text; left out for other errors, whose message could quote stored
   * values.
   */
  readonly detail?: string;
  /** Index of the failed statement in the request; left out if the session is gone. */
  readonly place?: number;
}

export interface QueryResult {
  readonly columns: readonly string[];
  readonly rows: readonly unknown[][];
  /** Number of rows that the statement changed. */
  readonly changes: number;
  /** First word of PostgreSQL's command tag, such as COMMIT or UPDATE. */
  readonly command: string;
}

/**
 * Result of a statement whose rows are still in the server's messages, from `start` to `end` in `bytes` of the reply.
 */
export interface SentResult {
  /** Number of the columns. */
  readonly fields: number;
  /** Whether all values are text, since the columns were not known when the statement was sent. */
  readonly isFirstRun: boolean;
  readonly start: number;
  readonly end: number;
  readonly changes: number;
  readonly command: string;
}

export type Reply = {
  readonly no: number;
} & (
  | {
      /**
       * Number of the session that answered, from 1; a thread never reuses a number. 0 in a reply to a request with
       * `end`, or with `watch` if there is no session.
       */
      readonly session: number;
      /** One result for each statement; where a text of several statements was sent, that of the last one. */
      readonly results: readonly (QueryResult | SentResult)[];
      /** Columns of results that earlier replies did not tell of, by their numbers. */
      readonly fields?: readonly { readonly no: number; readonly list: readonly Field[] }[];
      /** The server's messages, in which the rows of the results stand; handed over to the receiver. */
      readonly bytes?: Uint8Array<ArrayBuffer>;
    }
  | { readonly error: RequestError }
);

/**
 * Writes a polled number and the time at which its read began (ns, `process.hrtime.bigint`) into shared memory. The
 * time is written last, so that a reader who reads the time first never gets a number that is older than the time.
 */
export function noteSeen(seen: BigInt64Array, number: number, readAt: bigint): void {
  Atomics.store(seen, 0, BigInt(number));
  Atomics.store(seen, 1, readAt);
}
