/**
 * A thread's connection to the control schema in PostgreSQL, which the control database and the shared counters of the
 * thread use together. The schema stands beside the tenants' schema, whose functions its statements use.
 */

import path from 'node:path';
import { EngineError } from '../errors.ts';
import {
  openBlockingConnection,
  postgresError,
  type BlockingConnection,
  type Patience,
  type WatchedNumber,
} from '../store/postgres/blocking-connection.ts';
import type { Catalog } from '../store/postgres/catalog.ts';
import { BEGIN_SCHEMA_CHANGE, migrateSchema } from '../store/postgres/migrate-schema.ts';
import { readCatalog } from '../store/postgres/open-postgres-store.ts';
import type { StatementContext } from '../store/postgres/postgres-statement.ts';
import { endWrite } from '../store/postgres/unit-of-work.ts';

const MIGRATIONS = path.join(import.meta.dirname, 'postgres-migrations');
/** The thread that serves requests waits for this connection, so it waits for less than a tenant's connections do. */
const PATIENCE: Patience = { connectMs: 5_000, statementMs: 15_000 };
/** Number of the services' lock: "Carm" in ASCII. */
const SERVICE_LOCK = 0x4361726d;
/**
 * Takes the lock that says that a service uses the database: every session of a process has it together with the
 * others. `cairn move` wants it alone.
 */
const SHARE_DATABASE = `pg_try_advisory_lock_shared(${SERVICE_LOCK}, hashtext(current_schema()))`;
const TAKE_DATABASE = `pg_try_advisory_lock(${SERVICE_LOCK}, hashtext(current_schema()))`;
/** Attempts to take the database alone, and the pause between two (ms): a killed process still ends a statement. */
const TAKE_ATTEMPTS = 30;
const TAKE_PAUSE_MS = 100;
/** Least time between two attempts to get a new connection, or a new watch, ms. */
const RENEW_MS = 5_000;

export interface ControlConnection {
  readonly catalog: Catalog;
  /** Runs a statement. Outside of a transaction it runs once more on a new session if the session was lost. */
  readonly query: StatementContext['query'];
  /**
   * Runs `work` in one transaction that begins with the statements `begin`; they return `pg_current_xact_id()` as text.
   * @throws EngineError as `inWrite`; whatever `work` throws
   */
  write<T>(begin: string, work: () => T): T;
  /** Runs `work` on one snapshot, or in the transaction that is open already. */
  read<T>(work: () => T): T;
  readonly isInTransaction: boolean;
  /** Watches the number of changes of tenants, keys, limits and settings; all callers share one watch. */
  watchGeneration(): WatchedNumber;
  /**
   * Takes the database for this connection alone, until it is closed.
   * @throws EngineError `conflict` while another process uses it
   */
  takeAlone(): void;
  /** Name of the tenants' schema, quoted. */
  readonly tenantsSchema: string;
  /** Number of round trips so far. */
  readonly roundTrips: number;
  /** Gives the connection back; it is closed with its last user. */
  close(): void;
}

interface Shared {
  readonly database: string;
  connection: BlockingConnection;
  readonly catalog: Catalog;
  /** The search path of the session: the control schema, then that of the tenants. */
  readonly searchPath: string;
  watched: WatchedNumber | undefined;
  /** Session in which the search path was set. */
  setIn: number | null;
  isInTransaction: boolean;
  /** Times from which the connection may be renewed, and a watch may begin, by the monotonic clock (ms). */
  renewFrom: number;
  watchFrom: number;
  users: number;
}

/** The connections of this thread by the address of the database. */
const connections = new Map<string, Shared>();

/**
 * Opens this thread's connection, and makes the control schema if it is missing.
 * @throws EngineError `forbidden` if the role may not make the schema; the errors of `migrateSchema`; `unavailable`
 */
export function openControlConnection(database: string): ControlConnection {
  const shared = connections.get(database) ?? connect(database);
  connections.set(database, shared);
  shared.users += 1;
  let isOpen = true;
  /** Returns the connection for a statement. A late one, of a timer or a request, must not open it anew. */
  const current = () => {
    if (!isOpen) throw new EngineError('unavailable', 'the control database is closed');
    return shared;
  };
  return {
    catalog: shared.catalog,
    query: (...statement) => query(current(), statement),
    write: (begin, work) =>
      inTransaction(current(), begin, ([transaction]) => endWrite(shared.connection, transaction as string, work)),
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
      shared.connection.close();
    },
  };
}

