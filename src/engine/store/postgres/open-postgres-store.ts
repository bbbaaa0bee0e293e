/**
 * Opens a tenant's database in PostgreSQL behind the interface `Store`, as a tenant's SQLite file is. Statements are
 * those of the files in `store`, in SQLite's dialect; `dialect.ts` translates them and `name-tenant.ts` names the
 * tenant in each. The word index is in `word-table.ts`. Functions that read SQLite's pragmas (the size of the file, its
 * log) do not work here.
 */

import { LRUCache } from 'lru-cache';
import { EngineError } from '../../errors.ts';
import type { Foresight, OpenStoreOptions, Store } from '../open-store.ts';
import { workLeftMs } from '../work-budget.ts';
import { readWordsBy } from '../word-index/open-word-search.ts';
import { createBlockReader } from './block-search.ts';
import type { BlockingConnection } from './blocking-connection.ts';
import { READ_CATALOG, toCatalog, type Catalog, type CatalogRow } from './catalog.ts';
import {
  prefetchPredicted,
  createStatement,
  type Bound,
  type PostgresStatement,
  type StatementContext,
} from './postgres-statement.ts';
import { createQueryPredictor, type QueryPredictor } from './query-predictor.ts';
import { createAnswers, type Answers } from './read-ahead.ts';
import { createSpeculativeReads, type SpeculativeReads } from './speculative-reads.ts';
import { createRowNumbers, type RowNumbers } from './row-numbers.ts';
import { inSnapshot, inWrite, type BegunRead, type BegunWrite } from './unit-of-work.ts';
import { createWordTable, type OwnQuery } from './word-table.ts';
import { watchChanges, type ChangeWatch } from './watch-changes.ts';

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
  return connection.query('SELECT tenant FROM tenants WHERE id = $1', [id]).rows[0]?.[0] as number | undefined;
}

/** Returns the number of the tenant with this id, and makes the tenant if it does not exist. */
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
  /**
   * Path that the tenant's SQLite file would have; files such as uploads lie beside it. The default is a path of no
   * file.
   */
  readonly path?: string;
  /**
   * Use of the connection: a `reader` refuses writes, an `acknowledger`, the default, commits durably, and commits of a
   * `worker` do not wait for the disk.
   */
  readonly role?: OpenStoreOptions['role'];
}

/** SQL of the session settings for each role of a store. */
const SESSIONS: Readonly<Record<OpenStoreOptions['role'], string>> = {
  reader: `set_config('default_transaction_read_only', 'on', false)`,
  acknowledger: `set_config('synchronous_commit', 'on', false)`,
  // If a crash takes its work back, the work is repeated from the ledger.
  worker: `set_config('synchronous_commit', 'off', false)`,
};

/**
 * SQL of the settings that make PostgreSQL plan as SQLite does: by indexes and nested loops, as the statements are
 * written for, and once for all values. Its own choice hangs on statistics, which a new table does not have and which
 * describe all tenants together; a wrong one reads a whole tenant. Planning a statement anew takes longer than most
 * take to run, and compiling it (`jit`) far longer.
 */
const PLANNING = Object.entries({
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  jit: 'off',
  plan_cache_mode: 'force_generic_plan',
})
  .map(([name, value]) => `set_config('${name}', '${value}', false)`)
  .join(', ');

/** The state of one store on its connection. */
interface Session {
  readonly connection: BlockingConnection;
  readonly tenant: number;
  /**
   * Sets the session to this tenant if it is not yet. Call it before a transaction, and before a statement outside of
   * one.
   * @returns whether a transaction must set the tenant for itself, since the session is set to another one
   * @throws EngineError `unavailable` if the store is closed
   */
  begin(what: 'transaction' | 'statement'): boolean;
  isOpen: boolean;
  /** Kind of the open transaction; undefined outside of a transaction. */
  doing: 'write' | 'read' | undefined;
  /** Number of transactions so far; `ownWrites` is the number of writes that were committed. */
  transactions: number;
  ownWrites: number;
  /** Number of the last transaction in which the server was told when the work of its query ends. */
  limited: number;
  /** The tenant's counter of writes as it was before the present transaction. */
  writesAtBegin: BegunRead;
  readonly changes: ChangeWatch;
  readonly numbers: RowNumbers;
  readonly answers: Answers;
  readonly predictor: QueryPredictor<Bound>;
  readonly speculativeReads: SpeculativeReads;
}

