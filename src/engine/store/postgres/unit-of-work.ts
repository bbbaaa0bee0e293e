/**
 * Runs the transactions of one tenant. A write begins with an update of the tenant's row, which serves as the tenant's
 * write lock: a tenant has one writer at a time, as with SQLite's BEGIN IMMEDIATE, and row numbers rise in the order of
 * commits. Since every write changes that row, even a write without other changes has a commit that waits for a
 * synchronous standby. A read sees one snapshot.
 */

import { EngineError } from '../../errors.ts';
import { LateError } from '../late-error.ts';
import { postgresError, type BlockingConnection } from './blocking-connection.ts';

/**
 * SQL that takes the tenant's write lock, counts the write and gives it a random mark. It finds no row while a move of
 * the tenant holds the advisory lock (`move-steps.ts`) and after the move, so that such a write is refused at once.
 * `tableoid` tells apart schemas of one database.
 */
const LOCK_TENANT = `UPDATE tenants SET writes = writes + 1, last_write = gen_random_uuid()
  WHERE tenant = $1 AND moved_by IS NULL AND pg_try_advisory_xact_lock_shared(tableoid::int, tenant)
  RETURNING pg_current_xact_id()::text, writes, last_write::text`;
const READ_MARK = 'SELECT moved_by FROM tenants WHERE tenant = $1';
/** SQL that sets the tenant for one transaction, for column defaults and row-level security. */
const SET_TENANT = `SELECT set_config('cairn.tenant', $1, true)`;
const READ_WRITES = 'SELECT writes FROM tenants WHERE tenant = $1';
/** Name in `BegunWrite.numbers` of the greatest number of a memory that was ever put into the tenant's word index. */
export const NEWEST_IN_WORDS = 'newest in words';
/** Name in `BegunWrite.numbers` of 1 if the tenant's change feed is on, else 0. */
export const HAS_EVENTS = 'has events';
/**
 * SQL that reads the last row numbers, and the two further numbers of `BegunWrite.numbers`. It is a separate statement
 * after the lock, so that it sees what the previous writer of the tenant committed while this one waited for the lock.
 */
const READ_NUMBERS = `SELECT name, last FROM numbers WHERE tenant = $1 AND name = ANY ($2::text[])
  UNION ALL SELECT '${NEWEST_IN_WORDS}', newest FROM word_totals WHERE tenant = $1
  UNION ALL SELECT '${HAS_EVENTS}', is_on FROM event_feed WHERE tenant = $1`;

/**
 * SQL that commits a message to the write-ahead log that nobody reads. It needs no table and no privilege, and works
 * with any `wal_level`.
 * @see https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-REPLICATION
 */
const COMMIT_NOTHING = `SELECT pg_logical_emit_message(true, 'cairn', '')`;

/** Longest time for which it is asked whether a transaction that may still be running has committed (ms). */
const STATUS_MS = 2_000;

/**
 * SQLSTATE that `pg_xact_status` reports for an unknown transaction number. After a crash of the server it means that
 * nothing of the transaction, and so not its commit either, had reached the disk. On a standby the commit may still
 * come.
 */
const UNKNOWN_TRANSACTION = '22023';

/** The tenant of a transaction. */
interface OfTenant {
  readonly tenant: number;
  /** Whether the transaction has to set the tenant, since the session is set to another one. */
  readonly setsTenant: boolean;
}

/** State of the tenant that is read at the beginning of a read: its counter of writes. */
export interface BegunRead {
  /** Whether the counter has been read already, so that `number` takes no round trip. */
  isKnown(): boolean;
  /** Returns the counter of writes; 0 if the tenant does not exist. */
  number(): number;
}

/** State of the tenant that is read at the beginning of a write. */
export interface BegunWrite {
  /** The tenant's counter of writes, with this write counted. */
  readonly writes: number;
  /**
   * The last row number of each requested table; a table that has had no rows is left out. Also `NEWEST_IN_WORDS` and
   * `HAS_EVENTS`, under which there are numbers of another kind.
   */
  readonly numbers: ReadonlyMap<string, number>;
}

