/**
 * A thread's connection to the control schema in PostgreSQL. The control database and the shared counters of the thread
 * use the same connection. The tenants' data is in a second schema, whose functions the statements use.
 */

import path from 'node:path';
import { EngineError } from '../errors.ts';
import {
  openBlockingConnection,
  postgresError,
  type BlockingConnection,
  type Timeouts,
  type WatchedNumber,
  watchNumber,
} from '../store/postgres/blocking-connection.ts';
import type { Catalog } from '../store/postgres/catalog.ts';
import { BEGIN_SCHEMA_CHANGE, migrateSchema } from '../store/postgres/migrate-schema.ts';
import { readCatalog } from '../store/postgres/open-postgres-store.ts';
import type { StatementContext } from '../store/postgres/postgres-statement.ts';
import { KEEPALIVE } from '../store/postgres/session-settings.ts';
import { endWrite } from '../store/postgres/unit-of-work.ts';

const MIGRATIONS = path.join(import.meta.dirname, 'postgres-migrations');
/**
 * Timeouts of reads. They are shorter than those of a tenant's connection, because the thread that serves requests
 * waits for this one.
 */
const READ_TIMEOUTS: Timeouts = { connectMs: 2_000, statementMs: 5_000 };
/** Timeouts of writes, which may have to wait for a lock and for a standby. */
const WRITE_TIMEOUTS: Timeouts = { connectMs: 5_000, statementMs: 15_000 };
/** Number of the advisory lock that shows that services use the database: "Carm" in ASCII. */
const SERVICE_LOCK = 0x4361726d;
/**
 * SQL that takes the services' advisory lock in shared mode, if it is free. Every session of a service on the control
 * schema holds it; `cairn move` takes the lock alone (`TAKE_DATABASE`).
 */
const SHARE_DATABASE = `pg_try_advisory_lock_shared(${SERVICE_LOCK}, hashtext(current_schema()))`;
/** SQL that takes the services' advisory lock alone, if no other session holds it. */
const TAKE_DATABASE = `pg_try_advisory_lock(${SERVICE_LOCK}, hashtext(current_schema()))`;
/**
 * Greatest number of attempts to take the services' lock alone. There are several, since the session of a killed
 * process may live on until its statement ends.
 */
const TAKE_ATTEMPTS = 30;
/** Pause between two attempts to take the services' lock alone (ms). */
const TAKE_PAUSE_MS = 100;
/**
 * Least time between the starts of two threads that watch the generation (ms). The second one is started only if the
 * first has died.
 */
const RENEW_MS = 5_000;

/**
 * One use of the thread's connection to the control schema. Statements of the control database, of shared counters and
 * of a move take turns on it. Once the generation is watched, nothing waits for a server that has been silent for 5 s:
 * statements outside of a transaction, and the first ones of a transaction, throw EngineError `unavailable` at once.
 */
export interface ControlConnection {
  readonly catalog: Catalog;
  /**
   * Runs a statement. If the session was lost outside of a transaction, the statement runs once more on a new session,
   * but not if the server did not answer in time.
   */
  readonly query: StatementContext['query'];
  /**
   * Runs `work` in one transaction, and rolls it back if `work` throws.
   * @param begin statements that begin the transaction; the last one returns `pg_current_xact_id()` as text, and if it
   *   has changed `last_write` of `access_generation`, that value as text
   * @throws EngineError `unavailable` if a lock was not free in time, the session was lost before the commit, or the
   *   outcome of the commit cannot be found out; whatever `work` throws
   */
  write<T>(begin: string, work: () => T): T;
  /** Runs `work` on one snapshot of the database, or in the open transaction if there is one. */
  read<T>(work: () => T): T;
  readonly isInTransaction: boolean;
  /**
   * Starts to watch the generation counter, which each change of tenants, keys, limits or settings raises. A thread in
   * the background reads it every 250 ms, and all users of this connection share that watch. The first read blocks.
   * `latest` throws EngineError `unavailable` after 5 s without a read, and after `close`.
   */
  watchGeneration(): Pick<WatchedNumber, 'latest'>;
  /**
   * Takes the services' lock alone until the connection is closed, so that no other process can use the database.
   * @throws EngineError `conflict` if another session still holds the lock after about 3 s
   */
  takeAlone(): void;
  /** Name of the tenants' schema, quoted. */
  readonly tenantsSchema: string;
  /** Number of round trips to the server since this connection was last opened. */
  readonly roundTrips: number;
  /** Ends this use of the connection. The connection is closed when its last user has called this. */
  close(): void;
}

