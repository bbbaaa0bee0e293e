import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf } from '../engine/index.ts';

/** Share of all connections that one address may have. */
const SHARE_OF_ADDRESS = 0.5;

/** Most bytes of replies that wait unread on all connections together. */
const MOST_UNREAD_BYTES = 128 * 1024 * 1024;
/** Longest interval between two looks at what waits unread (ms). */
const LOOK_MS = 250;

/** What bounds the connections of a server. */
export interface ConnectionBounds {
  /** Most connections, those that another process accepted included; further ones are closed at once. */
  readonly most: number;
  /** Time after which a connection is cut whose client reads nothing of what waits for it (ms). */
  readonly readerTimeoutMs: number;
  /** Whether an address is that of a trusted proxy, whose connections are those of many clients. */
  readonly isProxy: (address: string) => boolean;
}

/**
 * Bounds the connections of a server: all of them, those of one address that is no proxy's, and the time for which a
 * client may leave a reply unread. A client that reads slowly moves on by at least a piece of its reply
 * (json-reply.ts) in that time. Where all connections together hold too much that is unread, those of the address with
 * the most of it are cut, the largest first.
 */
export function boundConnections(server: Server, { most, readerTimeoutMs, isProxy }: ConnectionBounds): void {
  const mostOfAddress = Math.max(1, Math.floor(most * SHARE_OF_ADDRESS));
  const countOf = new Map<string, number>();
  const unread = new Map<Socket, { sent: number; since: number }>();
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    const { remoteAddress: address = '' } = socket;
    const network = networkOf(address);
    const count = countOf.get(network) ?? 0;
    const isOneTooMany = sockets.size >= most || (count >= mostOfAddress && !isProxy(address));
    if (isOneTooMany) return void socket.destroy();
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
    let unreadBytes = 0;
    for (const socket of sockets) {
      unreadBytes += socket.writableLength;
      const sent = socket.bytesWritten - socket.writableLength;
      const before = unread.get(socket);
      if (socket.writableLength === 0) unread.delete(socket);
      else if (before?.sent !== sent) unread.set(socket, { sent, since: now });
      else if (now - before.since >= readerTimeoutMs) socket.destroy();
    }
    if (unreadBytes > MOST_UNREAD_BYTES) cutLargest(sockets, unreadBytes - MOST_UNREAD_BYTES);
  };
  const sweep = setInterval(look, Math.min(LOOK_MS, Math.max(50, readerTimeoutMs / 10))).unref();
  server.once('close', () => clearInterval(sweep));
}

/** Cuts connections that hold at least this many unread bytes together, those of the address with the most first. */
function cutLargest(sockets: Iterable<Socket>, bytes: number): void {
  const ofNetwork = Map.groupBy(sockets, ({ remoteAddress = '' }) => networkOf(remoteAddress));
  const unread = (some: readonly Socket[]) => some.reduce((sum, { writableLength }) => sum + writableLength, 0);
  const networks = [...ofNetwork.values()].sort((a, b) => unread(b) - unread(a));
  let left = bytes;
  for (const socket of networks.flatMap((some) => some.sort((a, b) => b.writableLength - a.writableLength))) {
    if (left <= 0) return;
    left -= socket.writableLength;
    socket.destroy();
  }
}
