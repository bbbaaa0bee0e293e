/**
 * Opens the stores of tenants in a PostgreSQL database, for one thread. Stores of one role share a connection, which is
 * opened with the first store and closed with the last.
 */

import { EngineError } from '../../errors.ts';
import type { OpenStoreOptions, Store } from '../open-store.ts';
import { openBlockingConnection, type BlockingConnection, type Timeouts } from './blocking-connection.ts';
import type { Catalog } from './catalog.ts';
import { StandbyIsBehind } from '../standby-is-behind.ts';
import { endHeld } from './held-reads.ts';
import { isMigrated, makeOrRequireSchema } from './migrate-schema.ts';
import { ensureTenant, openPostgresStore, readCatalog } from './open-postgres-store.ts';
import { findPlaced, notePlacement } from './placed-tenant.ts';
import { tryToReach, withPauses } from './unreachable-database.ts';

/**
 * Use of a connection: the role of its stores; reading from a standby, on which nothing can be made; or looks, which
 * are reads of a thread that serves requests.
 */
type ConnectionUse = OpenStoreOptions['role'] | 'standby' | 'look';

/**
 * A connection that all users of one use and address share, with the number of its users: stores and those who `hold`
 * it.
 */
interface Shared {
  readonly connection: BlockingConnection;
  readonly catalog: Catalog;
  users: number;
}

/** The connections of this thread by use and database address. */
const connections = new Map<string, Shared>();

/** Where the data of a tenant is in PostgreSQL: the database and the tenant's id there. */
export interface TenantPlace {
  /** Address of the database, `postgres://…`. */
  readonly database: string;
  /** Id of the tenant. */
  readonly tenant: string;
  /** Name of a further database in OM_DATABASES; null, the default, for the one of OM_DATABASE_URL. */
  readonly name?: string | null | undefined;
  /**
   * Number of the tenant's placement, which its row must have too; 0 for a tenant that was never placed. A tenant that
   * was placed has a row from the beginning, and opening it must not make one: a wrong address would then show an empty
   * tenant. If it is left out, the row of the tenant may have any number.
   */
  readonly placement?: number;
  /**
   * Whether a reader waits for 5 s at most for a statement, since its thread serves requests; false by default. Then
   * its store takes the connection of looks.
   */
  readonly waitsBriefly?: boolean;
}

export interface TenantStoreOptions extends TenantPlace {
  /**
   * Path that the tenant's SQLite file would have; no file is there. It becomes `Store.path`: a process knows the
   * tenant by it, and uploads that arrive lie beside it.
   */
  readonly path: string;
  readonly role: OpenStoreOptions['role'];
}

/**
 * Opens the store of a tenant in a database, and makes the schema, and a tenant that was never placed, if they are
 * missing. Open a reader only of a tenant that is there: it fails to make one if its connection is read-only already.
 * @throws EngineError `unavailable` if the database does not answer, does not have a tenant that was placed there, or
 *   has it with another number of its placement; the errors of `makeOrRequireSchema`
 */
export function openTenantStore(options: TenantStoreOptions): Store {
  const { placement = 0, role } = options;
  return openOn(options, (connection, id) => {
    let tenant = findPlaced(connection, options);
    if (tenant === undefined && placement === 0) {
      ensureTenant(connection, id);
      tenant = findPlaced(connection, options);
    }
    if (tenant === undefined)
      throw new EngineError('unavailable', `the database in which tenant ${id} is placed does not have it`);
    const { number, lacksPlacement } = tenant;
    if (lacksPlacement && role !== 'reader') notePlacement(connection, number, placement);
    return number;
  })!;
}

/**
 * Opens a tenant's store for reading; undefined if the database has no row of the tenant, as of one that was never
 * used, or has it with another number of its placement. The schema is made if it is missing.
 * @throws EngineError `unavailable` if the database does not answer; the errors of `makeOrRequireSchema`
 */
export function lookIntoTenant(options: Omit<TenantStoreOptions, 'role'>): Store | undefined {
  return openOn({ ...options, role: 'reader' }, (connection) => findPlaced(connection, options)?.number);
}

