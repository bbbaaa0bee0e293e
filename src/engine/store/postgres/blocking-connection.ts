/**
 * A connection to PostgreSQL on which the calling thread blocks until the reply arrives, as it does on a SQLite file.
 * Only threads that may block use it: reader threads, the writer thread and workers. A thread that serves requests uses
 * it with short timeouts only.
 */

import { EngineError } from '../../errors.ts';
import { openChannel, type ConnectionChannel, type Timeouts } from './connection-channel.ts';
import { noteSeen } from './connection-messages.ts';
import type { MergeForm } from './merge-forms.ts';
import { mergeStatements } from './merge-statements.ts';
import { databaseError, PostgresError } from './postgres-error.ts';
import { startSecondThread } from './second-thread.ts';
import type { Parameter, Portion, QueryResult, SentStatement } from './statements.ts';

export type { Timeouts } from './connection-channel.ts';
export { postgresError } from './postgres-error.ts';

export interface BlockingConnection {
  /**
   * Runs a statement and blocks until its result arrives. With `values` it is one statement, prepared under `name` if
   * that is given; without `values`, `text` may contain several statements, and the result is that of the last one.
   * Queued statements are sent before it: with `values` in the same round trip, else in one of their own. It connects
   * if there is no session.
   * @param portion the part of the rows that is read, inside a transaction; all rows if it is left out
   * @throws EngineError as `databaseError`, whose `cause` is a `PostgresError`; LateError if a queued statement failed
   */
  query(text: string, values?: readonly Parameter[], name?: string, portion?: Portion): QueryResult;
  /** Says that no more rows of a portal are read. It is closed with the next statements that are sent. */
  closePortal(name: string): void;
  /**
   * Queues a statement, so that it shares a round trip. It is sent before the next `query`, by `flush`, or when the
   * result of a queued statement is read. If the queue is full, those in it are sent first, as by `flush`. Queue only
   * inside a transaction, or after a queued BEGIN. Queued statements with equal text may be merged into one: see
   * `merge-statements.ts`.
   */
  queue(statement: WaitingStatement): Queued;
  /** Sends the queued statements. Throws as `query`. */
  flush(): void;
  /** Drops the queued statements without sending them, before a rollback. */
  forget(): void;
  /**
   * Sends a text of statements without waiting for a reply; an error in it ends the session. Drops the queued
   * statements. Without a session nothing is sent.
   */
  post(text: string): void;
  /**
   * Number of the present session; null if there is none or it is known to be lost. After a change of this number,
   * session settings must be made again.
   */
  readonly session: number | null;
  /**
   * Lets statements run only in this session, until it is called with null: in another one, they fail as if that one
   * was lost. A transaction that goes on so never goes on, without its beginning, in a session that was made meanwhile.
   */
  bindTo(session: number | null): void;
  /**
   * Whether the connection was closed, or given up because a statement took too long. A connection that was given up
   * connects again with the next statement.
   */
  readonly isClosed: boolean;
  /** Number of round trips so far. */
  readonly roundTrips: number;
  /** Number of round trips so far that ended with an error. */
  readonly failures: number;
  /** Sets the timeouts of later calls; at first they are 5 s to connect and 60 s for a statement. */
  setTimeouts(timeouts: Timeouts): void;
  close(): void;
}

/** A statement that may be queued. */
interface WaitingStatement extends SentStatement {
  /**
   * How the statement is merged with other queued statements of equal text; null or left out for one that is sent by
   * itself.
   */
  readonly merge?: MergeForm | null;
}

/** A number in the database that a background thread polls. */
export interface WatchedNumber {
  /**
   * Returns the latest polled value, and the time at which its read began (ns, on the clock of
   * `process.hrtime.bigint`).
   * @throws EngineError `unavailable` if no read has succeeded for 5 s
   */
  latest(): { readonly number: number; readonly readAt: bigint };
  /** Whether the polling was ended, or its thread has died. */
  readonly isClosed: boolean;
  close(): void;
}

/** Pause between two reads of a watched number, ms. */
const WATCH_MS = 250;
/** Time without a successful read after which the last value of a watched number counts as outdated (ms). */
const SILENT_MS = 5_000;

/** Handle of a queued statement. */
export interface Queued {
  /**
   * Returns the result, and first sends the statement if it is still queued. Throws as `query`; EngineError `internal`
   * if the statement was dropped or failed, or if it was merged with others so that its own result is unknown.
   */
  result(): QueryResult;
  /** Whether the statement is still queued: neither sent nor dropped. */
  readonly isWaiting: boolean;
}

/** Greatest number of queued statements; a further one first sends them. It limits the memory of a long write. */
const MAX_QUEUED = 2_048;
/**
 * Total size of the values of queued statements, in UTF-16 code units and bytes, beyond which a further statement first
 * sends them.
 */
const MAX_QUEUED_SIZE = 1_000_000;

/**
 * Starts the thread that makes the connection. It connects when the first statement is sent. After a statement that
 * took too long, the thread is ended, and the next statement starts another one.
 */
