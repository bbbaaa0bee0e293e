import net from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** Connections that requested something but read none of the reply. */
export interface SilentReaders extends Disposable {
  /** Number of these connections that the server has not closed. */
  readonly open: number;
}

/**
 * Requests a path over many connections and reads nothing: each socket is paused before the first byte of the reply
 * arrives, so that the server's send buffers fill up.
 */
export async function readNothing(
  { port, key }: { readonly port: number; readonly key: string },
  { connections, path }: { readonly connections: number; readonly path: string },
): Promise<SilentReaders> {
  const sockets = await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = net.connect({ port, host: '127.0.0.1' });
      socket.pause();
      socket.on('error', () => {});
      const { promise, resolve } = Promise.withResolvers<void>();
      socket.once('connect', resolve).once('close', resolve);
      await promise;
      socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\n\r\n`);
      return socket;
    }),
  );
  return {
    get open() {
      return sockets.filter((socket) => !socket.destroyed).length;
    },
    [Symbol.dispose]: () => sockets.forEach((socket) => socket.destroy()),
  };
}

/**
 * Waits until a condition holds.
 * @throws Error after half a minute
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error('the condition does not hold');
    await pause(5);
  }
}
