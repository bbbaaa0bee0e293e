/**
 * Runs the transactions of one tenant. A write begins with an update of the tenant's row, which serves as the tenant's
 * write lock: a tenant has one writer at a time, as with SQLite's BEGIN IMMEDIATE, and numbers rise in the order of
 * commits. Since every write changes that row, also one that stores nothing else has a commit, which waits for the
 * standby. A read sees one snapshot.
 */

import { EngineError } from '../../errors.ts';
import { LateError } from '../late-error.ts';
import { postgresError, type BlockingConnection } from './blocking-connection.ts';

const LOCK_TENANT = `UPDATE tenants SET writes = writes + 1 WHERE tenant = $1
  RETURNING pg_current_xact_id()::text, writes`;
/** Sets the tenant for one transaction, for column defaults and row-level security. */
const SET_TENANT = `SELECT set_config('cairn.tenant', $1, true)`;
const READ_WRITES = 'SELECT writes FROM tenants WHERE tenant = $1';
/** A statement of its own: it sees what the last writer of the tenant committed while this one waited for the lock. */
const READ_NUMBERS = `SELECT name, last FROM numbers WHERE tenant = $1 AND name = ANY ($2::text[])`;

/** Most times that the state of a transaction is asked for which may still be running, 10 ms apart. */
const STATUS_LOOKS = 200;

/**
 * SQLSTATE for a transaction whose number the server has not given: a crash took the transaction back before anything
 * of it was on the disk, its commit included.
 */
const UNKNOWN_TRANSACTION = '22023';

/** The tenant of a transaction. */
interface OfTenant {
  readonly tenant: number;
  /** Whether the transaction has to set the tenant, since the session is set to another one. */
  readonly setsTenant: boolean;
}

/** What a read knows when it begins: the number of writes that the tenant has had. */
export interface BegunRead {
  /** Whether `number` takes no round trip. */
  isKnown(): boolean;
  number(): number;
}

/** What a write knows when it begins. */
export interface BegunWrite {
  /** Number of writes that the tenant has had, this one included. */
  readonly writes: number;
  /** The last number that each of the given tables has given to a row; a table without one is left out. */
  readonly numbers: ReadonlyMap<string, number>;
}

/**
 * Runs `work` in one transaction that holds the tenant's write lock; it is rolled back if `work` throws. Statements
 * that wait when `work` returns are sent together with the commit.
 * @param numbered tables whose last numbers `work` gets
 * @throws EngineError `not_found` for a tenant that is gone; `unavailable` if the lock was not free for 5 s, the
 *   session was lost before the commit, or nobody can tell whether the transaction committed; `internal` if a statement
 *   had failed, though `work` went on; whatever `work` throws
 */
export function inWrite<T>(
  connection: BlockingConnection,
  { tenant, setsTenant, numbered }: OfTenant & { readonly numbered: readonly string[] },
  work: (begun: BegunWrite) => T,
): T {
  begin(connection, { text: 'BEGIN', name: 'begin' }, { tenant, setsTenant });
  const locked = connection.queue({ text: LOCK_TENANT, values: [tenant], name: 'lock-tenant' });
  let transaction: string | undefined;
  let result: T;
  try {
    const { rows } = connection.query(READ_NUMBERS, [tenant, numbered], 'read-numbers');
    const [first, writes] = (locked.result().rows[0] ?? []) as [string?, number?];
    if (first === undefined) throw new EngineError('not_found', 'no such tenant');
    transaction = first;
    result = work({ writes: writes!, numbers: new Map(rows as [string, number][]) });
  } catch (error) {
    rollback(connection);
    // What waited behind the lock is no part of the work.
    if (transaction !== undefined || !(error instanceof LateError)) throw error;
    const { code, message, cause, retryAfterMs } = error;
    throw new EngineError(code, message, { cause, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
  }
  commit(connection, transaction);
  return result;
}

/**
 * Runs `work` in the transaction that is open and commits; rolls back if `work` throws.
 * @param transaction number of the transaction, as `pg_current_xact_id` returns it
 * @throws EngineError `unavailable` as `inWrite`; whatever `work` throws
 */
export function endWrite<T>(connection: BlockingConnection, transaction: string, work: () => T): T {
  let result: T;
  try {
    result = work();
  } catch (error) {
    rollback(connection);
    throw error;
  }
  commit(connection, transaction);
  return result;
}

/** Runs `work` on one snapshot, which is taken with its first statement. */
export function inSnapshot<T>(connection: BlockingConnection, of: OfTenant, work: (begun: BegunRead) => T): T {
  begin(connection, { text: 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', name: 'begin-read' }, of);
  const writes = connection.queue({ text: READ_WRITES, values: [of.tenant], name: 'writes' });
  try {
    return work({
      isKnown: () => !writes.isWaiting,
      number: () => (writes.result().rows[0]?.[0] as number | undefined) ?? 0,
    });
  } finally {
    // Nobody waits for the end of a read.
    if (writes.isWaiting) connection.forget();
    else connection.post('ROLLBACK');
  }
}

/** Lets the beginning of a transaction wait for its first question. */
function begin(
  connection: BlockingConnection,
  statement: { readonly text: string; readonly name: string },
  { tenant, setsTenant }: OfTenant,
): void {
  connection.queue({ ...statement, values: [] });
  if (setsTenant) connection.queue({ text: SET_TENANT, values: [String(tenant)], name: 'set-tenant' });
}

function rollback(connection: BlockingConnection): void {
  connection.forget();
  if (connection.session !== null) connection.query('ROLLBACK');
}

/**
 * Commits a transaction. If the session is lost meanwhile, nobody knows whether it committed; then the server is asked
 * over a new session.
 * @throws the error of the commit or of a statement that waited, unless the server says that the transaction committed
 */
function commit(connection: BlockingConnection, transaction: string): void {
  let did: string;
  try {
    did = connection.query('COMMIT', [], 'commit').command;
  } catch (error) {
    if (postgresError(error)?.isLost !== true) {
      rollback(connection);
      throw error;
    }
    if (hasCommitted(connection, transaction)) return;
    throw error;
  }
  // A transaction in which a statement failed is rolled back by its commit, which says so and is no error.
  if (did !== 'COMMIT') throw new EngineError('internal', 'a write went on after one of its statements had failed');
}

function hasCommitted(connection: BlockingConnection, transaction: string): boolean {
  for (let look = 0; look < STATUS_LOOKS; look += 1) {
    try {
      const [[status] = []] = connection.query(`SELECT pg_xact_status('${transaction}'::xid8)`).rows;
      if (status !== 'in progress') return status === 'committed';
    } catch (error) {
      const cause = postgresError(error);
      if (cause?.code === UNKNOWN_TRANSACTION) return false;
      if (cause?.isLost !== true) throw error;
    }
    Atomics.wait(sleeper, 0, 0, 10);
  }
  return false;
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));
