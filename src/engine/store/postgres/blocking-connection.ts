/**
 * A connection to PostgreSQL on which a thread blocks until the reply comes, as it does on a SQLite file. A further
 * thread holds the socket; a round trip takes some 30 µs more than an asynchronous one. Only threads that may block use
 * it: reader threads, the writer thread and workers, never a thread that serves requests.
 */

import { EngineError } from '../../errors.ts';
import { openChannel, type ConnectionChannel, type Patience } from './connection-channel.ts';
import { noteSeen, type Parameter, type QueryResult, type SentStatement } from './connection-messages.ts';
import { mergeStatements, type MergeForm } from './merge-statements.ts';
import { databaseError, PostgresError } from './postgres-error.ts';

export type { Patience } from './connection-channel.ts';
export { postgresError } from './postgres-error.ts';

export interface BlockingConnection {
  /**
   * Runs one statement with its `values`, prepared under `name` if that is given; without `values`, a text of several
   * statements. Statements that wait are sent in front of it, in the same round trip. Connects if there is no session.
   * @throws EngineError as `databaseError`, whose `cause` is a `PostgresError`; LateError for one that waited
   */
  query(text: string, values?: readonly Parameter[], name?: string): QueryResult;
  /**
   * Lets a statement wait for the next one that is asked for its result, or for `flush`. Call it where a transaction is
   * open, or is begun by what waits. Those of one text may be sent as one statement: see `merge-statements.ts`.
   */
  queue(statement: WaitingStatement): Queued;
  /** Sends what waits. Throws as `query`. */
  flush(): void;
  /** Drops what waits, before a rollback. */
  forget(): void;
  /** Sends a text of statements, and waits for no answer. If it fails, the session is lost. Drops what waits. */
  post(text: string): void;
  /**
   * Number of the session; null if there is none, or if it is known to be lost. The settings of a new session must be
   * made again.
   */
  readonly session: number | null;
  /** Whether it was closed, or given up after a statement that took too long. It never answers again. */
  readonly isClosed: boolean;
  /** Number of round trips so far. */
  readonly roundTrips: number;
  /**
   * Has the connection's thread read a number again and again, on a further connection, so that this thread sees it
   * without a round trip. It begins with a blocking read.
   * @param text a statement that returns one integer, with the schema in its names
   * @throws as `query`, for the first read
   */
  watch(text: string): WatchedNumber;
  /** Changes how long the connection waits from now on; at first 5 s to connect, and a minute for a statement. */
  waitFor(patience: Patience): void;
  close(): void;
}

/** A statement that may wait. */
interface WaitingStatement extends SentStatement {
  /** How it becomes one statement with others of its text; null or left out for one that is sent alone. */
  readonly merge?: MergeForm | null;
}

/** A number in the database that a thread reads again and again. */
export interface WatchedNumber {
  /**
   * Returns the number that was read last, and the time at which that read began (ns, `process.hrtime.bigint`).
   * @throws EngineError `unavailable` if no read has succeeded for `SILENT_MS`
   */
  latest(): { readonly number: number; readonly readAt: bigint };
}

/** Pause between two reads of a watched number, ms. */
const WATCH_MS = 250;
/** Time without a successful read after which a watched number is no longer believed, ms. */
const SILENT_MS = 5_000;

/** A statement that waits, or was sent. */
export interface Queued {
  /**
   * Returns the result; a statement that still waits is sent. Throws as `query`, also for one that was dropped, and
   * EngineError `internal` for one of several that were sent as one, if what it did by itself cannot be told.
   */
  result(): QueryResult;
  /** Whether the statement was neither sent nor dropped. */
  readonly isWaiting: boolean;
}

/** Most statements that wait; the next one sends them. It bounds the memory of a long write. */
const MAX_QUEUED = 2_048;
/** Most characters and bytes of values that wait. */
const MAX_QUEUED_SIZE = 1_000_000;

/** Starts the thread of a connection, which connects at the first statement. */
export function openBlockingConnection(url: string): BlockingConnection {
  const channel = openChannel(url);
  const queue = createQueue(channel);
  return {
    query(text, values, name) {
      if (values !== undefined) return queue.send({ text, values, name })!;
      queue.flush();
      return told(() => channel.ask(text))[0]!;
    },
    watch: (text) => told(() => watch(channel, text)),
    waitFor: channel.waitFor,
    queue: queue.add,
    flush: queue.flush,
    forget: queue.forget,
    post(text) {
      queue.forget();
      if (channel.session !== null) told(() => channel.post(text));
    },
    get session() {
      return channel.session;
    },
    get isClosed() {
      return channel.isClosed;
    },
    get roundTrips() {
      return channel.roundTrips;
    },
    close() {
      queue.forget();
      told(() => channel.close());
    },
  };
}

function watch(channel: ConnectionChannel, text: string): WatchedNumber {
  const readAt = process.hrtime.bigint();
  const number = channel.ask(text)[0]!.rows[0]![0] as number;
  const seen = new BigInt64Array(new SharedArrayBuffer(16));
  noteSeen(seen, number, readAt);
  channel.watch(text, { everyMs: WATCH_MS, timeoutMs: SILENT_MS, seen });
  return { latest: () => latestOf(seen) };
}

function latestOf(seen: BigInt64Array): ReturnType<WatchedNumber['latest']> {
  // The time first: a read that ends in between only makes the number newer than its time.
  const readAt = Atomics.load(seen, 1);
  if (process.hrtime.bigint() - readAt > SILENT_NS)
    throw databaseError(new PostgresError({ code: 'silent', constraint: null, isLost: true }));
  return { number: Number(Atomics.load(seen, 0)), readAt };
}

const SILENT_NS = BigInt(SILENT_MS) * 1_000_000n;

/** Runs `work`, and turns its errors of PostgreSQL into those that callers get. */
function told<T>(work: () => T, isLate: (error: PostgresError) => boolean = () => false): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof PostgresError ? databaseError(error, isLate(error)) : error;
  }
}

/** The statements that wait on a connection. */
interface StatementQueue {
  add(statement: WaitingStatement): Queued;
  /** Sends what waits, and `last` behind it. @returns the result of `last` */
  send(last?: SentStatement): QueryResult | undefined;
  flush(): void;
  forget(): void;
}

/** A statement that waits, or was sent. `known` is null once it was sent and its own result cannot be told. */
interface Waiting {
  readonly statement: SentStatement;
  merge: MergeForm | null;
  known: QueryResult | null | undefined;
}

function createQueue(channel: ConnectionChannel): StatementQueue {
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
    const results = told(
      () => channel.ask(last === undefined ? statements : [...statements, last]),
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
    add({ name, text, values, merge = null }) {
      if (waiting.length >= MAX_QUEUED || size > MAX_QUEUED_SIZE) flush();
      const one: Waiting = { statement: { name, text, values }, merge, known: undefined };
      waiting.push(one);
      for (const value of values) size += sizeOf(value);
      const isWaiting = () => one.known === undefined && waiting.includes(one);
      return {
        result() {
          if (isWaiting()) {
            // The one whose result is wanted is sent alone, unless it is a question, which keeps its own answer.
            if (merge?.kind !== 'question') one.merge = null;
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
