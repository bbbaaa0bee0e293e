/** Errors of PostgreSQL, and their translation to errors that callers of the engine get. */

import { EngineError } from '../../errors.ts';
import { LateError } from '../late-error.ts';
import type { RequestError } from './statements.ts';

/** An error of PostgreSQL, without its message where that could quote stored values. */
export class PostgresError extends Error {
  override readonly name = 'PostgresError';
  readonly code: string;
  readonly constraint: string | null;
  readonly isLost: boolean;
  /** Index of the failed statement among those that were sent together; undefined if the session is gone. */
  readonly place: number | undefined;

  constructor({ code, constraint, isLost, detail, place }: RequestError) {
    super(`PostgreSQL: ${code}${detail === undefined ? '' : ` (${detail})`}`);
    this.code = code;
    this.constraint = constraint;
    this.isLost = isLost;
    this.place = place;
  }
}

/** Returns the PostgresError that is the cause of an error; undefined if it has another cause. */
export function postgresError(error: unknown): PostgresError | undefined {
  return error instanceof EngineError && error.cause instanceof PostgresError ? error.cause : undefined;
}

/**
 * Translates an error of PostgreSQL to the EngineError that a caller gets. `storage_full`: the disk is full.
 * `unavailable`: the session is lost; the server starts, stops, has broken off the statement, is read-only or lacks
 * memory or connections; a lock was not free in time; or the transaction lost a conflict with another one. `internal`:
 * everything else. Whether a commit whose answer was lost may have come about is for the caller to find out.
 * @param isLate whether the failed statement had been queued; the result is then a LateError, unless the session is
 *   lost
 */
export function databaseError(cause: PostgresError, isLate = false): EngineError {
  const { code } = cause;
  const Made = isLate && !cause.isLost ? LateError : EngineError;
  if (code === '53100') return new Made('storage_full', 'the disk of the database is full', { cause });
  const isPassing = cause.isLost || /^(?:40|53|55P03|57|25006)/.test(code);
  return isPassing
    ? new Made('unavailable', `the database does not answer (${code})`, {
        cause,
        retryAfterMs: 1_000,
      })
    : new Made('internal', cause.message, { cause });
}
