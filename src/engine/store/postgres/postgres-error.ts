/** Errors of PostgreSQL, and what a caller of the engine gets for them. */

import { EngineError } from '../../errors.ts';
import { LateError } from '../late-error.ts';
import type { RequestError } from './connection-messages.ts';

/** An error of PostgreSQL, without the values that its message may quote. */
export class PostgresError extends Error {
  override readonly name = 'PostgresError';
  readonly code: string;
  readonly constraint: string | null;
  readonly isLost: boolean;
  /** Place of the statement among those that were sent together; undefined if the session is gone. */
  readonly place: number | undefined;

  constructor({ code, constraint, isLost, detail, place }: RequestError) {
    super(`PostgreSQL: ${code}${detail === undefined ? '' : ` (${detail})`}`);
    this.code = code;
    this.constraint = constraint;
    this.isLost = isLost;
    this.place = place;
  }
}

/** Returns the error of PostgreSQL that caused an error; undefined if none did. */
export function postgresError(error: unknown): PostgresError | undefined {
  return error instanceof EngineError && error.cause instanceof PostgresError ? error.cause : undefined;
}

/**
 * Turns an error of PostgreSQL into the EngineError that a caller gets: `storage_full` for a full disk; `unavailable`
 * for a lost session, a server that starts, stops, only reads or has too many connections, and for a transaction that
 * lost against another; `internal` for all else. It is a LateError if `isLate`: the statement had waited.
 */
export function databaseError(cause: PostgresError, isLate = false): EngineError {
  const { code } = cause;
  const Made = isLate && !cause.isLost ? LateError : EngineError;
  if (code === '53100') return new Made('storage_full', 'the disk of the database is full', { cause });
  const isPassing = cause.isLost || /^(?:40|53|55P03|57|25006)/.test(code);
  return isPassing
    ? new Made('unavailable', `the database does not answer (${code})`, { cause, retryAfterMs: 1_000 })
    : new Made('internal', cause.message, { cause });
}
