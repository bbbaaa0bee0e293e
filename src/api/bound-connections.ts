import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf } from '../engine/index.ts';

/**
 * Greatest share (0 to 1) of all connections that one network may have: an IPv4 address, or an IPv6 prefix. It does not
 * hold for trusted proxies.
 */
const SHARE_OF_NETWORK = 0.5;

/**
 * Number of bytes of replies that may wait unread on all connections together. If more wait, connections are closed
 * until no more do (`cutLargest`).
 */
const MAX_UNREAD_BYTES = 128 * 1024 * 1024;
/** Longest interval between two checks of the bytes that wait unread (ms). */
const LOOK_MS = 250;

/** Bounds on the connections of a server. */
export interface ConnectionBounds {
  /**
   * Greatest number of open connections, including connections that another process accepted and handed over. Further
   * connections are closed at once.
   */
  readonly most: number;
  /** Time after which a connection is closed if its client reads nothing of a reply that waits for it (ms). */
  readonly readerTimeoutMs: number;
  /**
   * Tells whether an address is that of a trusted proxy, which may have any share of the connections since they come
   * from many clients.
   */
  readonly isProxy: (address: string) => boolean;
}

/**
 * Limits the connections of a server. A new connection is closed at once if `most` are open already, or if its network
 * (not a trusted proxy) has half of `most` already. An open connection is closed if the client reads nothing of a
 * waiting reply for `readerTimeoutMs`; a slow client is safe as long as it reads at least 64 KiB in that time. If more
 * than 128 MiB wait unread on all connections, some connections are closed: those of the network with the most unread
 * bytes, the largest first.
 */
export function boundConnections(server: Server, { most, readerTimeoutMs, isProxy }: ConnectionBounds): void {
  const mostOfNetwork = Math.max(1, Math.floor(most * SHARE_OF_NETWORK));
  const countOf = new Map<string, number>();
  const unread = new Map<Socket, { sent: number; since: number }>();
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    const { remoteAddress: address = '' } = socket;
    const network = networkOf(address);
    const count = countOf.get(network) ?? 0;
    const isOneTooMany = sockets.size >= most || (count >= mostOfNetwork && !isProxy(address));
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
    if (unreadBytes > MAX_UNREAD_BYTES) cutLargest(sockets, unreadBytes - MAX_UNREAD_BYTES);
  };
  const sweep = setInterval(look, Math.min(LOOK_MS, Math.max(50, readerTimeoutMs / 10))).unref();
  server.once('close', () => clearInterval(sweep));
}

/**
 * Closes connections until at least `bytes` unread bytes are freed: first those of the network with the most unread
 * bytes, and of its connections the largest first.
 */
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
