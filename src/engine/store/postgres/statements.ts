/** Statements that are sent to PostgreSQL, and their results. */

import type { Fields } from './wire-values.ts';

/** A value of a parameter or of a column, as SQLite has them. */
export type SqlValue = null | number | string | Uint8Array;

/** A parameter of a statement: a single value, or a list that becomes an array of PostgreSQL. */
export type Parameter = SqlValue | readonly SqlValue[];

export interface SentStatement {
  /** Name of the prepared statement; undefined for a text that runs once. */
  readonly name?: string | undefined;
  readonly text: string;
  readonly values: readonly Parameter[];
  /** The part of the query's rows that is read; left out for all rows at once. */
  readonly portion?: Portion | undefined;
}

/**
 * A part of the rows of a query that is read in portions. Between two portions the query stays open on the server in a
 * portal, which ends with its transaction at the latest.
 */
export interface Portion {
  /** Name of the portal. No other query of the transaction has it. */
  readonly portal: string;
  /** Greatest number of rows of the portion. */
  readonly rows: number;
  /** The `rest` of the portion before; undefined for the first portion, which opens the portal. */
  readonly rest?: Rest | undefined;
}

/** What is known of a query of which there may be more rows than were read. */
interface Rest {
  /** Size of the last portion as the server sent it, bytes. */
  readonly bytes: number;
  readonly fields: Fields;
  /** Whether all values are text, since the columns were not known when the portal was opened. */
  readonly isFirstRun: boolean;
}

export interface QueryResult {
  readonly columns: readonly string[];
  readonly rows: readonly unknown[][];
  /** Number of rows that the statement changed. */
  readonly changes: number;
  /** First word of PostgreSQL's command tag, such as COMMIT or UPDATE; SELECT if `rest` is there. */
  readonly command: string;
  /** Left out if these are the last rows, as they always are without a `portion`. */
  readonly rest?: Rest | undefined;
}

/** An error of a request, without its message where that could quote stored values. */
export interface RequestError {
  /**
   * SQLSTATE; of a connection that could not be made or was lost, a code of Node such as ECONNREFUSED, or one of the
   * words `lost`, `closed`, `silent` and `unreachable`.
   */
  readonly code: string;
  /** Name of the constraint that was violated; null for none. */
  readonly constraint: string | null;
  /** Whether the session is gone, and its open transaction with it. */
  readonly isLost: boolean;
  /**
   * Message about an error in the statement's own text; left out for other errors, whose message could quote stored
   * values.
   */
  readonly detail?: string;
  /** Index of the failed statement in the request; left out if the session is gone. */
  readonly place?: number;
}
