/**
 * Transactions of one tenant. A write begins with an update of the tenant's row, which is the tenant's write lock: one
 * writer of a tenant at a time, as with SQLite's BEGIN IMMEDIATE, and numbers rise in the order of commits. Since every
 * write changes that row, an answer that was given after its commit waited for the standby even if it stored nothing
 * new. A read sees one snapshot.
 */
import { EngineError } from '../../errors.ts';
import { postgresError, type BlockingConnection } from './blocking-connection.ts';

/** Begins a write of a tenant; returns the number of the transaction, and of the tenant's writes with this one. */
const beginWrite = (tenant: number) => `BEGIN; SET LOCAL lock_timeout = '5s';
  UPDATE tenants SET writes = writes + 1 WHERE tenant = ${tenant} RETURNING pg_current_xact_id()::text, writes`;

/** Most looks at a transaction that may still be running, 10 ms apart. */
const STATUS_LOOKS = 200;

/**
 * Runs `work` in one transaction that holds the tenant's write lock; it is rolled back if `work` throws. `work` is told
 * the number of writes that the tenant has had, this one included.
 * @throws EngineError `not_found` for a tenant that is gone; `unavailable` if the lock was not had, the session was
 *   lost before the commit, or nobody can tell whether it committed; what `work` throws
 */
export function inWrite<T>(connection: BlockingConnection, tenant: number, work: (writes: number) => T): T {
  const [transaction, writes] = (connection.query(beginWrite(tenant)).rows[0] ?? []) as [string?, number?];
  if (transaction === undefined) {
    rollback(connection);
    throw new EngineError('not_found', 'no such tenant');
  }
  let result: T;
  try {
    result = work(writes!);
  } catch (error) {
    rollback(connection);
    throw error;
  }
  commit(connection, transaction);
  return result;
}

/** Runs `work` on one snapshot, and tells it the number of writes that the tenant has had. */
export function inSnapshot<T>(connection: BlockingConnection, tenant: number, work: (writes: number) => T): T {
  const { rows } = connection.query(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SELECT writes FROM tenants WHERE tenant = ${tenant}`);
  try {
    return work((rows[0]?.[0] as number | undefined) ?? 0);
  } finally {
    rollback(connection);
  }
}

function rollback(connection: BlockingConnection): void {
  if (connection.session !== null) connection.query('ROLLBACK');
}

/**
 * Commits. If the session is lost meanwhile, the transaction is in doubt; then the server is asked, over a new session,
 * what became of it.
 */
function commit(connection: BlockingConnection, transaction: string): void {
  try {
    connection.query('COMMIT');
  } catch (error) {
    if (postgresError(error)?.isLost !== true || !hasCommitted(connection, transaction)) throw error;
  }
}

function hasCommitted(connection: BlockingConnection, transaction: string): boolean {
  for (let look = 0; look < STATUS_LOOKS; look += 1) {
    try {
      const [[status] = []] = connection.query(`SELECT pg_xact_status('${transaction}'::xid8)`).rows;
      if (status !== 'in progress') return status === 'committed';
    } catch (error) {
      if (postgresError(error)?.isLost !== true) throw error;
    }
    Atomics.wait(sleeper, 0, 0, 10);
  }
  return false;
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));
