/**
 * The channel between a thread and the second thread that holds its connection to PostgreSQL. Requests are posted as
 * messages, and the calling thread blocks until the reply arrives.
 */

import assert from 'node:assert';
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';
import type { QueryResult, Reply, Request, SentResult, ThreadData } from './connection-messages.ts';
import { PostgresError } from './postgres-error.ts';
import { readRows, type Field } from './wire-values.ts';

/** Timeouts of a connection. */
export interface Timeouts {
  /** Longest time that connecting may take, ms. */
  readonly connectMs: number;
  /**
   * Longest time that the statements of a request may take (ms), in addition to `connectMs` if there is no session yet.
   * After it the connection is given up.
   */
  readonly statementMs: number;
}

const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 5_000, statementMs: 60_000 };

export interface ConnectionChannel {
  /** Sends statements and waits for their results. Connects if there is no session. @throws PostgresError */
  ask(statements: Request['statements']): readonly QueryResult[];
  /** Sends statements without waiting for a reply; an error in one of them ends the session. @throws PostgresError */
  post(statements: Request['statements']): void;
  /** Lets the second thread poll a number in the database, as `Request.watch` describes. @throws PostgresError */
  watch(text: string, watch: NonNullable<Request['watch']>): void;
  /** Sets the timeouts of later requests. */
  setTimeouts(timeouts: Timeouts): void;
  /** Whether the channel was closed, or given up because a request took too long. */
  readonly isClosed: boolean;
  /** Number of the session; null if there is none, or if it is known to be lost. */
  readonly session: number | null;
  /** Greatest number of a session so far. */
  readonly sessions: number;
  /** Number of round trips so far. */
  readonly roundTrips: number;
  close(): void;
}

/** Numbers of round trips and of statements of all connections of this thread since it began. */
export interface TripTotals {
  readonly trips: number;
  readonly statements: number;
}

const totals = { trips: 0, statements: 0 };

/** Returns a copy of the totals of this thread. */
export function tripTotals(): TripTotals {
  return { ...totals };
}

/** State of a channel that has had no request. */
const FRESH = {
  requests: 0,
  roundTrips: 0,
  session: null as number | null,
  isClosed: false,
  timeouts: DEFAULT_TIMEOUTS,
};

/**
 * Starts the thread that holds the connection. It connects at the first request.
 * @param sessionsBefore greatest number of a session so far; those of this channel have greater ones
 */
export function openChannel(url: string, sessionsBefore = 0): ConnectionChannel {
  const { port1: port, port2 } = new MessageChannel();
  const signal = new Int32Array(new SharedArrayBuffer(4));
  const thread = new Worker(new URL(`./connection-thread${import.meta.filename.slice(-3)}`, import.meta.url), {
    workerData: { port: port2, signal, url, sessionsBefore } satisfies ThreadData,
    transferList: [port2],
  });
  // A process ends with its main thread, however many connections are open.
  thread.unref();
  port.unref();
  const state = { ...FRESH, sessions: sessionsBefore };
  const knownFields = new Map<number, readonly Field[]>();

  const giveUp = () => {
    Object.assign(state, { isClosed: true, session: null });
    port.close();
    void thread.terminate();
  };
  const send = (request: Pick<Request, 'statements' | 'end' | 'isPosted' | 'watch'>): void => {
    if (state.isClosed) throw new PostgresError({ code: 'closed', constraint: null, isLost: true });
    state.requests += 1;
    const { requests: no, session } = state;
    port.postMessage({ ...request, no, session, timeoutMs: state.timeouts.connectMs } satisfies Request);
  };
  const roundTrip = (request: Pick<Request, 'statements' | 'end' | 'watch'>): readonly QueryResult[] => {
    const before = Atomics.load(signal, 0);
    const hasSession = state.session !== null;
    send(request);
    count(request.statements);
    state.roundTrips += 1;
    const { connectMs, statementMs } = state.timeouts;
    if (!waitForChange(signal, before, hasSession ? statementMs : connectMs + statementMs)) {
      giveUp();
      throw new PostgresError({ code: 'ETIMEDOUT', constraint: null, isLost: true });
    }
    const { message } = receiveMessageOnPort(port) as { message: Reply };
    assert(message.no === state.requests, 'a reply to another request');
    if ('error' in message) {
      if (message.error.isLost) state.session = null;
      throw new PostgresError(message.error);
    }
    state.session = message.session;
    state.sessions = Math.max(state.sessions, message.session);
    return resultsOf(message, knownFields);
  };
  return {
    ask: (statements) => roundTrip({ statements }),
    post: (statements) => send({ statements, isPosted: true }),
    watch: (text, watch) => void roundTrip({ statements: text, watch }),
    setTimeouts: (timeouts) => void (state.timeouts = timeouts),
    get isClosed() {
      return state.isClosed;
    },
    get session() {
      return state.session;
    },
    get sessions() {
      return state.sessions;
    },
    get roundTrips() {
      return state.roundTrips;
    },
    close() {
      if (state.isClosed) return;
      roundTrip({ statements: [], end: true });
      giveUp();
    },
  };
}

/** Reads the results of a reply, whose rows may still be in the server's messages. */
function resultsOf(
  { results, fields = [], bytes }: Extract<Reply, { readonly results: unknown }>,
  known: Map<number, readonly Field[]>,
): readonly QueryResult[] {
  for (const { no, list } of fields) known.set(no, list);
  if (bytes === undefined) return results as readonly QueryResult[];
  const messages = Buffer.from(bytes.buffer);
  return (results as readonly SentResult[]).map(({ fields: no, isFirstRun, start, end, changes, command }) => {
    const list = known.get(no) ?? [];
    const rows = start === end ? [] : readRows(messages, { start, end, fields: list, isFirstRun });
    return { columns: list.map(({ name }) => name), rows, changes, command };
  });
}

/**
 * Blocks this thread until another thread has changed the number in `signal`.
 *
 * The other thread changes the number and then calls `Atomics.notify`. The notification may arrive late, when this
 * thread already waits for the next change. It then wakes up without a change, and goes on waiting.
 * @param before value of the number before the change
 * @param timeoutMs longest time to wait, in milliseconds
 * @returns whether the number changed in that time
 */
export function waitForChange(signal: Int32Array<SharedArrayBuffer>, before: number, timeoutMs: number): boolean {
  const end = performance.now() + timeoutMs;
  while (Atomics.load(signal, 0) === before) {
    const leftMs = end - performance.now();
    if (leftMs <= 0) return false;
    Atomics.wait(signal, 0, before, leftMs);
  }
  return true;
}

function count(statements: Request['statements']): void {
  totals.trips += 1;
  totals.statements += typeof statements === 'string' ? 1 : statements.length;
}
