import { once } from 'node:events';
import { createServer, type Server, ServerResponse } from 'node:http';
import type { AddressInfo, Server as NetServer, Socket } from 'node:net';
import type { Express } from 'express';
import { type Engine, EngineError, isLoopback, noteConnection } from '../engine/index.ts';
import { boundConnections } from './bound-connections.ts';
import { closeInTurns } from './close-in-turns.ts';
import { inOrder } from './in-order.ts';
import { proxyCheck } from '../client-address.ts';
import { PacedRequest } from './paced-request.ts';
import { parseInTurns } from './parse-in-turns.ts';

export interface RunningServer {
  readonly server: Server;
  /** Address at which clients on this machine reach the server, without a slash at its end. */
  readonly url: string;
  /** Port at which the server listens, even if `OM_PORT` is 0 and the system chose one. */
  readonly port: number;
  /** Resolves once the server has stopped and the last connection is closed. */
  readonly closed: Promise<void>;
}

/** Longest time until the headers of a request have arrived (ms). */
const HEADERS_TIMEOUT_MS = 15_000;
/**
 * Interval at which Node checks connections for late headers and requests (ms). It closes all that are late in one turn
 * of the event loop, so they should be few.
 */
const CONNECTIONS_CHECK_MS = 250;
/**
 * Longest time until a whole request has arrived (ms). It is long because of NDJSON uploads. A JSON body has a far
 * shorter limit (read-body.ts), and so has a client that still sends after it was answered (record-requests.ts).
 */
const REQUEST_TIMEOUT_MS = 3_600_000;
/**
 * Time for which an idle connection stays open (ms). It is longer than the 60 s of common load balancers, so that they
 * close it first.
 */
const KEEP_ALIVE_MS = 65_000;
/** Interval at which a stopping server closes connections that have become idle (ms). */
const SWEEP_MS = 25;

/**
 * Serves the app at OM_HOST and OM_PORT until `signal` aborts. Then no new connection is accepted, requests in flight
 * are answered, idle connections are closed, and after OM_SHUTDOWN_MS all remaining connections are closed. The app
 * must have been made with the same signal, which ends its event streams.
 * @throws EngineError `forbidden` while no key is configured, if OM_HOST is not a loopback address or OM_CORS_ORIGINS
 *   is set; `unavailable` if the server cannot listen at the address
 */
export async function listen(app: Express, engine: Engine, signal: AbortSignal): Promise<RunningServer> {
  const { server, close } = createHttpServer(app, engine);
  const address = await bind(server, engine);
  const closed = once(server, 'close').then(() => undefined);
  onAbort(signal, close);
  return { server, url: address.url, port: address.port, closed };
}

/** An HTTP server for connections that another process accepted. */
export interface ConnectionServer {
  /** Serves a connection of which nothing was read yet. After the signal has aborted, it is closed at once. */
  accept(socket: Socket): void;
  /** Resolves once the signal has aborted and the last connection is closed. */
  readonly closed: Promise<void>;
}

/**
 * Serves the app on connections that are passed to `accept`, until `signal` aborts. Then requests in flight are
 * answered, idle connections are closed, and after OM_SHUTDOWN_MS all remaining connections are closed.
 */
export function serveConnections(app: Express, engine: Engine, signal: AbortSignal): ConnectionServer {
  const { server, close } = createHttpServer(app, engine);
  const open = new Set<Socket>();
  const closed = Promise.withResolvers<void>();
  const endIfIdle = () => {
    if (signal.aborted && open.size === 0) {
      server.emit('close');
      closed.resolve();
    }
  };
  onAbort(signal, () => {
    close();
    endIfIdle();
  });
  return {
    accept(socket) {
      open.add(socket);
      socket.once('close', () => {
        open.delete(socket);
        endIfIdle();
      });
      server.emit('connection', socket);
      socket.resume();
      if (signal.aborted) socket.destroy();
    },
    closed: closed.promise,
  };
}

/**
 * Makes a server listen at OM_HOST and OM_PORT.
 * @returns its address for clients on this machine, and its port
 * @throws EngineError `forbidden` while no key is configured, if OM_HOST is not a loopback address or OM_CORS_ORIGINS
 *   is set; `unavailable` if the server cannot listen at the address
 */
