/**
 * A connection to PostgreSQL that a thread waits for, as it waits for SQLite's file. A thread of its own holds the
 * socket; a round trip over it takes some 30 µs more than one that is awaited. Only threads that may stand still use
 * it: reader threads, the writer thread, workers, never a thread that serves requests.
 */
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { EngineError } from '../../errors.ts';
import type { Parameter, QueryResult, Reply, Request, RequestError, ThreadData } from './connection-messages.ts';

export interface BlockingConnection {
  /**
   * Runs a statement, prepared under `name` if it is given, or without `values` a text of several statements. Connects
   * if there is no session.
   * @throws EngineError as `databaseError`, whose `cause` is a `PostgresError`
   */
  query(text: string, values?: readonly Parameter[], name?: string): QueryResult;
  /** Number of the session; null if there is none, or if it is known to be gone: settings must be made anew. */
  readonly session: number | null;
  /** Number of round trips so far. */
  readonly roundTrips: number;
  close(): void;
}

/** Longest time that connecting may take, ms. */
const CONNECT_MS = 5_000;
/** Longest time that a statement may take; then the session counts as lost, ms. */
const STATEMENT_MS = 60_000;

/** What PostgreSQL said, without the values that its messages quote. */
export class PostgresError extends Error {
  override readonly name = 'PostgresError';
  readonly code: string;
  readonly constraint: string | null;
  readonly isLost: boolean;

  constructor({ code, constraint, isLost, detail }: RequestError) {
    super(`PostgreSQL: ${code}${detail === undefined ? '' : ` (${detail})`}`);
    this.code = code;
    this.constraint = constraint;
    this.isLost = isLost;
  }
}

/** Starts the thread of a connection, which connects at the first statement. */
export function openBlockingConnection(url: string): BlockingConnection {
  const { port1: port, port2 } = new MessageChannel();
  const signal = new Int32Array(new SharedArrayBuffer(4));
  const thread = new Worker(new URL(`./connection-thread${import.meta.filename.slice(-3)}`, import.meta.url), {
    workerData: { port: port2, signal, url } satisfies ThreadData,
    transferList: [port2],
  });
  // A process ends with its main thread, however many connections are open.
  thread.unref();
  port.unref();
  let roundTrips = 0;
  let session: number | null = null;
  let isClosed = false;

  const giveUp = () => {
    isClosed = true;
    session = null;
    port.close();
    void thread.terminate();
  };
  const ask = (request: Omit<Request, 'no' | 'timeoutMs' | 'session'>): QueryResult => {
    if (isClosed) throw databaseError(new PostgresError({ code: 'closed', constraint: null, isLost: true }));
    const no = ++roundTrips;
    const before = Atomics.load(signal, 0);
    port.postMessage({ ...request, no, session, timeoutMs: CONNECT_MS } satisfies Request);
    if (Atomics.wait(signal, 0, before, CONNECT_MS + STATEMENT_MS) === 'timed-out') {
      giveUp();
      throw databaseError(new PostgresError({ code: 'ETIMEDOUT', constraint: null, isLost: true }));
    }
    const { message } = receiveMessageOnPort(port) as { message: Reply };
    if ('error' in message) {
      if (message.error.isLost) session = null;
      throw databaseError(new PostgresError(message.error));
    }
    session = message.session;
    return message;
  };
  return {
    query: (text, values, name) => ask({ text, values, name }),
    get session() {
      return session;
    },
    get roundTrips() {
      return roundTrips;
    },
    close() {
      if (isClosed) return;
      ask({ text: '', end: true });
      giveUp();
    },
  };
}

/** Returns what PostgreSQL said, if an error is of it. */
export function postgresError(error: unknown): PostgresError | undefined {
  return error instanceof EngineError && error.cause instanceof PostgresError ? error.cause : undefined;
}

/**
 * Turns an error of PostgreSQL into the EngineError that a caller gets: `storage_full` for a full disk; `unavailable`
 * for a lost session, a server that starts, stops, only reads or has too many connections, and for a transaction that
 * lost against another; `internal` for all else.
 */
function databaseError(cause: PostgresError): EngineError {
  const { code } = cause;
  if (code === '53100') return new EngineError('storage_full', 'the disk of the database is full', { cause });
  const isPassing = cause.isLost || /^(?:40|53|55P03|57|25006)/.test(code);
  return isPassing
    ? new EngineError('unavailable', `the database does not answer (${code})`, { cause, retryAfterMs: 1_000 })
    : new EngineError('internal', cause.message, { cause });
}
