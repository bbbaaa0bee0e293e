/**
 * A tenant's database in PostgreSQL, behind the `Store` that a tenant's SQLite file has. Statements are those of the
 * files in `store`, in SQLite's dialect; `dialect.ts` translates them and `name-tenant.ts` names the tenant in each.
 * Words are in `word-table.ts`. What reads SQLite's pragmas (the size of the file, its log) does not run here.
 */
import { LRUCache } from 'lru-cache';
import { EngineError } from '../../errors.ts';
import type { OpenStoreOptions, Store } from '../open-store.ts';
import type { Statement } from '../statement.ts';
import { readWordsBy } from '../word-index/open-word-search.ts';
import { createBlockReader } from './block-search.ts';
import type { BlockingConnection } from './blocking-connection.ts';
import { READ_CATALOG, toCatalog, type Catalog, type CatalogRow } from './catalog.ts';
import { createStatement, type StatementContext } from './postgres-statement.ts';
import { inSnapshot, inWrite } from './unit-of-work.ts';
import { createWordTable, type OwnQuery } from './word-table.ts';

/** Most statements that a store keeps. */
const MAX_STATEMENTS = 500;

/** Reads what the translation of statements has to know of the schema, once for all stores of a process. */
export function readCatalog(connection: BlockingConnection): Catalog {
  return toCatalog(connection.query(READ_CATALOG, []).rows as unknown as CatalogRow[]);
}

/** Finds the number of a tenant, which every row of it has; undefined if there is none. */
export function findTenant(connection: BlockingConnection, id: string): number | undefined {
  return connection.query('SELECT tenant FROM tenants WHERE id = $1', [id]).rows[0]?.[0] as number | undefined;
}

/** Finds or makes the tenant of this name. @returns its number */
export function ensureTenant(connection: BlockingConnection, id: string): number {
  const found = findTenant(connection, id);
  if (found !== undefined) return found;
  connection.query('INSERT INTO tenants (id) VALUES ($1) ON CONFLICT DO NOTHING', [id]);
  return findTenant(connection, id)!;
}

export interface PostgresStoreOptions {
  readonly connection: BlockingConnection;
  readonly catalog: Catalog;
  /** Number of the tenant, as `ensureTenant` returns it. */
  readonly tenant: number;
  /** Path that a tenant's file would have, beside which its local files lie; by default there are none. */
  readonly path?: string;
  /** As for a file: a `reader` refuses writes, and a `worker` does not wait for the disk; `acknowledger` by default. */
  readonly role?: OpenStoreOptions['role'];
}

/** Settings of a session by the role of its store. */
const SESSIONS: Readonly<Record<OpenStoreOptions['role'], string>> = {
  reader: `set_config('default_transaction_read_only', 'on', false)`,
  acknowledger: `set_config('synchronous_commit', 'on', false)`,
  // If a crash takes its work back, the work is repeated from the ledger.
  worker: `set_config('synchronous_commit', 'off', false)`,
};

/** What one store does on its connection. */
interface Session {
  readonly connection: BlockingConnection;
  readonly tenant: number;
  /** Makes sure that the session is this tenant's. Call before a transaction, or a statement outside of one. */
  begin(): void;
  isOpen: boolean;
  /** The transaction that is under way; undefined outside of one. */
  doing: 'write' | 'read' | undefined;
  /** Transactions so far, statements that changed rows, and writes that were committed. */
  transactions: number;
  changes: number;
  ownWrites: number;
  /** Number of the tenant's writes at the beginning of the present transaction. */
  writesAtBegin: number;
}

/** Opens a tenant's store on a connection, which several stores of one thread and one role may share. */
export function openPostgresStore(options: PostgresStoreOptions): Store {
  const { connection, catalog, tenant, path = `postgres:${tenant}`, role = 'acknowledger' } = options;
  const session: Session = {
    ...{ connection, tenant, isOpen: true, doing: undefined },
    ...{ transactions: 0, changes: 0, ownWrites: 0, writesAtBegin: 0 },
    begin() {
      if (!session.isOpen) throw new EngineError('unavailable', 'the store is closed');
      setTenant(connection, tenant, role);
    },
  };
  const lastWork = new Set<(store: Store) => void>();
  const statements = new LRUCache<string, Statement>({ max: MAX_STATEMENTS });
  const context: StatementContext = {
    catalog,
    tenant,
    query(text, values, name) {
      // Inside a transaction the session must not change: a new one would have neither the transaction nor the tenant.
      if (session.doing === undefined) session.begin();
      const result = connection.query(text, values, name);
      if (result.changes > 0) session.changes += 1;
      return result;
    },
  };
  const own: OwnQuery = (name, text, values) => context.query(text, [tenant, ...values], name);
  const words = createWordTable({ store: () => store, query: own });
  const store: Store = {
    path,
    prepare(sql) {
      let statement = statements.get(sql);
      if (statement === undefined) statements.set(sql, (statement = createStatement(sql, context)));
      return statement;
    },
    write(work) {
      try {
        return writeIn(session, () => {
          const done = work();
          for (const last of lastWork) last(store);
          return done;
        });
      } finally {
        lastWork.clear();
        words.forget();
      }
    },
    beforeCommit: (work) => void lastWork.add(work),
    get isWriting() {
      return session.doing === 'write';
    },
    get changes() {
      return session.changes;
    },
    get transactionNo() {
      return session.doing === undefined ? undefined : session.transactions;
    },
    read: (work) => (session.doing === undefined ? readIn(session, work) : work()),
    suitToFile() {},
    othersVersion: () => othersVersion(session),
    words,
    get isOpen() {
      return session.isOpen;
    },
    close: () => void (session.isOpen = false),
  };
  readWordsBy(store, (lengths) => createBlockReader({ store, query: own, lengths }));
  return store;
}

function writeIn<T>(session: Session, work: () => T): T {
  session.begin();
  const result = inWrite(session.connection, session.tenant, (writes) => doing(session, 'write', writes - 1, work));
  session.ownWrites += 1;
  return result;
}

function readIn<T>(session: Session, work: () => T): T {
  session.begin();
  return inSnapshot(session.connection, session.tenant, (writes) => doing(session, 'read', writes, work));
}

function doing<T>(session: Session, what: 'write' | 'read', writesAtBegin: number, work: () => T): T {
  session.transactions += 1;
  Object.assign(session, { doing: what, writesAtBegin });
  try {
    return work();
  } finally {
    session.doing = undefined;
  }
}

const READ_WRITES = 'SELECT writes FROM tenants WHERE tenant = $1';

/** Every write of a tenant is counted; those of others are all but the own ones. */
function othersVersion(session: Session): number {
  const { connection, tenant, ownWrites } = session;
  if (session.doing !== undefined) return session.writesAtBegin - ownWrites;
  session.begin();
  return (connection.query(READ_WRITES, [tenant], 'writes').rows[0]![0] as number) - ownWrites;
}

/** The tenant that was set last on each connection, and in which session. */
const settings = new WeakMap<BlockingConnection, { readonly session: number | null; readonly tenant: number }>();

/**
 * Sets the tenant of the session, for defaults and row-level security. One round trip where another tenant was set
 * before, or the session is new.
 */
function setTenant(connection: BlockingConnection, tenant: number, role: OpenStoreOptions['role']): void {
  const set = settings.get(connection);
  if (connection.session !== null && set?.session === connection.session && set.tenant === tenant) return;
  connection.query(`SELECT set_config('cairn.tenant', '${tenant}', false), ${SESSIONS[role]}`);
  settings.set(connection, { session: connection.session, tenant });
}
