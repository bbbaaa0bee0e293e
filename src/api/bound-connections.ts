import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf } from '../engine/index.ts';

/** Share of all connections that one address may have. */
const SHARE_OF_ADDRESS = 0.5;

/** What bounds the connections of a server. */
export interface ConnectionBounds {
  /** Most connections; further ones are closed at once. */
  readonly most: number;
  /** Time after which a connection is cut whose client reads nothing of what waits for it (ms). */
  readonly readerTimeoutMs: number;
  /** Whether an address is that of a trusted proxy, whose connections are those of many clients. */
  readonly isProxy: (address: string) => boolean;
}

/**
 * Bounds the connections of a server: all of them, those of one address that is no proxy's, and the time for which a
 * client may leave a reply unread. A client that reads slowly moves on by at least a piece of its reply
 * (json-reply.ts) in that time.
 */
export function boundConnections(server: Server, { most, readerTimeoutMs, isProxy }: ConnectionBounds): void {
  server.maxConnections = most;
  const mostOfAddress = Math.max(1, Math.floor(most * SHARE_OF_ADDRESS));
  const countOf = new Map<string, number>();
  const unread = new Map<Socket, { sent: number; since: number }>();
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    const { remoteAddress: address = '' } = socket;
    const network = networkOf(address);
    const count = countOf.get(network) ?? 0;
    if (count >= mostOfAddress && !isProxy(address)) return void socket.destroy();
    countOf.set(network, count + 1);
    sockets.add(socket);
    socket.once('close', () => {
      sockets.delete(socket);
      unread.delete(socket);
      const left = countOf.get(network)! - 1;
      if (left === 0) countOf.delete(network);
      else countOf.set(network, left);
    });
  });
  const look = () => {
    const now = performance.now();
    for (const socket of sockets) {
      const sent = socket.bytesWritten - socket.writableLength;
      const before = unread.get(socket);
      if (socket.writableLength === 0) unread.delete(socket);
      else if (before?.sent !== sent) unread.set(socket, { sent, since: now });
      else if (now - before.since >= readerTimeoutMs) socket.destroy();
    }
  };
  const sweep = setInterval(look, Math.max(50, readerTimeoutMs / 10)).unref();
  server.once('close', () => clearInterval(sweep));
}
