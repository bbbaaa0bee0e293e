/**
 * A tenant's database in PostgreSQL, behind the `Store` that a tenant's SQLite file has. Statements are those of the
 * files in `store`, in SQLite's dialect; `dialect.ts` translates them and `name-tenant.ts` names the tenant in each.
 * What reads SQLite's own tables and pragmas (the word index, the size of the file) does not run here.
 */
import { LRUCache } from 'lru-cache';
import { EngineError } from '../../errors.ts';
import type { Store } from '../open-store.ts';
import type { Statement } from '../statement.ts';
import type { BlockingConnection } from './blocking-connection.ts';
import { READ_CATALOG, toCatalog, type Catalog, type CatalogRow } from './catalog.ts';
import { createStatement, type StatementContext } from './postgres-statement.ts';
import { inSnapshot, inWrite } from './unit-of-work.ts';

/** Most statements that a store keeps. */
const MAX_STATEMENTS = 500;

/** Reads what the translation of statements has to know of the schema, once for all stores of a process. */
export function readCatalog(connection: BlockingConnection): Catalog {
  return toCatalog(connection.query(READ_CATALOG, []).rows as unknown as CatalogRow[]);
}

/** Finds or makes the tenant of this name. @returns its number, which every row of the tenant has */
export function ensureTenant(connection: BlockingConnection, id: string): number {
  const find = () => connection.query('SELECT tenant FROM tenants WHERE id = $1', [id]).rows[0]?.[0];
  const found = find();
  if (found === undefined) connection.query('INSERT INTO tenants (id) VALUES ($1) ON CONFLICT DO NOTHING', [id]);
  return (found ?? find()) as number;
}

export interface PostgresStoreOptions {
  readonly connection: BlockingConnection;
  readonly catalog: Catalog;
  /** Number of the tenant, as `ensureTenant` returns it. */
  readonly tenant: number;
}

/** Opens a tenant's store on a connection, which several stores of one thread may share. */
export function openPostgresStore({ connection, catalog, tenant }: PostgresStoreOptions): Store {
  let isOpen = true;
  let [isWriting, isReading] = [false, false];
  let transactions = 0;
  const lastWork = new Set<(store: Store) => void>();
  const statements = new LRUCache<string, Statement>({ max: MAX_STATEMENTS });

  const begin = () => {
    if (!isOpen) throw new EngineError('unavailable', 'the store is closed');
    setTenant(connection, tenant);
  };
  const context = createContext({ connection, catalog, tenant }, () => {
    // Inside a transaction the session must not change: a new one would have neither the transaction nor the tenant.
    if (!isWriting && !isReading) begin();
  });
  const store: Store = {
    path: `postgres:${tenant}`,
    prepare(sql) {
      let statement = statements.get(sql);
      if (statement === undefined) statements.set(sql, (statement = createStatement(sql, context)));
      return statement;
    },
    write(work) {
      begin();
      return inWrite(connection, tenant, () => {
        transactions += 1;
        isWriting = true;
        try {
          const result = work();
          for (const last of lastWork) last(store);
          return result;
        } finally {
          isWriting = false;
          lastWork.clear();
        }
      });
    },
    beforeCommit: (work) => void lastWork.add(work),
    get isWriting() {
      return isWriting;
    },
    get changes() {
      return context.changes;
    },
    get transactionNo() {
      return isWriting || isReading ? transactions : undefined;
    },
    read(work) {
      if (isWriting || isReading) return work();
      begin();
      return inSnapshot(connection, () => {
        transactions += 1;
        isReading = true;
        try {
          return work();
        } finally {
          isReading = false;
        }
      });
    },
    suitToFile() {},
    get isOpen() {
      return isOpen;
    },
    close: () => void (isOpen = false),
  };
  return store;
}

/** Makes what statements run with, which counts those that changed rows. `ready` is called before each. */
function createContext(
  { connection, catalog, tenant }: PostgresStoreOptions,
  ready: () => void,
): StatementContext & { readonly changes: number } {
  let changes = 0;
  return {
    catalog,
    tenant,
    query(text, values, name) {
      ready();
      const result = connection.query(text, values, name);
      if (result.changes > 0) changes += 1;
      return result;
    },
    get changes() {
      return changes;
    },
  };
}

/** The tenant that was set last on each connection, and in which session. */
const settings = new WeakMap<BlockingConnection, { readonly session: number | null; readonly tenant: number }>();

/**
 * Sets the tenant of the session, for defaults and row-level security. One round trip where another tenant was set
 * before, or the session is new.
 */
function setTenant(connection: BlockingConnection, tenant: number): void {
  const set = settings.get(connection);
  if (connection.session !== null && set?.session === connection.session && set.tenant === tenant) return;
  connection.query(`SELECT set_config('cairn.tenant', '${tenant}', false)`);
  settings.set(connection, { session: connection.session, tenant });
}
