/**
 * The transactions of one tenant's store on its connection: writes, reads and the reads that are held, and what each of
 * them begins and ends.
 */

import { EngineError } from '../../errors.ts';
import type { OpenStoreOptions } from '../open-store.ts';
import { analyzeGrown } from './analyze-grown.ts';
import type { BlockingConnection } from './blocking-connection.ts';
import type { Catalog } from './catalog.ts';
import { endHeld, holdRead, noteWrite, takeHeld, type OpenRead } from './held-reads.ts';
import { createKeptAnswers, type KeptAnswers } from './kept-answers.ts';
import { forTenant, type Bound } from './postgres-statement.ts';
import { createFirstQueries, createQueryPredictor, type FirstQueries, type QueryPredictor } from './query-predictor.ts';
import { createAnswers, type Answers } from './read-ahead.ts';
import { createRowNumbers, type RowNumbers } from './row-numbers.ts';
import { ENDS_IDLE_TRANSACTION, ENDS_WITH_CONNECTION, KEEPALIVE, PLANNING, SESSIONS } from './session-settings.ts';
import { createSpeculativeReads, type SpeculativeReads } from './speculative-reads.ts';
import { beginSnapshot, inWrite, NEWEST_IN_WORDS, type BegunRead, type BegunWrite } from './unit-of-work.ts';
import { watchChanges, type ChangeWatch } from './watch-changes.ts';

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
export interface Session {
  readonly connection: BlockingConnection;
  readonly tenant: number;
  /**
   * Prepares the session for this tenant. Call it before a transaction, and before a statement outside of one.
   * @returns whether a transaction must set the tenant for itself, since the session is set to another one
   * @throws EngineError `unavailable` if the store is closed
   */
  begin(what: 'transaction' | 'statement'): boolean;
  isOpen: boolean;
  /** Kind of the open transaction; undefined outside of a transaction. */
  doing: 'write' | 'read' | undefined;
  /** Number of transactions so far. */
  transactions: number;
  /** Number of writes of this store that were committed. */
  ownWrites: number;
  /** Number of round trips of the connection before the present transaction. */
  tripsAtBegin: number;
  /** The tenant's counter of writes as it was before the present transaction. */
  writesAtBegin: BegunRead;
  /** Greatest counter of writes of the tenant that a transaction of this store has seen or made; 0 at first. */
  position: number;
  /**
   * Greatest number of a memory that the word index had, or has had, before the present write; Infinity if it is not
   * known.
   */
  newestInWords: number;
  readonly changes: ChangeWatch;
  readonly numbers: RowNumbers;
  readonly answers: Answers;
  readonly kept: KeptAnswers<Bound>;
  readonly predictor: QueryPredictor<Bound>;
  readonly speculativeReads: SpeculativeReads;
}

export function createSession(options: PostgresStoreOptions): Session {
  const { connection, catalog, tenant, role = 'acknowledger' } = options;
  const session: Session = {
    ...{ connection, tenant, isOpen: true, doing: undefined },
    ...{
      transactions: 0,
      ownWrites: 0,
      tripsAtBegin: 0,
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

/**
 * For each connection, the queries of the first transactions of its stores, by which those of newly opened stores are
 * predicted.
 */
const firstQueries = new WeakMap<BlockingConnection, FirstQueries<Bound>>();

function firstQueriesOf(connection: BlockingConnection): FirstQueries<Bound> {
  let known = firstQueries.get(connection);
  if (known === undefined) firstQueries.set(connection, (known = createFirstQueries()));
  return known;
}

/**
 * Runs `work` in a write, which `inWrite` begins and commits, and then analyses tables that have grown.
 * @param ask may queue queries, which share the first round trip
 */
export function writeIn<T>(session: Session, work: (begun: BegunWrite) => T, ask?: () => void): T {
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
 * @param question if stated, the read is held afterwards for the next one with the same question; if left out, it is
 *   not held. Null stands for the opening of the store, whose read is held for the next read of the store, whatever its
 *   question, if that follows at once; if that one has no question, it is held once more in the same way
 */
export function readIn<T>(session: Session, work: () => T, question?: object | null): T {
  const { connection } = session;
  const held = session.isOpen ? takeHeld(connection, session, question ?? undefined) : undefined;
  const read = held?.read ?? beginRead(session);
  // What the opening reads is handed on by one more read of it, and no further.
  const isHandedOn = question === undefined && held?.question === null;
  const holder = isHandedOn ? (held.isHandedOn ? undefined : null) : question;
  session.doing = 'read';
  let isDone = false;
  try {
    const result = work();
    notePosition(session, session.writesAtBegin);
    isDone = true;
    return result;
  } finally {
    session.doing = undefined;
    if (isDone && holder !== undefined && read.isSound())
      holdRead(connection, { read, of: session, question: holder, isHandedOn });
    else read.end(isDone);
  }
}

function beginRead(session: Session): OpenRead {
  const setsTenant = session.begin('transaction');
  const { connection, tenant, kept } = session;
  const snapshot = beginSnapshot(connection, { tenant, setsTenant });
  kept.begin(snapshot.writes, connection.session);
  beginTransaction(session, 'read', snapshot.writes);
  const [sessionNo, { failures }] = [connection.session, connection];
  return {
    isSound: () => connection.session === sessionNo && connection.failures === failures,
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
  Object.assign(session, { doing: what, writesAtBegin, tripsAtBegin: session.connection.roundTrips });
}

function endTransaction(session: Session): void {
  session.doing = undefined;
  session.answers.clear();
  session.predictor.end();
}

/** For each connection, the tenant to which its session was set last, and the number of that session. */
const settings = new WeakMap<BlockingConnection, { readonly session: number | null; readonly tenant: number }>();

/**
 * Sets the tenant of the session, on which column defaults and row-level security depend, and gives a new session the
 * settings of its role. A read that the connection holds is ended. It takes one round trip if the session is new, and
 * before a statement outside of a transaction if another tenant was set.
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
    `${KEEPALIVE}; ${ENDS_IDLE_TRANSACTION};
     SELECT set_config('cairn.tenant', '${tenant}', false), set_config('lock_timeout', '5s', false),
       ${ENDS_WITH_CONNECTION}, ${SESSIONS[role]}, ${PLANNING}`,
  );
  settings.set(connection, { session: connection.session, tenant });
  return false;
}
