/**
 * Makes the `Store` of a tenant in PostgreSQL, on an open connection. The tenant was found already: `openTenantStore`
 * in `tenant-database.ts` opens the connection, finds or makes the tenant, and calls this. Statements are those of the
 * files in `store`, in SQLite's dialect; `dialect.ts` translates them and `name-tenant.ts` names the tenant in each.
 * The word index is in `word-table.ts`. Functions that read SQLite's pragmas (the size of the file, its log) do not
 * work here.
 */

import { LRUCache } from 'lru-cache';
import { SELECT_FEED } from '../events.ts';
import type { Foresight } from '../foresight.ts';
import type { Store } from '../open-store.ts';
import { readWordsBy } from '../word-index/open-word-search.ts';
import { createBlockReader } from './block-search.ts';
import type { BlockingConnection } from './blocking-connection.ts';
import { queueWithinBudget } from './counted-work.ts';
import { READ_CATALOG, toCatalog, type Catalog, type CatalogRow } from './catalog.ts';
import { onceForm } from './merge-forms.ts';
import type { OwnQuery } from './own-query.ts';
import {
  prefetchPredicted,
  createStatement,
  type PostgresStatement,
  type StatementContext,
} from './postgres-statement.ts';
import { createSession, type PostgresStoreOptions, readIn, type Session, writeIn } from './tenant-session.ts';
import { HAS_EVENTS, type BegunWrite } from './unit-of-work.ts';
import { createWordTable } from './word-table.ts';

/** Greatest number of statements that a store keeps prepared. */
const MAX_STATEMENTS = 500;

/** Reads the properties of the schema's tables that the translation of statements needs. */
export function readCatalog(connection: BlockingConnection): Catalog {
  return toCatalog(connection.query(READ_CATALOG, []).rows as unknown as CatalogRow[]);
}

/**
 * Finds the number of a tenant by its id; undefined if there is no such tenant. Each row of the tenant has this number.
 */
export function findTenant(connection: BlockingConnection, id: string): number | undefined {
  const { rows } = connection.query('SELECT tenant FROM tenants WHERE id = $1', [id], 'find-tenant');
  return rows[0]?.[0] as number | undefined;
}

/** Returns the number of the tenant with this id, and makes the tenant if it does not exist. */
export function ensureTenant(connection: BlockingConnection, id: string): number {
  const found = findTenant(connection, id);
  if (found !== undefined) return found;
  connection.query('INSERT INTO tenants (id) VALUES ($1) ON CONFLICT DO NOTHING', [id]);
  return findTenant(connection, id)!;
}

/**
 * Makes the store of a tenant that was found already. Several stores of one thread and one role may share the
 * connection, which stays open when a store is closed.
 */