export async function bind(
  server: NetServer,
  engine: Engine,
): Promise<{ readonly url: string; readonly port: number }> {
  const { OM_HOST: host, OM_PORT: port } = engine.config;
  if (engine.control.isOpen() && !isLoopback(host)) {
    throw new EngineError(
      'forbidden',
      `no key is configured, so everyone who reaches OM_HOST=${host} could read and change all memories: ` +
        'set OM_API_KEY, or make a key with `cairn keys create`, or listen on 127.0.0.1',
    );
  }
  if (engine.control.isOpen() && engine.config.corsOrigins.length > 0) {
    throw new EngineError(
      'forbidden',
      'OM_CORS_ORIGINS is set and no key is configured, so pages of these origins could read and change all ' +
        'memories: set OM_API_KEY, or make a key with `cairn keys create`, or leave OM_CORS_ORIGINS empty',
    );
  }
  try {
    server.listen({ host: host.replace(/^\[(.*)\]$/, '$1'), port });
    await once(server, 'listening');
  } catch (error) {
    throw new EngineError('unavailable', `cannot listen on ${host}:${port} (OM_HOST, OM_PORT)`, { cause: error });
  }
  const address = server.address() as AddressInfo;
  return { url: urlOf(address), port: address.port };
}

/**
 * Makes a server for the app with Cairn's limits of time and of connections, and a function that closes it once
 * requests in flight are answered, after OM_SHUTDOWN_MS at the latest.
 */
function createHttpServer(app: Express, engine: Engine): { readonly server: Server; close(): void } {
  const server = createServer({
    IncomingMessage: withPrototype(PacedRequest, withMethods(app.request, PacedRequest.prototype)),
    ServerResponse: withPrototype(ServerResponse, app.response),
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: CONNECTIONS_CHECK_MS,
    requireHostHeader: false,
  });
  const { OM_MAX_CONNECTIONS, OM_API_PROCESSES, OM_READER_TIMEOUT_MS: readerTimeoutMs, trustedProxies } = engine.config;
  // Connections are handed out to the processes in turn.
  const most = Math.ceil(OM_MAX_CONNECTIONS / OM_API_PROCESSES);
  const isProxy = proxyCheck(trustedProxies);
  closeInTurns(server);
  parseInTurns(server, isProxy);
  boundConnections(server, { most, readerTimeoutMs, isProxy });
  const silent = new Set<Socket>();
  server.on('connection', (socket) => {
    noteConnection();
    silent.add(socket);
    socket.once('close', () => silent.delete(socket));
  });
  server.on('request', (request) => void silent.delete(request.socket));
  server.on('request', inOrder(app, isProxy));
  // Node would answer 417, past the order of the connection. HTTP allows a server to ignore what it does not know.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  return { server, close: () => closeGracefully(server, { silent, graceMs: engine.config.OM_SHUTDOWN_MS }) };
}

/**
 * Makes the class of a server's requests or responses, with the prototype that Express gives to each of them. Otherwise
 * Express would change two prototypes a request, and V8 would look up each of their properties without its fast paths
 * afterwards.
 */
function withPrototype<Class extends new (...all: never[]) => object>(original: Class, prototype: object): Class {
  const made = function (...all: unknown[]) {
    return Reflect.construct(original, all, made) as object;
  };
  made.prototype = prototype;
  return made as unknown as Class;
}

/** Adds the methods of a class to the prototype that Express gives to requests. */
function withMethods(prototype: object, methods: object): object {
  for (const [name, method] of Object.entries(Object.getOwnPropertyDescriptors(methods)))
    if (name !== 'constructor') Object.defineProperty(prototype, name, method);
  return prototype;
}

function onAbort(signal: AbortSignal, close: () => void): void {
  if (signal.aborted) close();
  else signal.addEventListener('abort', close, { once: true });
}

/**
 * Closes a server: it accepts no new connection, answers the requests in flight, and closes idle connections.
 * @param options `silent` holds the connections that never sent a request, which Node does not count as idle; after
 *   `graceMs` all connections are closed
 */
function closeGracefully(
  server: Server,
  { silent, graceMs }: { readonly silent: ReadonlySet<Socket>; readonly graceMs: number },
): void {
  server.prependListener('request', (_request, response) => response.setHeader('connection', 'close'));
  server.close();
  for (const socket of silent) socket.destroy();
  // Node has closed the connections that are idle now. One that is still being answered becomes idle later.
  const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  server.once('close', () => {
    clearInterval(sweep);
    clearTimeout(cut);
  });
}

function urlOf({ address, family, port }: AddressInfo): string {
  const host = address === '0.0.0.0' || address === '::' ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address;
  return `http://${host}:${port}`;
}