/** Opens a tenant's store on a connection. Several stores of one thread and one role may share the connection. */
export function openPostgresStore(options: PostgresStoreOptions): Store {
  const { catalog, tenant, path = `postgres:${tenant}` } = options;
  const session = createSession(options);
  const lastWork = new Set<(store: Store) => void>();
  const statements = new LRUCache<string, PostgresStatement>({ max: MAX_STATEMENTS });
  const context = createContext(session, catalog);
  const own = createOwnQuery(session, context);
  const words = createWordTable({ store: () => store, own });
  const prepare = (sql: string): PostgresStatement => {
    let statement = statements.get(sql);
    if (statement === undefined) statements.set(sql, (statement = createStatement(sql, context)));
    return statement;
  };
  const store: Store = {
    path,
    prepare,
    ahead: createForesight(session, prepare),
    write(work) {
      try {
        return writeIn(session, () => {
          const done = work();
          for (const last of lastWork) last(store);
          session.numbers.store();
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
      return session.changes.read();
    },
    get transactionNo() {
      return session.doing === undefined ? undefined : session.transactions;
    },
    read: (work) => (session.doing === undefined ? readIn(session, work) : work()),
    suitToFile() {},
    othersVersion: () => othersVersion(session, context),
    words,
    get isOpen() {
      return session.isOpen;
    },
    close: () => void (session.isOpen = false),
  };
  readWordsBy(store, (lengths) => createBlockReader({ store, query: own, lengths }));
  return store;
}

function createSession(options: PostgresStoreOptions): Session {
  const { connection, catalog, tenant, role = 'acknowledger' } = options;
  const session: Session = {
    ...{ connection, tenant, isOpen: true, doing: undefined },
    ...{ transactions: 0, limited: 0, ownWrites: 0, writesAtBegin: { isKnown: () => true, number: () => 0 } },
    changes: watchChanges(connection),
    numbers: createRowNumbers(connection, tenant),
    answers: createAnswers(catalog),
    predictor: createQueryPredictor(),
    speculativeReads: createSpeculativeReads(),
    begin(what) {
      if (!session.isOpen) throw new EngineError('unavailable', 'the store is closed');
      return setTenant(connection, tenant, { role, what });
    },
  };
  return session;
}

/** Makes the context in which the statements of a store run: connection, queue of statements and cache of answers. */
function createContext(session: Session, catalog: Catalog): StatementContext {
  const { connection, tenant } = session;
  return {
    catalog,
    tenant,
    query(text, values, name) {
      // Inside a transaction the session must not change: a new one would have neither the transaction nor the tenant.
      if (session.doing === undefined) session.begin('statement');
      return session.changes.note(() => connection.query(text, values, name));
    },
    queue(statement, isSure) {
      if (session.doing !== 'write') return undefined;
      const queued = session.changes.note(() => connection.queue(statement));
      if (isSure) session.changes.noteSure();
      return queued;
    },
    ask: connection.queue,
    limitWork() {
      const leftMs = workLeftMs();
      if (session.doing === undefined || session.limited === session.transactions || leftMs === Infinity) return;
      // Later than the deadline here, so that a statement that the server ends is known to have been ended.
      connection.queue({ text: LIMIT_WORK, values: [Math.ceil(leftMs) + 1], name: 'limit-work' });
      session.limited = session.transactions;
    },
    predictor: session.predictor,
    speculativeReads: session.speculativeReads,
    get answers() {
      return session.doing === undefined ? null : session.answers;
    },
    takeNumber: (table) => (session.doing === 'write' ? session.numbers.take(table) : undefined),
    settleNumbers(what) {
      if (session.doing !== 'write') return;
      // What waits was written since the savepoint, whose beginning nothing waits for.
      if (what === 'ROLLBACK') {
        connection.forget();
        session.changes.settle();
        session.answers.clear();
      }
      session.numbers.settle(what);
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
        return () => result;
      }
      const queued = connection.queue({ text, values: [tenant, ...values], name });
      return () => {
        if (speculativeReads.isOn && queued.isWaiting) speculativeReads.leave();
        return queued.result();
      };
    },
    write(name, text, values) {
      session.answers.clear();
      context.queue({ text, values: [tenant, ...values], name }, false);
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
  };
}

function writeIn<T>(session: Session, work: () => T): T {
  const setsTenant = session.begin('transaction');
  const { connection, tenant, numbers, changes } = session;
  const begun = ({ writes, numbers: last }: BegunWrite) => {
    numbers.begin(last);
    return doing(session, 'write', { isKnown: () => true, number: () => writes - 1 }, work);
  };
  try {
    const result = inWrite(connection, { tenant, setsTenant, numbered: numbers.tables }, begun);
    session.ownWrites += 1;
    return result;
  } finally {
    changes.settle();
  }
}

function readIn<T>(session: Session, work: () => T): T {
  const setsTenant = session.begin('transaction');
  const { connection, tenant } = session;
  return inSnapshot(connection, { tenant, setsTenant }, (writes) => doing(session, 'read', writes, work));
}

function doing<T>(session: Session, what: 'write' | 'read', writesAtBegin: BegunRead, work: () => T): T {
  session.transactions += 1;
  session.answers.begin(what === 'write');
  session.predictor.begin();
  Object.assign(session, { doing: what, writesAtBegin });
  try {
    return work();
  } finally {
    session.doing = undefined;
    session.answers.clear();
    session.predictor.end();
  }
}

/** Sets the time at which the work of this transaction's query ends, from the milliseconds that are left. */
const LIMIT_WORK = `SELECT set_config('cairn.work_until',
  (extract(epoch FROM clock_timestamp()) + $1::bigint / 1000.0)::text, true)`;
const READ_WRITES = 'SELECT writes FROM tenants WHERE tenant = $1';

/**
 * Returns the number of writes of the tenant by other stores: the tenant's counter of writes less the writes of this
 * store.
 */
function othersVersion(session: Session, context: StatementContext): number {
  const { connection, tenant, ownWrites, speculativeReads, writesAtBegin } = session;
  if (session.doing !== undefined) {
    if (speculativeReads.isOn && !writesAtBegin.isKnown()) speculativeReads.leave();
    prefetchPredicted({ text: READ_WRITES, values: [] }, context);
    return writesAtBegin.number() - ownWrites;
  }
  session.begin('statement');
  return (connection.query(READ_WRITES, [tenant], 'writes').rows[0]![0] as number) - ownWrites;
}

/** For each connection, the tenant to which its session was set last, and the number of that session. */
const settings = new WeakMap<BlockingConnection, { readonly session: number | null; readonly tenant: number }>();

/**
 * Sets the tenant of the session, on which column defaults and row-level security depend. It takes one round trip if
 * the session is new, and before a statement outside of a transaction if another tenant was set.
 * @returns whether another tenant is set, as it may be before a transaction, which sets its own in its first round trip
 */
function setTenant(
  connection: BlockingConnection,
  tenant: number,
  { role, what }: { readonly role: OpenStoreOptions['role']; readonly what: 'transaction' | 'statement' },
): boolean {
  const set = settings.get(connection);
  if (connection.session !== null && set?.session === connection.session) {
    if (set.tenant === tenant) return false;
    if (what === 'transaction') return true;
  }
  connection.query(
    `SELECT set_config('cairn.tenant', '${tenant}', false), set_config('lock_timeout', '5s', false),
       ${SESSIONS[role]}, ${PLANNING}`,
  );
  settings.set(connection, { session: connection.session, tenant });
  return false;
}