export function openPostgresStore(options: PostgresStoreOptions): Store {
  const { catalog, tenant, path = `postgres:${tenant}` } = options;
  const session = createSession(options);
  const lastWork = new Set<(store: Store) => void>();
  const statements = new LRUCache<string, PostgresStatement>({ max: MAX_STATEMENTS });
  const context = createContext(session, catalog);
  const own = createOwnQuery(session, context);
  const words = createWordTable({ store: () => store, own, newestBefore: () => session.newestInWords });
  const prepare = (sql: string): PostgresStatement => {
    let statement = statements.get(sql);
    if (statement === undefined) statements.set(sql, (statement = createStatement(sql, context)));
    return statement;
  };
  const store: Store = {
    path,
    prepare,
    ahead: createForesight(session, prepare),
    write(work, ask) {
      const workToEnd = (begun: BegunWrite) => {
        const isOn = begun.numbers.get(HAS_EVENTS);
        if (isOn !== undefined) prepare(SELECT_FEED).answerAhead([], [{ is_on: isOn }]);
        const done = work();
        // Once more for numbers that the last work gives: before it, the statement is joined with those of the work.
        session.numbers.store();
        for (const last of lastWork) last(store);
        session.numbers.store();
        return done;
      };
      try {
        return writeIn(session, workToEnd, ask);
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
      return session.changes.read();
    },
    get transactionNo() {
      return session.doing === undefined ? undefined : session.transactions;
    },
    read: (work) => (session.doing === undefined ? readIn(session, work) : work()),
    suitToFile() {},
    othersVersion: () => othersVersion(session, context),
    get position() {
      return session.position;
    },
    words,
    get isOpen() {
      return session.isOpen;
    },
    close: () => void (session.isOpen = false),
  };
  readWordsBy(store, (lengths) => createBlockReader({ store, query: own, lengths }));
  return store;
}

/** Makes the context in which the statements of a store run: connection, queue of statements and cache of answers. */
function createContext(session: Session, catalog: Catalog): StatementContext {
  const { connection, tenant } = session;
  return {
    catalog,
    tenant,
    query(text, values, name, portion) {
      // Inside a transaction the session must not change: a new one would have neither the transaction nor the tenant.
      if (session.doing === undefined) session.begin('statement');
      return session.changes.note(() => connection.query(text, values, name, portion));
    },
    closePortal(name) {
      // A portal ends with its transaction.
      if (session.doing !== undefined) connection.closePortal(name);
    },
    queue(statement, isSure) {
      if (session.doing !== 'write') return undefined;
      const queued = session.changes.note(() => connection.queue(statement));
      if (isSure) session.changes.noteSure();
      return queued;
    },
    ask: connection.queue,
    askKept: (query) =>
      session.doing === 'read' ? session.kept.ask(query, connection.queue) : connection.queue(query),
    askWithinBudget: (query) => queueWithinBudget(connection, query),
    predictor: session.predictor,
    speculativeReads: session.speculativeReads,
    get answers() {
      return session.doing === undefined ? null : session.answers;
    },
    takeNumber: (table) => (session.doing === 'write' ? session.numbers.take(table) : undefined),
    prepareNumbersFor(what) {
      if (session.doing !== 'write') return;
      // All queued statements were queued since the savepoint: the statement that began it sent the earlier ones.
      if (what === 'ROLLBACK') {
        connection.forget();
        session.changes.assumeChanges();
        session.answers.clear();
      }
      session.numbers.prepareFor(what);
    },
  };
}

/** Makes what runs statements of PostgreSQL's own dialect. */
function createOwnQuery(session: Session, context: StatementContext): OwnQuery {
  const { connection, tenant, speculativeReads } = session;
  return {
    ask(name, text, values) {
      if (speculativeReads.isOn) speculativeReads.leave();
      return context.query(text, [tenant, ...values], name);
    },
    askLater(name, text, values) {
      if (session.doing === undefined) {
        const result = context.query(text, [tenant, ...values], name);
        return { result: () => result, isWaiting: false };
      }
      const queued = connection.queue({ text, values: [tenant, ...values], name });
      return {
        result() {
          if (speculativeReads.isOn && queued.isWaiting) speculativeReads.leave();
          return queued.result();
        },
        get isWaiting() {
          return queued.isWaiting;
        },
      };
    },
    write(name, text, values, table) {
      session.answers.clear();
      const merge = table === undefined ? null : onceForm({ name, text, table });
      context.queue({ text, values: [tenant, ...values], name, merge }, false);
    },
  };
}

function createForesight(session: Session, prepare: (sql: string) => PostgresStatement): Foresight {
  return {
    ask(sql, parameters) {
      const statement = prepare(sql);
      for (const given of parameters) statement.prefetch(...given);
    },
    answer: (sql, parameters, rows) => prepare(sql).answerAhead(parameters, rows),
    readSpeculatively(...readings) {
      if (session.doing !== undefined) session.speculativeReads.run(readings);
    },
    send: session.connection.flush,
    get trips() {
      return session.connection.roundTrips - session.tripsAtBegin;
    },
    readInOneTurn() {
      const question = {};
      return (work) => (session.doing === undefined ? readIn(session, work, question) : work());
    },
    readAtOpening: (work) => readIn(session, work, null),
  };
}

const READ_WRITES = 'SELECT writes FROM tenants WHERE tenant = $1';

/**
 * Returns the number of writes of the tenant by other stores: the tenant's counter of writes less the writes of this
 * store.
 */
function othersVersion(session: Session, context: StatementContext): number {
  const { connection, tenant, ownWrites, speculativeReads, writesAtBegin } = session;
  if (session.doing !== undefined) {
    if (speculativeReads.isOn && !writesAtBegin.isKnown()) speculativeReads.leave();
    prefetchPredicted({ text: READ_WRITES }, context);
    return writesAtBegin.number() - ownWrites;
  }
  session.begin('statement');
  return (connection.query(READ_WRITES, [tenant], 'writes').rows[0]![0] as number) - ownWrites;
}