interface Shared {
  readonly database: string;
  readonly connection: BlockingConnection;
  readonly catalog: Catalog;
  /** Value of `search_path`: the control schema, then the tenants' schema. */
  readonly searchPath: string;
  watched: WatchedNumber | undefined;
  /** Id of the session in which the search path was set; null if it was not set. */
  setIn: number | null;
  isInTransaction: boolean;
  /** Earliest time at which another thread may be started that watches the generation, by the monotonic clock (ms). */
  watchFrom: number;
  users: number;
}

/** The open connections of this thread by the address of the database. */
const connections = new Map<string, Shared>();

/**
 * Returns a use of this thread's connection to a database, which the first use opens. Opening it migrates the tenants'
 * schema and the control schema, which is made if it is missing.
 * @param database address of the database, `postgres://…`
 * @throws EngineError `forbidden` if the role may not make the schema; the errors of `migrateSchema`; `unavailable`
 */
export function openControlConnection(database: string): ControlConnection {
  const shared = connections.get(database) ?? connect(database);
  connections.set(database, shared);
  shared.users += 1;
  let isOpen = true;
  /**
   * Returns the connection for a statement. Throws EngineError `unavailable` after `close`, so that a late timer or
   * request does not open the connection again.
   */
  const current = () => {
    if (!isOpen) throw new EngineError('unavailable', 'the control database is closed');
    return shared;
  };
  return {
    catalog: shared.catalog,
    query: (...statement) => query(current(), statement),
    write(begin, work) {
      const { connection } = current();
      connection.setTimeouts(WRITE_TIMEOUTS);
      try {
        return inTransaction(shared, begin, (first) => endWrite(connection, begunWrite(shared, first), work));
      } finally {
        connection.setTimeouts(READ_TIMEOUTS);
      }
    },
    read: (work) =>
      shared.isInTransaction
        ? work()
        : inTransaction(current(), 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1', () => {
            try {
              return work();
            } finally {
              if (shared.connection.session !== null) shared.connection.query('ROLLBACK');
            }
          }),
    get isInTransaction() {
      return shared.isInTransaction;
    },
    get roundTrips() {
      return shared.connection.roundTrips;
    },
    takeAlone() {
      for (let attempt = 0; attempt < TAKE_ATTEMPTS; attempt += 1) {
        if (query(shared, [`SELECT ${TAKE_DATABASE}`, []]).rows[0]![0] === 1) return;
        Atomics.wait(sleeper, 0, 0, TAKE_PAUSE_MS);
      }
      throw new EngineError(
        'conflict',
        'other Cairn processes use the database: stop every API and worker that has it as OM_DATABASE_URL first',
      );
    },
    tenantsSchema: shared.searchPath.split(', ')[1]!,
    watchGeneration() {
      watched(current());
      return { latest: () => watched(current()).latest() };
    },
    close() {
      if (!isOpen) return;
      isOpen = false;
      shared.users -= 1;
      if (shared.users > 0) return;
      connections.delete(database);
      shared.watched?.close();
      shared.connection.close();
    },
  };
}

/** Returns the name of the control schema, quoted. */
function controlSchema({ searchPath }: Shared): string {
  return searchPath.split(', ')[0]!;
}

function query(shared: Shared, statement: Parameters<StatementContext['query']>) {
  if (shared.isInTransaction) return shared.connection.query(...statement);
  return onceMore(() => {
    prepareSession(shared);
    return shared.connection.query(...statement);
  });
}

/**
 * Returns the watch of the generation counter. If its thread has died, another one is started, but at most one in 5 s.
 */
function watched(shared: Shared): WatchedNumber {
  const { watched: present } = shared;
  if (present !== undefined && (!present.isClosed || performance.now() < shared.watchFrom)) return present;
  const text = `SELECT generation FROM ${controlSchema(shared)}.access_generation`;
  // After a watch that has ended, the number is old until the new one has read it.
  const first = { number: -1, readAt: 0n };
  if (present === undefined) {
    first.readAt = process.hrtime.bigint();
    first.number = query(shared, [text, []]).rows[0]![0] as number;
  }
  shared.watchFrom = performance.now() + RENEW_MS;
  return (shared.watched = watchNumber(shared.database, text, first));
}

/**
 * Runs `work`, and runs it once more if the session was lost, because a restarted database server has ended all
 * sessions. A server that did not answer in time is not asked again: the thread would wait twice as long.
 */
