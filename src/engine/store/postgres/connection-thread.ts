/**
 * The thread that makes the connections of a thread that blocks (`connection-channel.ts`). It handles one request at a
 * time, and wakes the blocked thread with the reply. Where it can, it hands over the socket's file descriptor, and the
 * blocked thread then reads and writes by itself; otherwise it does so here.
 */

import type net from 'node:net';
import { workerData } from 'node:worker_threads';
import pg from 'pg';
import { HAS_DIED, type Received, type Reply, type Request, type ThreadData } from './connection-messages.ts';
import { ReplyBuffer } from './reply-buffer.ts';
import { hasError } from './server-messages.ts';
import { BEGIN_SESSION } from './session-settings.ts';
import { watchNumber } from './watch-number.ts';

const { port, signal, url, sessionsBefore } = workerData as ThreadData;
let client: pg.Client | undefined;
/**
 * Buffer of the replies on the session's socket, while this thread itself reads it: only if the socket was not handed
 * over.
 */
let replies = new ReplyBuffer();
let sessions = sessionsBefore;
const watching = new AbortController();
/**
 * Completion of the latest request. The next request waits for it, so that requests are handled one after the other.
 */
let lastRequest: Promise<void> = Promise.resolve();

// Sockets are closed when a thread ends, by a fault as well: whoever uses one by its number is to know before.
process.on('exit', () => {
  Atomics.store(signal, HAS_DIED, 1);
  Atomics.store(signal, 0, -1);
  Atomics.notify(signal, 0);
});
port.on('message', (request: Request) => {
  lastRequest = lastRequest.then(() => serve(request));
});

async function serve(request: Request): Promise<void> {
  const { no, kind } = request;
  if (kind === 'drop') return drop();
  if (kind === 'post') return post(request.bytes);
  const reply = { no, ...(await answer(request)) } as Reply;
  port.postMessage(reply, 'bytes' in reply ? [reply.bytes.buffer] : []);
  Atomics.store(signal, 0, no);
  Atomics.notify(signal, 0);
  if (kind === 'end') port.close();
}

async function answer(request: Request) {
  switch (request.kind) {
    case 'connect':
      drop();
      return connect(request.timeoutMs).catch((error: NodeJS.ErrnoException) => ({
        error: { code: error.code ?? 'lost' },
      }));
    case 'exchange':
      return exchange(request.bytes);
    case 'read':
      return readOnce();
    case 'watch':
      void watchNumber({ ...request, url, signal: watching.signal });
      return { done: true };
    default:
      watching.abort();
      await leave();
      return { done: true };
  }
}

async function connect(timeoutMs: number) {
  const limits = { connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs };
  const made = new pg.Client({ connectionString: url, ...limits, keepAlive: true });
  // Without a listener a connection that ends would end the thread. The next request tells of it.
  made.on('error', () => {});
  await made.connect();
  client = made;
  await made.query(BEGIN_SESSION);
  replies = new ReplyBuffer();
  const stream = socketOf(made);
  // From here on `pg` gets no messages: it would make a text and an object of each value.
  stream.removeAllListeners('data');
  stream.pause();
  return { session: ++sessions, fd: descriptorOf(stream) };
}

function socketOf(of: pg.Client): net.Socket {
  return (of as unknown as { readonly connection: { readonly stream: net.Socket } }).connection.stream;
}

/**
 * The part that is used of the internal object by which Node holds an unencrypted socket; `fd` is missing on systems
 * without file descriptors.
 */
interface SocketHandle {
  readonly fd?: number;
  readStart(): void;
  readStop(): void;
}

function handleOf(stream: net.Socket): SocketHandle | undefined {
  return (stream as unknown as { readonly _handle?: SocketHandle })._handle;
}

/** Returns a socket's file descriptor, from which this thread reads no more; null if it has none to hand over. */
function descriptorOf(stream: net.Socket): number | null {
  const handle = handleOf(stream);
  if ('encrypted' in stream || handle?.fd === undefined || handle.fd < 0) return null;
  // The stream goes on to believe that it reads, and so does not begin again.
  handle.readStop();
  return handle.fd;
}

/** Sends messages and waits for the reply, on a socket that was not handed over. */
async function exchange(bytes: Uint8Array): Promise<Received> {
  if (client !== undefined) socketOf(client).write(bytes);
  const lost = await receive((chunk) => replies.append(chunk));
  return { bytes: replies.take(), lost };
}

/** Waits until something comes on a socket that was handed over, reads it, and reads no more. */
async function readOnce(): Promise<Received> {
  const handle = client && handleOf(socketOf(client));
  let bytes = new Uint8Array(0);
  handle?.readStart();
  const lost = await receive((chunk) => {
    handle!.readStop();
    bytes = new Uint8Array(chunk);
    return true;
  });
  return { bytes, lost };
}

/**
 * Passes each chunk that comes from the server to `take`, until that returns true, which ends the reading.
 * @returns null once `take` has returned true; if the connection is lost before, the system's code (such as
 *   ECONNRESET), or `lost` if there is none
 */
function receive(take: (chunk: Buffer) => boolean): Promise<string | null> {
  const stream = client && socketOf(client);
  if (stream === undefined || stream.destroyed) return Promise.resolve('lost');
  return new Promise((resolve) => {
    const finish = (lost: string | null) => {
      stream.pause();
      stream.off('data', onData).off('error', onLost).off('close', onLost);
      resolve(lost);
    };
    const onData = (chunk: Buffer) => {
      if (take(chunk)) finish(null);
    };
    const onLost = (error?: NodeJS.ErrnoException | boolean) =>
      finish((typeof error === 'object' && error.code) || 'lost');
    stream.on('data', onData).on('error', onLost).on('close', onLost);
    stream.resume();
  });
}

async function post(bytes: Uint8Array): Promise<void> {
  const reply = await exchange(bytes);
  if (reply.lost !== null || hasError(Buffer.from(reply.bytes.buffer))) drop();
}

/** Closes the connection without a farewell. */
function drop(): void {
  if (client !== undefined) socketOf(client).destroy();
  client = undefined;
}

/** Closes the connection with a farewell (Terminate), so that the server notes no broken one. */
async function leave(): Promise<void> {
  const stream = client === undefined ? undefined : socketOf(client);
  if (stream?.writable === true) await new Promise<void>((resolve) => void stream.end(TERMINATE, () => resolve()));
  drop();
}

const TERMINATE = Buffer.from([0x58, 0, 0, 0, 4]);
