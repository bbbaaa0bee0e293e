import type { Parameter, QueryResult } from './statements.ts';

/** Answer to a query that was queued. */
export interface LaterAnswer {
  /** Returns the answer, and first sends the query if it is still queued. */
  result(): QueryResult;
  /** Whether the query is still queued. */
  readonly isWaiting: boolean;
}

/**
 * Runs SQL that is written for PostgreSQL and not translated. `$1` is the tenant's number; the given values begin at
 * `$2`.
 */
export interface OwnQuery {
  readonly ask: (name: string, text: string, values: readonly Parameter[]) => QueryResult;
  /**
   * Queues a query, which is sent in the round trip of the next one. Outside of a transaction it is sent at once. The
   * answer must be read in the same transaction.
   */
  readonly askLater: (name: string, text: string, values: readonly Parameter[]) => LaterAnswer;
  /**
   * Queues a statement, which is sent together with a later one. Call inside a write.
   * @param table the table that the statement writes, if it may be joined with queued writes of other tables into one
   *   statement. It must then neither read nor write another table that the store writes (`onceForm`). If it is left
   *   out, the statement is not joined with others.
   */
  readonly write: (name: string, text: string, values: readonly Parameter[], table?: string) => void;
}
