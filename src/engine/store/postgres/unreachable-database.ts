/**
 * Keeps a further database (OM_DATABASES) that cannot be used, since it does not answer or waits for its migration,
 * from holding up a thread, which also serves tenants of other databases. After an attempt to connect has failed,
 * statements fail at once for a while.
 */

import { EngineError, isEngineError } from '../../errors.ts';
import type { BlockingConnection } from './blocking-connection.ts';
import { postgresError, PostgresError } from './postgres-error.ts';

/** The EngineError `unavailable` for a database whose schema is of an earlier version. */
export class EarlierSchema extends EngineError {
  /** @param name as `makeOrRequireSchema` takes it */
  constructor(name?: string | null) {
    const which = name === undefined ? '' : ` ${name ?? 'of OM_DATABASE_URL'}`;
    const message =
      `the schema of the database${which} is of an earlier version: a service of this version migrates it when it ` +
      'starts, or when the database is back';
    super('unavailable', message, { retryAfterMs: 5_000 });
  }
}

/**
 * Bounds of the time without attempts after one that failed (ms), which is ten times as long as the attempt took
 * (`PAUSE_TIMES`): so a thread spends at most an eleventh of its time, or 5 s in 35, with attempts.
 */
const [LEAST_PAUSE_MS, LONGEST_PAUSE_MS] = [2_000, 30_000];
const PAUSE_TIMES = 10;
/**
 * Code of the PostgresError of each failure to reach a database after the first, during a pause or by a further
 * attempt. The first failure keeps its own code, since it is the one to log.
 */
const STILL = 'unreachable';

/**
 * For each name of a database that this thread cannot use: the earliest time of the next attempt, by the monotonic
 * clock (ms), and the error to throw until then.
 */
const nextAttempts = new Map<string, { readonly at: number; readonly error: EngineError }>();

/**
 * Throws EngineError `unavailable` if an attempt to connect to a database has failed a moment ago. Call it before a
 * connection is made, which starts a thread.
 */
export function requireNoPause(name: string): void {
  const next = nextAttempts.get(name);
  if (next !== undefined && performance.now() < next.at) throw next.error;
}

/**
 * Returns a connection whose `query` makes no attempt to connect for a while after one has failed. It then throws as
 * `requireNoPause`.
 * @param name name of the database
 */
export function withPauses(connection: BlockingConnection, name: string): BlockingConnection {
  const query: BlockingConnection['query'] = (...statement) => {
    // A session that is lost tells nothing of the database: it may have been ended alone.
    if (connection.session !== null) return connection.query(...statement);
    return tryToReach(name, () => connection.query(...statement));
  };
  return Object.create(connection, { query: { value: query } }) as BlockingConnection;
}

/**
 * Runs work on a new connection, unless an attempt to connect has failed a moment ago, and notes whether it could
 * connect.
 * @param name name of the database; null for the one of OM_DATABASE_URL, whose failures cause no pause
 * @throws EngineError `unavailable` during a pause; the errors of `work`
 */
export function tryToReach<T>(name: string | null, work: () => T): T {
  if (name === null) return work();
  requireNoPause(name);
  const startedAt = performance.now();
  try {
    const result = work();
    noteReachable(name);
    return result;
  } catch (error) {
    if (postgresError(error)?.isLost !== true && !(error instanceof EarlierSchema)) throw error;
    throw noteUnreachable(name, startedAt, error);
  }
}

/** Notes that a database can be used, so that the next failure counts as the first again. */
export function noteReachable(name: string): void {
  nextAttempts.delete(name);
}

/**
 * Notes that an attempt to connect to a database failed, which began at `startedAt` (ms, as `performance.now()`). For a
 * while no further attempt is made.
 * @returns the error to throw: `error` after the first failed attempt, one that `isStillUnreachable` after a further
 *   one
 */
export function noteUnreachable(name: string, startedAt: number, error: unknown): unknown {
  const endedAt = performance.now();
  const pauseMs = Math.max(LEAST_PAUSE_MS, Math.min(LONGEST_PAUSE_MS, PAUSE_TIMES * (endedAt - startedAt)));
  const wasReachable = !nextAttempts.has(name);
  const repeated = stillUnreachable(
    error instanceof EarlierSchema ? error.message : `the database ${name} does not answer`,
  );
  nextAttempts.set(name, { at: endedAt + pauseMs, error: repeated });
  return wasReachable ? error : repeated;
}

/**
 * Whether an error says that a database was unreachable already when it was last asked for. The first failure, which is
 * the one to log, is an error of another kind.
 */
export function isStillUnreachable(error: unknown): boolean {
  return (isEngineError(error) && error.isRepeated) || postgresError(error)?.code === STILL;
}

function stillUnreachable(message: string): EngineError {
  return new EngineError('unavailable', message, {
    cause: new PostgresError({ code: STILL, constraint: null, isLost: true }),
    retryAfterMs: LEAST_PAUSE_MS,
    isRepeated: true,
  });
}