/** A shared connection, as one of its users has it. */
export interface HeldConnection {
  readonly shared: Shared;
  /** Returns the connection for a statement outside of a store's transactions, so that no held read is in its way. */
  connection(): BlockingConnection;
  /** Ends this user's use of the connection, which is closed after its last user. Call it once. */
  release(): void;
}

/**
 * Returns the shared connection of a use, and opens it if needed. It is closed when its last user calls `release`.
 * Opening it makes the schema if it is missing, but for the use `standby`.
 * @throws EngineError `unavailable` if the database does not answer; the errors of `makeOrRequireSchema`;
 *   StandbyIsBehind if a standby lacks the newest schema
 */
export function hold(
  use: ConnectionUse,
  { database, name = null }: Pick<TenantPlace, 'database' | 'name'>,
): HeldConnection {
  const key = `${use} ${database}`;
  const shared = connections.get(key) ?? (use === 'standby' ? connectStandby(database) : connect(database, name, use));
  connections.set(key, shared);
  shared.users += 1;
  const release = () => {
    shared.users -= 1;
    if (shared.users > 0) return;
    if (connections.get(key) === shared) connections.delete(key);
    shared.connection.close();
  };
  const connection = () => {
    endHeld(shared.connection);
    return shared.connection;
  };
  return { shared, connection, release };
}

/**
 * Opens a tenant's store on a standby, for reading only.
 * @throws StandbyIsBehind if the standby has not received the tenant, as it was placed last, or the newest schema;
 *   EngineError `unavailable` if it does not answer
 */
export function openStandbyStore(options: Omit<TenantStoreOptions, 'role'>): Store {
  const find = (connection: BlockingConnection) => {
    const found = findPlaced(connection, options);
    // A row without the number of a placement may be of any earlier one.
    return found?.lacksPlacement === true ? undefined : found?.number;
  };
  const store = openOn({ ...options, role: 'reader' }, find, 'standby');
  if (store === undefined) throw new StandbyIsBehind('the tenant');
  return store;
}

/**
 * Opens a store on a shared connection.
 * @param numberOf returns the number of the tenant; undefined if there is none, and then no store is opened
 */
function openOn(
  { tenant: id, path, role, waitsBriefly = false, ...place }: TenantStoreOptions,
  numberOf: (connection: BlockingConnection, id: string) => number | undefined,
  use: ConnectionUse = waitsBriefly && role === 'reader' ? 'look' : role,
): Store | undefined {
  const { shared, connection: connected, release } = hold(use, place);
  let store: Store | undefined;
  try {
    const { catalog } = shared;
    const connection = connected();
    const tenant = numberOf(connection, id);
    if (tenant !== undefined) store = openPostgresStore({ connection, catalog, tenant, path, role });
  } finally {
    if (store === undefined) release();
  }
  const closeStore = store?.close;
  return (
    store &&
    Object.assign(store, {
      close() {
        if (store.isOpen) release();
        closeStore!();
      },
    })
  );
}

/**
 * Timeouts of a connection for looks. The thread serves no requests while it waits, and may look again.
 */
const LOOK_TIMEOUTS: Timeouts = { connectMs: 2_000, statementMs: 5_000 };

function connect(database: string, name: string | null, use: ConnectionUse): Shared {
  return tryToReach(name, () => {
    const connection = openBlockingConnection(database);
    try {
      if (use === 'look') connection.setTimeouts(LOOK_TIMEOUTS);
      makeOrRequireSchema(connection, name);
      const catalog = readCatalog(connection);
      return { connection: name === null ? connection : withPauses(connection, name), catalog, users: 0 };
    } catch (error) {
      connection.close();
      throw error;
    }
  });
}

/**
 * Timeouts of a connection to a standby. They are shorter than those of other connections, as the primary can answer
 * instead.
 */
export const STANDBY_TIMEOUTS: Timeouts = { connectMs: 2_000, statementMs: 10_000 };

function connectStandby(database: string): Shared {
  const connection = openBlockingConnection(database);
  connection.setTimeouts(STANDBY_TIMEOUTS);
  try {
    if (!isMigrated(connection)) throw new StandbyIsBehind('the schema of this version');
    return { connection, catalog: readCatalog(connection), users: 0 };
  } catch (error) {
    connection.close();
    throw error;
  }
}
