/** Statements that are sent to PostgreSQL, and their results. */

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

export interface QueryResult {
  readonly columns: readonly string[];
  readonly rows: readonly unknown[][];
  /** Number of rows that the statement changed. */
  readonly changes: number;
  /** First word of PostgreSQL's command tag, such as COMMIT or UPDATE. */
  readonly command: string;
}

/** An error of a request, without its message where that could quote stored values. */
export interface RequestError {
  /** SQLSTATE; of a connection that could not be made or was lost, a code of Node such as ECONNREFUSED. */
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