function onceMore<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    const { isLost, code } = postgresError(error) ?? {};
    if (isLost !== true || code === 'ETIMEDOUT') throw error;
    return work();
  }
}

function inTransaction<T>(shared: Shared, begin: string, work: (first: readonly unknown[]) => T): T {
  // Nothing is lost if the session ends here, as nothing was done.
  const { rows } = onceMore(() => {
    prepareSession(shared);
    return beginWith(shared.connection, begin);
  });
  shared.isInTransaction = true;
  try {
    return work(rows[0]!);
  } finally {
    shared.isInTransaction = false;
  }
}

/** Returns the transaction whose beginning returned the row `first`, for `endWrite`. */
function begunWrite(shared: Shared, first: readonly unknown[]): Parameters<typeof endWrite>[1] {
  const [number, text] = first as [string, string?];
  const read = `SELECT last_write::text FROM ${controlSchema(shared)}.access_generation`;
  return { number, mark: text === undefined ? undefined : { text, read } };
}

/** Runs the statements that begin a transaction. If one of them fails after `BEGIN`, the transaction is rolled back. */
function beginWith(connection: BlockingConnection, begin: string) {
  try {
    return connection.query(begin);
  } catch (error) {
    if (connection.session !== null) connection.query('ROLLBACK');
    throw error;
  }
}

/**
 * Makes the connection ready for a statement outside of a transaction: a new session gets keepalives and the search
 * path, and takes the services' lock in shared mode. Its transactions may be idle for more than a minute, as the
 * erasure of a tenant waits inside one for another connection.
 * @throws EngineError `unavailable` if the server has been silent for 5 s, for which this thread does not wait;
 *   `conflict` while `cairn move` holds the lock
 */
function prepareSession(shared: Shared): void {
  if (shared.watched !== undefined) watched(shared).latest();
  const { connection } = shared;
  if (connection.session !== null && connection.session === shared.setIn) return;
  const { rows } = connection.query(`${KEEPALIVE}; SET search_path = ${shared.searchPath}; SELECT ${SHARE_DATABASE}`);
  if (rows[0]![0] !== 1) throw new EngineError('conflict', 'a `cairn move` uses the database: wait for its end');
  shared.setIn = connection.session;
}

function connect(database: string): Shared {
  const connection = openBlockingConnection(database);
  try {
    const { catalog, searchPath } = prepareSchemas(connection);
    connection.setTimeouts(READ_TIMEOUTS);
    const state = { watched: undefined, setIn: null, isInTransaction: false, watchFrom: 0, users: 0 };
    return { database, connection, catalog, searchPath, ...state };
  } catch (error) {
    connection.close();
    throw error;
  }
}

/**
 * Brings the tenants' schema, which is the current one, and the control schema, which has the same name with
 * `_control`, to the newest version; the control schema is made if it is missing. It waits while another process
 * migrates them.
 * @returns the catalog, and the search path with the control schema first
 */
function prepareSchemas(connection: BlockingConnection): Pick<Shared, 'catalog' | 'searchPath'> {
  migrateSchema(connection);
  const tenants = connection.query('SELECT current_schema()').rows[0]![0] as string;
  const control = `${tenants}_control`;
  makeSchema(connection, control);
  // The search path is the control schema alone while its tables are made: no name may resolve to the other schema.
  connection.query(`SET search_path = "${control}"`);
  migrateSchema(connection, MIGRATIONS);
  return { catalog: readCatalog(connection), searchPath: `"${control}", "${tenants}"` };
}

/**
 * Makes a schema if it does not exist. The check comes first, since a role that was given the schema may lack the right
 * to make one.
 * @throws EngineError `forbidden` if the role may not make the schema
 */
function makeSchema(connection: BlockingConnection, name: string): void {
  const isThere = () => connection.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [name]).rows.length > 0;
  if (isThere()) return;
  connection.query(BEGIN_SCHEMA_CHANGE);
  try {
    if (!isThere()) connection.query(`CREATE SCHEMA "${name}"`);
    connection.query('COMMIT');
  } catch (error) {
    const { code, isLost = true } = postgresError(error) ?? {};
    if (!isLost) connection.query('ROLLBACK');
    if (code !== '42501') throw error;
    throw new EngineError(
      'forbidden',
      `the role of OM_DATABASE_URL may not make the schema ${name}, which holds tenants, keys and settings: make it ` +
        `for the role (CREATE SCHEMA "${name}" AUTHORIZATION …), or grant it CREATE on the database`,
      { cause: error },
    );
  }
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));