/**
 * Runs `work` in one transaction that holds the tenant's write lock; it is rolled back if `work` throws. Statements
 * that are still queued when `work` returns are sent together with the commit.
 * @param numbered tables whose last row numbers `work` gets
 * @param ask may queue queries, which share the first round trip
 * @throws EngineError `not_found` if the tenant does not exist; `unavailable` if the tenant moves to another database
 *   or has moved, the lock was not free for 5 s, the session was lost before the commit, or the outcome of the commit
 *   cannot be found out; `internal` if `work` returned although one of its statements had failed; whatever `work`
 *   throws
 */
export function inWrite<T>(
  connection: BlockingConnection,
  {
    tenant,
    setsTenant,
    numbered,
    ask,
  }: OfTenant & { readonly numbered: readonly string[]; readonly ask?: (() => void) | undefined },
  work: (begun: BegunWrite) => T,
): T {
  begin(connection, { text: 'BEGIN', name: 'begin' }, { tenant, setsTenant });
  const locked = connection.queue({ text: LOCK_TENANT, values: [tenant], name: 'lock-tenant' });
  let transaction: WriteTransaction | undefined;
  let result: T;
  try {
    const read = connection.queue({ text: READ_NUMBERS, values: [tenant, numbered], name: 'read-numbers' });
    ask?.();
    const { rows } = read.result();
    const [number, writes, mark] = (locked.result().rows[0] ?? []) as [string?, number?, string?];
    if (number === undefined) throw refusal(connection, tenant);
    const readMark = `SELECT last_write::text FROM tenants WHERE tenant = ${tenant}`;
    transaction = { number, mark: { text: mark!, read: readMark } };
    result = inSession(connection, () => work({ writes: writes!, numbers: new Map(rows as [string, number][]) }));
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
 * Returns the EngineError that says why a tenant's row could not be locked: `not_found` if there is no such tenant,
 * `unavailable` if it moves to another database or has moved.
 */
function refusal(connection: BlockingConnection, tenant: number): EngineError {
  const [row] = connection.query(READ_MARK, [tenant], 'read-mark').rows;
  if (row === undefined) return new EngineError('not_found', 'no such tenant');
  return row[0] === null
    ? new EngineError('unavailable', 'the tenant moves to another database: its writes wait for the end of the move', {
        retryAfterMs: 5_000,
      })
    : new EngineError('unavailable', 'the tenant has just moved to another database', { retryAfterMs: 1_000 });
}

/** A transaction that writes, by which it is found out whether it has committed. */
interface WriteTransaction {
  /**
   * Number of the transaction, as `pg_current_xact_id` returns it. If a crash or a failover takes a transaction back
   * before the log had it, the server gives its number to another one.
   */
  readonly number: string;
  /**
   * Text that the transaction has stored in a row that every later transaction of its kind changes, and SQL that reads
   * that text outside of the session's search path; undefined if it has stored none.
   */
  readonly mark: { readonly text: string; readonly read: string } | undefined;
}

/**
 * Runs `work` in the transaction that is already open, and commits it; rolls it back if `work` throws.
 * @throws EngineError `unavailable` and `internal` as `inWrite`; whatever `work` throws
 */
export function endWrite<T>(connection: BlockingConnection, transaction: WriteTransaction, work: () => T): T {
  let result: T;
  try {
    result = inSession(connection, work);
  } catch (error) {
    rollback(connection);
    throw error;
  }
  commit(connection, transaction);
  return result;
}

/**
 * Runs `work` in the present session, whose loss ends the open transaction: no statement of `work` runs in a session
 * that was made meanwhile.
 * @throws EngineError `unavailable` if the session was lost, even if `work` returns; whatever `work` throws
 */
function inSession<T>(connection: BlockingConnection, work: () => T): T {
  const { session } = connection;
  connection.bindTo(session);
  try {
    const result = work();
    if (connection.session === session) return result;
  } finally {
    connection.bindTo(null);
  }
  throw new EngineError('unavailable', 'the session was lost before the commit: nothing was written', {
    retryAfterMs: 1_000,
  });
}

/** A snapshot that reads share. It is taken with the first statement that is sent after it began. */
export interface Snapshot {
  /** The tenant's counter of writes in the snapshot. */
  readonly writes: BegunRead;
  /** Ends the snapshot without waiting for the server. */
  end(): void;
}

/** Begins a snapshot on a connection that has no open transaction. Nothing is sent yet. */
export function beginSnapshot(connection: BlockingConnection, of: OfTenant): Snapshot {
  begin(connection, { text: 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', name: 'begin-read' }, of);
  const writes = connection.queue({ text: READ_WRITES, values: [of.tenant], name: 'writes' });
  return {
    writes: {
      isKnown: () => !writes.isWaiting,
      number: () => (writes.result().rows[0]?.[0] as number | undefined) ?? 0,
    },
    end() {
      if (writes.isWaiting) connection.forget();
      else connection.post('ROLLBACK');
    },
  };
}

/** Queues the statements that begin a transaction, so that they are sent in the round trip of its first query. */
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
 * Commits a transaction. If the session is lost during the commit, it asks the server over a new session whether the
 * transaction committed.
 * @throws the error of the commit or of a queued statement, unless the transaction is known to have committed;
 *   EngineError `internal` if the server rolled back, since a statement had failed
 */
function commit(connection: BlockingConnection, transaction: WriteTransaction): void {
  let did: string;
  try {
    did = connection.query('COMMIT', [], 'commit').command;
  } catch (error) {
    if (postgresError(error)?.isLost !== true) {
      rollback(connection);
      throw error;
    }
    return settleLost(connection, transaction, error as EngineError);
  }
  // A transaction in which a statement failed is rolled back by its commit, which says so and is no error.
  if (did !== 'COMMIT') throw new EngineError('internal', 'a write went on after one of its statements had failed');
}

/**
 * Returns if a transaction whose commit was not answered has committed after all.
 * @param lost the error of the commit
 * @throws EngineError `unavailable` otherwise, with `mayBeWritten` unless the server says that it has not committed
 */
function settleLost(connection: BlockingConnection, transaction: WriteTransaction, lost: EngineError): void {
  let error = lost;
  try {
    const fate = fateOf(connection, transaction);
    if (fate === 'aborted') throw lost;
    if (fate === 'committed') return awaitStandby(connection);
  } catch (later) {
    if (later === lost) throw lost;
    error = later as EngineError;
  }
  const { code, message, cause, retryAfterMs = 1_000 } = error;
  throw new EngineError(code, message, { cause, retryAfterMs, mayBeWritten: true });
}

/**
 * Waits until the synchronous standby, if there is one, has every commit that was made so far. A commit whose wait for
 * the standby was broken off, as when its server process ends, is visible although no standby has it. The log keeps the
 * order of commits, so a commit that has waited proves that those before it are there too.
 * @throws EngineError `unavailable` if the session is lost meanwhile, or if the standby does not answer in time
 */
function awaitStandby(connection: BlockingConnection): void {
  connection.query(COMMIT_NOTHING);
}

/**
 * Asks the server what became of a transaction. It is `unknown` if the transaction is still running after two seconds,
 * if the server is a standby that has not received it by then, and if a later one has replaced its mark.
 */
function fateOf(
  connection: BlockingConnection,
  { number, mark }: WriteTransaction,
): 'committed' | 'aborted' | 'unknown' {
  const end = performance.now() + STATUS_MS;
  do {
    let asked: number | null = null;
    try {
      // Before the status, as a standby may get the commit and be promoted in between. It knows of less than there is.
      const isStandby = connection.query('SELECT pg_is_in_recovery()').rows[0]![0] === 1;
      if (!isStandby) asked = connection.session;
      const [[status] = []] = connection.query(`SELECT pg_xact_status('${number}'::xid8)`).rows;
      const isMarked = () => mark === undefined || connection.query(mark.read).rows[0]?.[0] === mark.text;
      if (status === 'committed') return isMarked() ? 'committed' : 'unknown';
      // A number that is too old to be known says nothing.
      if (status === 'aborted' && asked !== null) return 'aborted';
      if (status !== 'in progress' && status !== 'aborted') return 'unknown';
    } catch (error) {
      const cause = postgresError(error);
      const isUnknown = cause?.code === UNKNOWN_TRANSACTION;
      if (isUnknown && asked !== null && connection.session === asked) return 'aborted';
      if (!isUnknown && cause?.isLost !== true) throw error;
    }
    Atomics.wait(sleeper, 0, 0, 10);
  } while (performance.now() < end);
  return 'unknown';
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));
