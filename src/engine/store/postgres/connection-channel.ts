/**
 * The channel of a thread that blocks to PostgreSQL. A second thread makes the connection and, where it can, hands over
 * its socket, which this thread then reads and writes by itself (`direct-socket.ts`). Otherwise, as with TLS, each
 * request is posted to the second thread, and this one blocks until the reply arrives.
 */

import assert from 'node:assert';
import { openDirectSocket, type MessageSocket } from './direct-socket.ts';
import { PostgresError } from './postgres-error.ts';
import { startSecondThread, type SecondThread } from './second-thread.ts';
import {
  batchMessages,
  hasError,
  readReply,
  textMessage,
  type PreparedStatements,
  type Replied,
} from './server-messages.ts';
import type { QueryResult, SentStatement } from './statements.ts';

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

/** Timeouts of a connection for which no others were set. */
export const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 5_000, statementMs: 60_000 };

export interface ConnectionChannel {
  /**
   * Sends statements together and waits for the results, one for each. They run one after the other until one fails. A
   * text may hold several statements without parameters; its only result is that of the last one. Connects if there is
   * no session. @throws PostgresError
   */
  ask(statements: readonly SentStatement[] | string): readonly QueryResult[];
  /** Closes a portal of the session with the next statements that are sent, if it is still there. */
  closePortal(name: string): void;
  /**
   * Sends a text without waiting for a reply. If that fails, or if there is an error in the text, the session is lost,
   * which the next request reports. Without a session nothing is sent.
   */
  post(text: string): void;
  /** Sets the timeouts of later requests. */
  setTimeouts(timeouts: Timeouts): void;
  /** Whether the channel was closed, or given up because a request took too long or its second thread died. */
  readonly isClosed: boolean;
  /** Number of the session; null if there is none, or if it is known to be lost. */
  readonly session: number | null;
  /** Greatest number that a session of this connection has had so far; 0 before the first. */
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

/** Returns a copy of the numbers of round trips and statements that this thread has made so far. */
export function tripTotals(): TripTotals {
  return { ...totals };
}

/** A session of a channel's connection. */
interface Session {
  readonly no: number;
  readonly prepared: PreparedStatements;
  /** Names of portals that are closed before the next statements. */
  portals: readonly string[];
  readonly socket: MessageSocket;
}

/**
 * Starts the thread that makes the connection. It connects at the first request.
 * @param sessionsBefore greatest number of a session so far; those of this channel have greater ones
 */
export function openChannel(url: string, sessionsBefore = 0): ConnectionChannel {
  const second = startSecondThread(url, sessionsBefore);
  const state = { roundTrips: 0, sessions: sessionsBefore, timeouts: DEFAULT_TIMEOUTS };
  let session: Session | null = null;

  const lost = (code: string): PostgresError => {
    session = null;
    return new PostgresError({ code, constraint: null, isLost: true });
  };
  /** Closes the channel for good, and throws. Its socket is closed with the thread that made it. */
  const giveUp = (): never => {
    second.terminate();
    throw lost('ETIMEDOUT');
  };
  const connect = (): Session => {
    const { connectMs, statementMs } = state.timeouts;
    const reply = second.ask({ kind: 'connect', timeoutMs: connectMs }, connectMs + statementMs) ?? giveUp();
    if ('error' in reply) throw lost(reply.error.code);
    assert('session' in reply);
    state.sessions = reply.session;
    return (session = { no: reply.session, prepared: new Map(), portals: [], socket: socketOf(reply.fd, second) });
  };
  const run = (statements: readonly SentStatement[] | string): Replied => {
    const { connectMs, statementMs } = state.timeouts;
    const end = performance.now() + statementMs + (session === null ? connectMs : 0);
    const used = session ?? connect();
    const { bytes, sent } = toMessages(statements, used);
    const received = used.socket.exchange(bytes, end - performance.now()) ?? giveUp();
    const replied = readReply(Buffer.from(received.bytes.buffer), sent);
    if (received.lost === null && replied.error?.isLost !== true) return replied;
    second.send({ kind: 'drop' });
    throw lost(replied.error?.code ?? received.lost!);
  };
  return {
    ask(statements) {
      if (second.isEnded) throw lost('closed');
      count(statements);
      state.roundTrips += 1;
      const { results, error } = run(statements);
      if (error !== undefined) throw new PostgresError(error);
      return typeof statements === 'string' ? results.slice(-1) : results;
    },
    closePortal(name) {
      if (session !== null) session.portals = [...session.portals, name];
    },
    post(text) {
      if (session !== null) session.socket.post(toMessages(text, session).bytes, state.timeouts.statementMs);
    },
    setTimeouts: (timeouts) => void (state.timeouts = timeouts),
    get isClosed() {
      return second.isEnded;
    },
    get session() {
      return session?.no ?? null;
    },
    get sessions() {
      return state.sessions;
    },
    get roundTrips() {
      return state.roundTrips;
    },
    close() {
      if (second.isEnded) return;
      second.ask({ kind: 'end' }, state.timeouts.statementMs);
      session = null;
      second.terminate();
    },
  };
}

/** Makes the messages of statements, and tells how to read the reply to a batch. */
function toMessages(statements: readonly SentStatement[] | string, session: Session) {
  const { prepared, portals } = session;
  session.portals = [];
  if (typeof statements === 'string') return { bytes: textMessage(statements, portals), sent: undefined };
  const { bytes, expected } = batchMessages(prepared, statements, portals);
  return { bytes, sent: { statements, expected, prepared } };
}

/** Returns the socket that was handed over, or one whose messages go through the second thread if `fd` is null. */
function socketOf(fd: number | null, second: SecondThread): MessageSocket {
  const receive = (request: Parameters<SecondThread['ask']>[0], timeoutMs: number) => {
    const reply = second.ask(request, timeoutMs);
    assert(reply === undefined || 'bytes' in reply);
    return reply;
  };
  const readElsewhere = (timeoutMs: number) => receive({ kind: 'read' }, timeoutMs);
  if (fd !== null) return openDirectSocket(fd, { isOpen: () => !second.isEnded, hasFailed: hasError, readElsewhere });
  return {
    exchange: (bytes, timeoutMs) => receive({ kind: 'exchange', bytes }, timeoutMs),
    post: (bytes) => second.send({ kind: 'post', bytes }),
  };
}

function count(statements: readonly SentStatement[] | string): void {
  totals.trips += 1;
  totals.statements += typeof statements === 'string' ? 1 : statements.length;
}
