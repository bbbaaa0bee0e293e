/**
 * Opens the stores of tenants in a PostgreSQL database, for one thread. Stores of one role share a connection, which is
 * opened with the first store and closed with the last.
 */

import { EngineError } from '../../errors.ts';
import type { OpenStoreOptions, Store } from '../open-store.ts';
import { openBlockingConnection, type BlockingConnection } from './blocking-connection.ts';
import type { Catalog } from './catalog.ts';
import { migrateSchema } from './migrate-schema.ts';
import { ensureTenant, findTenant, openPostgresStore, readCatalog } from './open-postgres-store.ts';

/** A connection that the stores of one role share, with the number of its open stores. */
interface Shared {
  readonly connection: BlockingConnection;
  readonly catalog: Catalog;
  stores: number;
}

/** The connections of this thread by role and database address. */
const connections = new Map<string, Shared>();

/** Where the data of a tenant is in PostgreSQL: the database and the tenant's id there. */
export interface TenantPlace {
  /** Address of the database, `postgres://…`. */
  readonly database: string;
  /** Id of the tenant. */
  readonly tenant: string;
}

export interface TenantStoreOptions extends TenantPlace {
  /** Path that the tenant's SQLite file would have. */
  readonly path: string;
  readonly role: OpenStoreOptions['role'];
}

/**
 * Opens the store of a tenant in a database, and makes the tenant and the schema if they are missing. A reader cannot
 * make the tenant.
 * @throws EngineError `unavailable` if the database does not answer; the errors of `migrateSchema`
 */
export function openTenantStore(options: TenantStoreOptions): Store {
  return openOn(options, ensureTenant)!;
}

/**
 * Opens a tenant's store for reading; undefined if the tenant has no data, because it was never used. Throws as
 * `openTenantStore`.
 */
export function lookIntoTenant(options: Omit<TenantStoreOptions, 'role'>): Store | undefined {
  return openOn({ ...options, role: 'reader' }, findTenant);
}

/** Reads version stamps of all tenants in one statement, by which a caller notices which tenants have changed. */
export interface TenantStamps {
  /** Returns a stamp for each tenant id: the tenant's number, a comma, and a counter that rises with every write. */
  read(): ReadonlyMap<string, string>;
  close(): void;
}

/** Makes a reader of version stamps for a database. It uses the connection of this thread's `reader` stores. */
export function openTenantStamps(database: string): TenantStamps {
  let held: { readonly shared: Shared; readonly release: () => void } | undefined;
  return {
    read() {
      held ??= hold('reader', database);
      const { rows } = held.shared.connection.query('SELECT id, tenant, writes FROM tenants', [], 'tenant_stamps');
      return new Map(rows.map(([id, tenant, writes]) => [id as string, `${String(tenant)},${String(writes)}`]));
    },
    close: () => held?.release(),
  };
}

/** Returns the shared connection of a role, and opens it if needed. It is closed when its last user calls `release`. */
function hold(role: OpenStoreOptions['role'], database: string): { shared: Shared; release: () => void } {
  const name = `${role} ${database}`;
  const shared = connections.get(name) ?? connect(database);
  connections.set(name, shared);
  shared.stores += 1;
  const release = () => {
    shared.stores -= 1;
    if (shared.stores > 0) return;
    connections.delete(name);
    shared.connection.close();
  };
  return { shared, release };
}

/**
 * Opens a store on a shared connection.
 * @param numberOf returns the number of the tenant; undefined if there is none, and then no store is opened
 */
function openOn(
  { database, tenant: id, path, role }: TenantStoreOptions,
  numberOf: (connection: BlockingConnection, id: string) => number | undefined,
): Store | undefined {
  const { shared, release } = hold(role, database);
  let store: Store | undefined;
  try {
    const { connection, catalog } = shared;
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

function connect(database: string): Shared {
  const connection = openBlockingConnection(database);
  try {
    migrateSchema(connection);
    return { connection, catalog: readCatalog(connection), stores: 0 };
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Runs `work` on a new connection, which is closed afterwards. */
function withConnection<T>(database: string, work: (connection: BlockingConnection) => T): T {
  const connection = openBlockingConnection(database);
  try {
    migrateSchema(connection);
    return work(connection);
  } finally {
    connection.close();
  }
}

/**
 * Throws EngineError `conflict` if the database still has rows of a deleted tenant with this id, so that no new tenant
 * gets that data.
 */
export function refuseLeftTenant(database: string, tenant: string): void {
  const isThere = withConnection(database, (connection) => findTenant(connection, tenant) !== undefined);
  if (isThere) throw new EngineError('conflict', `the database still has rows of an earlier tenant ${tenant}`);
}

/** Deletes all rows of a tenant; does nothing if there are none. */
export function eraseTenantRows(database: string, tenant: string): void {
  withConnection(database, (connection) => {
    const no = findTenant(connection, tenant);
    if (no === undefined) return;
    // Without a feed, no trigger notes an event of the memories that go.
    connection.query(`BEGIN; SELECT set_config('cairn.tenant', '${no}', true);
      DELETE FROM event_feed WHERE tenant = ${no}; DELETE FROM tenants WHERE tenant = ${no}; COMMIT`);
  });
}