function query(shared: Shared, statement: Parameters<StatementContext['query']>) {
  if (shared.isInTransaction) return shared.connection.query(...statement);
  return onceMore(() => {
    setSearchPath(shared);
    return shared.connection.query(...statement);
  });
}

/** Returns the watch of the connection, which begins anew on a new connection. */
function watched(shared: Shared): WatchedNumber {
  renew(shared);
  if (shared.watched !== undefined) return shared.watched;
  if (performance.now() < shared.watchFrom)
    throw new EngineError('unavailable', 'the database does not answer', { retryAfterMs: 1_000 });
  shared.watchFrom = performance.now() + RENEW_MS;
  const schema = shared.searchPath.split(', ')[0]!;
  return (shared.watched = shared.connection.watch(`SELECT generation FROM ${schema}.access_generation`));
}

/**
 * Takes a new connection in place of one that was given up, at most every `RENEW_MS`: while the server is out of reach,
 * each attempt may hold this thread up.
 */
function renew(shared: Shared): void {
  const now = performance.now();
  if (!shared.connection.isClosed || now < shared.renewFrom) return;
  shared.connection = openBlockingConnection(shared.database);
  shared.connection.waitFor(PATIENCE);
  Object.assign(shared, { watched: undefined, setIn: null, renewFrom: now + RENEW_MS });
}

/** Runs `work`, and once more if the session was lost: a database that was restarted has ended all sessions. */
function onceMore<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (postgresError(error)?.isLost !== true) throw error;
    return work();
  }
}

function inTransaction<T>(shared: Shared, begin: string, work: (first: readonly unknown[]) => T): T {
  // Nothing is lost if the session ends here, as nothing was done.
  const { rows } = onceMore(() => {
    setSearchPath(shared);
    return beginWith(shared.connection, begin);
  });
  shared.isInTransaction = true;
  try {
    return work(rows[0]!);
  } finally {
    shared.isInTransaction = false;
  }
}

/** Runs the statements that begin a transaction. Where a later one of them fails, the transaction is open already. */
function beginWith(connection: BlockingConnection, begin: string) {
  try {
    return connection.query(begin);
  } catch (error) {
    if (connection.session !== null) connection.query('ROLLBACK');
    throw error;
  }
}

function setSearchPath(shared: Shared): void {
  renew(shared);
  const { connection } = shared;
  if (connection.session !== null && connection.session === shared.setIn) return;
  const { rows } = connection.query(`SET search_path = ${shared.searchPath}; SELECT ${SHARE_DATABASE}`);
  if (rows[0]![0] !== 1) throw new EngineError('conflict', 'a `cairn move` uses the database: wait for its end');
  shared.setIn = connection.session;
}

function connect(database: string): Shared {
  const connection = openBlockingConnection(database);
  try {
    const { catalog, searchPath } = prepareSchemas(connection);
    connection.waitFor(PATIENCE);
    const state = { watched: undefined, setIn: null, isInTransaction: false, renewFrom: 0, watchFrom: 0, users: 0 };
    return { database, connection, catalog, searchPath, ...state };
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Brings both schemas up to date. While another process does that, it waits. */
function prepareSchemas(connection: BlockingConnection): Pick<Shared, 'catalog' | 'searchPath'> {
  migrateSchema(connection);
  const tenants = connection.query('SELECT current_schema()').rows[0]![0] as string;
  const control = `${tenants}_control`;
  makeSchema(connection, control);
  // Alone while its tables are made, as names of the tenants' schema must not be taken for its own.
  connection.query(`SET search_path = "${control}"`);
  migrateSchema(connection, MIGRATIONS);
  return { catalog: readCatalog(connection), searchPath: `"${control}", "${tenants}"` };
}

/** Makes a schema unless it is there: a role that was given the schema need not be allowed to make it. */
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