export function openBlockingConnection(url: string): BlockingConnection {
  let channel = openChannel(url);
  let boundTo: number | null = null;
  let timeouts: Timeouts | undefined;
  let [isClosed, roundTrips, failures] = [false, 0, 0];
  const current = () => {
    // A session of whose loss nobody was told is not replaced silently.
    if (!channel.isClosed || channel.session !== null || isClosed) return channel;
    roundTrips += channel.roundTrips;
    channel = openChannel(url, channel.sessions);
    if (timeouts !== undefined) channel.setTimeouts(timeouts);
    return channel;
  };
  const ask: ConnectionChannel['ask'] = (statements) => {
    try {
      if (boundTo !== null && channel.session !== boundTo)
        throw new PostgresError({ code: 'closed', constraint: null, isLost: true });
      return current().ask(statements);
    } catch (error) {
      failures += 1;
      throw error;
    }
  };
  const queue = createQueue(ask);
  return {
    query(text, values, name, portion) {
      if (values !== undefined) return queue.send({ text, values, name, portion })!;
      queue.flush();
      return withEngineErrors(() => ask(text))[0]!;
    },
    setTimeouts(next) {
      timeouts = next;
      channel.setTimeouts(next);
    },
    closePortal: (name) => channel.closePortal(name),
    bindTo: (session) => void (boundTo = session),
    queue: queue.add,
    flush: queue.flush,
    forget: queue.forget,
    post(text) {
      queue.forget();
      if (channel.session !== null) withEngineErrors(() => channel.post(text));
    },
    get session() {
      return channel.session;
    },
    get isClosed() {
      return channel.isClosed;
    },
    get roundTrips() {
      return roundTrips + channel.roundTrips;
    },
    get failures() {
      return failures;
    },
    close() {
      isClosed = true;
      queue.forget();
      withEngineErrors(() => channel.close());
    },
  };
}

/**
 * Starts a thread that polls a number on a connection of its own, so that this thread can read the latest value without
 * a round trip. It goes on while the server is silent or away. This thread waits only until the other one has started.
 * @param text a statement that returns one integer; its tables must be named with their schema
 * @param first the number as it was read before, and when that read began (ns, `process.hrtime.bigint`)
 */
export function watchNumber(url: string, text: string, first: ReturnType<WatchedNumber['latest']>): WatchedNumber {
  const second = startSecondThread(url, 0);
  const seen = new BigInt64Array(new SharedArrayBuffer(16));
  noteSeen(seen, first.number, first.readAt);
  second.ask({ kind: 'watch', text, everyMs: WATCH_MS, timeoutMs: SILENT_MS, seen }, SILENT_MS);
  return {
    latest: () => latestOf(seen),
    get isClosed() {
      return second.isEnded;
    },
    close() {
      if (!second.isEnded) second.ask({ kind: 'end' }, SILENT_MS);
      second.terminate();
    },
  };
}

function latestOf(seen: BigInt64Array): ReturnType<WatchedNumber['latest']> {
  // The time first: a read that ends in between only makes the number newer than its time.
  const readAt = Atomics.load(seen, 1);
  if (process.hrtime.bigint() - readAt > SILENT_NS)
    throw databaseError(new PostgresError({ code: 'silent', constraint: null, isLost: true }));
  return { number: Number(Atomics.load(seen, 0)), readAt };
}

const SILENT_NS = BigInt(SILENT_MS) * 1_000_000n;

/**
 * Runs `work`, and rethrows its PostgresErrors as the EngineErrors that callers get.
 * @param isLate tells whether an error belongs to a statement that was queued earlier, so that a LateError is thrown
 */
function withEngineErrors<T>(work: () => T, isLate: (error: PostgresError) => boolean = () => false): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof PostgresError ? databaseError(error, isLate(error)) : error;
  }
}

/** The queue of the statements of a connection. */
interface StatementQueue {
  add(statement: WaitingStatement): Queued;
  /**
   * Sends the queued statements, and `last` after them, in one round trip. Returns the result of `last`; undefined
   * without `last`.
   */
  send(last?: SentStatement): QueryResult | undefined;
  flush(): void;
  forget(): void;
}

/**
 * A statement that is queued, or was sent. `known` is its result: undefined until it is sent, null if it was merged
 * with others so that its own result is unknown.
 */
interface Waiting {
  readonly statement: SentStatement;
  merge: MergeForm | null;
  known: QueryResult | null | undefined;
}

function createQueue(ask: ConnectionChannel['ask']): StatementQueue {
  let waiting: Waiting[] = [];
  let size = 0;
  const forget = () => {
    waiting = [];
    size = 0;
  };
  const send = (last?: SentStatement) => {
    const groups = mergeStatements(waiting);
    forget();
    const statements = groups.map(({ statement }) => statement);
    const results = withEngineErrors(
      () => ask(last === undefined ? statements : [...statements, last]),
      ({ place = groups.length }) => place < groups.length,
    );
    groups.forEach(({ members, resultsOf }, place) => {
      const own = resultsOf(results[place]!);
      members.forEach((one, at) => (one.known = own[at]!));
    });
    return results[groups.length];
  };
  const flush = () => {
    if (waiting.length > 0) send();
  };
  return {
    add({ name, text, values, portion, merge = null }) {
      if (waiting.length >= MAX_QUEUED || size > MAX_QUEUED_SIZE) flush();
      const one: Waiting = { statement: { name, text, values, portion }, merge, known: undefined };
      waiting.push(one);
      for (const value of values) size += sizeOf(value);
      const isWaiting = () => one.known === undefined && waiting.includes(one);
      return {
        result() {
          if (isWaiting()) {
            // The one whose result is wanted is sent alone, unless the merged statement tells the result of each.
            if (merge?.kind !== 'query' && merge?.kind !== 'change') one.merge = null;
            flush();
          }
          if (one.known === null) throw new EngineError('internal', 'the result of a statement that shared its way');
          if (one.known !== undefined) return one.known;
          throw new EngineError('internal', 'a statement that waited was dropped, or has failed');
        },
        get isWaiting() {
          return isWaiting();
        },
      };
    },
    send,
    flush,
    forget,
  };
}

function sizeOf(value: Parameter): number {
  if (typeof value === 'number' || value === null) return 8;
  return typeof value === 'string' || value instanceof Uint8Array ? value.length : 16 * value.length;
}
