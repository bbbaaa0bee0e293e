/**
 * Opens a tenant's database in PostgreSQL behind the interface `Store`, as a tenant's SQLite file is. Statements are
 * those of the files in `store`, in SQLite's dialect; `dialect.ts` translates them and `name-tenant.ts` names the
 * tenant in each. The word index is in `word-table.ts`. Functions that read SQLite's pragmas (the size of the file, its
 * log) do not work here.
 */

import { LRUCache } from 'lru-cache';
import { EngineError } from '../../errors.ts';
import { SELECT_FEED } from '../events.ts';
import type { Foresight, OpenStoreOptions, Store } from '../open-store.ts';
import { readWordsBy } from '../word-index/open-word-search.ts';
import { createBlockReader } from './block-search.ts';
import type { BlockingConnection } from './blocking-connection.ts';
import { analyzeGrown } from './analyze-grown.ts';
import { queueWithinBudget } from './counted-work.ts';
import { READ_CATALOG, toCatalog, type Catalog, type CatalogRow } from './catalog.ts';
import { onceForm } from './merge-forms.ts';
import {
  prefetchPredicted,
  createStatement,
  forTenant,
  type Bound,
  type PostgresStatement,
  type StatementContext,
} from './postgres-statement.ts';
import { createFirstQueries, createQueryPredictor, type FirstQueries, type QueryPredictor } from './query-predictor.ts';
import { createKeptAnswers, type KeptAnswers } from './kept-answers.ts';
import { createAnswers, type Answers } from './read-ahead.ts';
import { createSpeculativeReads, type SpeculativeReads } from './speculative-reads.ts';
import { createRowNumbers, type RowNumbers } from './row-numbers.ts';
import { endHeld, holdRead, noteWrite, takeHeld, type OpenRead } from './held-reads.ts';
import {
  beginSnapshot,
  inWrite,
  HAS_EVENTS,
  NEWEST_IN_WORDS,
  type BegunRead,
  type BegunWrite,
} from './unit-of-work.ts';
import type { OwnQuery } from './own-query.ts';
import { ENDS_WITH_CONNECTION, PLANNING, SESSIONS } from './session-settings.ts';
import { createWordTable } from './word-table.ts';
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
  /** The tenant's counter of writes as it was before the present transaction. */
  writesAtBegin: BegunRead;
  /** Greatest counter of writes of the tenant that a transaction of this store has seen or made; 0 at first. */
  position: number;
  /** Greatest number of a memory in the word index before the present write. */
  newestInWords: number;
  readonly changes: ChangeWatch;
  readonly numbers: RowNumbers;
  readonly answers: Answers;
  readonly kept: KeptAnswers<Bound>;
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

function createSession(options: PostgresStoreOptions): Session {
  const { connection, catalog, tenant, role = 'acknowledger' } = options;
  const session: Session = {
    ...{ connection, tenant, isOpen: true, doing: undefined },
    ...{
      transactions: 0,
      ownWrites: 0,
      position: 0,
      newestInWords: 0,
      writesAtBegin: { isKnown: () => true, number: () => 0 },
    },
    changes: watchChanges(connection),
    numbers: createRowNumbers(connection, tenant),
    answers: createAnswers(catalog),
    kept: createKeptAnswers(),
    predictor: createQueryPredictor(firstQueriesOf(connection), (query) => forTenant(query, tenant)),
    speculativeReads: createSpeculativeReads(),
    begin(what) {
      if (!session.isOpen) throw new EngineError('unavailable', 'the store is closed');
      return setTenant(connection, tenant, { role, what });
    },
  };
  return session;
}

/** What the first transactions of the stores of each connection asked. */
const firstQueries = new WeakMap<BlockingConnection, FirstQueries<Bound>>();

function firstQueriesOf(connection: BlockingConnection): FirstQueries<Bound> {
  let known = firstQueries.get(connection);
  if (known === undefined) firstQueries.set(connection, (known = createFirstQueries()));
  return known;
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
    readInOneTurn() {
      const question = {};
      return (work) => (session.doing === undefined ? readIn(session, work, question) : work());
    },
  };
}

function writeIn<T>(session: Session, work: (begun: BegunWrite) => T, ask?: () => void): T {
  const setsTenant = session.begin('transaction');
  const { connection, tenant, numbers, changes } = session;
  let present = 0;
  const begin = (begun: BegunWrite) => {
    present = begun.writes;
    numbers.begin(begun.numbers);
    session.newestInWords = begun.numbers.get(NEWEST_IN_WORDS) ?? Infinity;
    return work(begun);
  };
  try {
    const writes: BegunRead = { isKnown: () => present > 0, number: () => present - 1 };
    beginTransaction(session, 'write', writes);
    const result = inWrite(connection, { tenant, setsTenant, numbered: numbers.tables, ask }, begin);
    session.ownWrites += 1;
    session.position = present;
    analyzeGrown(connection, present);
    return result;
  } finally {
    noteWrite();
    endTransaction(session);
    changes.assumeChanges();
  }
}

/**
 * Runs `work` in a read, or in the one that is held for it (`held-reads.ts`).
 * @param question if stated, the read is held afterwards for the next one with the same question
 */
function readIn<T>(session: Session, work: () => T, question?: object): T {
  const { connection } = session;
  const held = session.isOpen ? takeHeld(connection, session, question) : undefined;
  const read = held?.read ?? beginRead(session);
  const owner = question ?? held?.question;
  session.doing = 'read';
  let isDone = false;
  try {
    const result = work();
    notePosition(session, session.writesAtBegin);
    isDone = true;
    return result;
  } finally {
    session.doing = undefined;
    if (isDone && owner !== undefined) holdRead(connection, { read, of: session, question: owner });
    else read.end(isDone);
  }
}

function beginRead(session: Session): OpenRead {
  const setsTenant = session.begin('transaction');
  const { connection, tenant, kept } = session;
  const snapshot = beginSnapshot(connection, { tenant, setsTenant });
  kept.begin(snapshot.writes, connection.session);
  beginTransaction(session, 'read', snapshot.writes);
  return {
    end(keepsAnswers) {
      if (keepsAnswers) kept.end(notePosition(session, snapshot.writes));
      endTransaction(session);
      snapshot.end();
    },
  };
}

/** Notes the counter of writes that a read saw, and returns it; undefined if it saw none. */
function notePosition(session: Session, writes: BegunRead): number | undefined {
  if (!writes.isKnown()) return undefined;
  try {
    const seen = writes.number();
    session.position = Math.max(session.position, seen);
    return seen;
  } catch {
    // The first statements of the read had failed, which its work has dealt with. Nothing was seen.
    return undefined;
  }
}

function beginTransaction(session: Session, what: 'write' | 'read', writesAtBegin: BegunRead): void {
  session.transactions += 1;
  session.answers.begin(what === 'write');
  session.predictor.begin();
  Object.assign(session, { doing: what, writesAtBegin });
}

function endTransaction(session: Session): void {
  session.doing = undefined;
  session.answers.clear();
  session.predictor.end();
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
  endHeld(connection);
  const set = settings.get(connection);
  if (connection.session !== null && set?.session === connection.session) {
    if (set.tenant === tenant) return false;
    if (what === 'transaction') return true;
  }
  connection.query(
    `SELECT set_config('cairn.tenant', '${tenant}', false), set_config('lock_timeout', '5s', false),
       ${ENDS_WITH_CONNECTION}, ${SESSIONS[role]}, ${PLANNING}`,
  );
  settings.set(connection, { session: connection.session, tenant });
  return false;
}
