import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { onTestFinished } from 'vitest';

/** A chunk of one byte behind 48,000 bytes of a chunk extension, which are no part of the body. */
const BURST = Buffer.from(`1;${'a'.repeat(48_000)}\r\nx\r\n`);

/**
 * Starts a server at 127.0.0.1 whose reply is `bursts` times `BURST`, one a millisecond, so that each is read on its
 * own. The reply has no end until `end` is called. `sent` is resolved once the system has taken all bursts.
 */
export async function serveBursts(bursts: number) {
  const sent = Promise.withResolvers<void>();
  let end = () => {};
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    onTestFinished(() => void socket.destroy());
    end = () => void socket.write('0\r\n\r\n');
    const send = (left: number): void => {
      if (left === 0) sent.resolve();
      else if (!socket.destroyed) socket.write(BURST, () => setTimeout(send, 1, left - 1));
    };
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n');
      send(bursts);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, sent: sent.promise, end: () => end() };
}

/** Returns the memory of all buffers of this process in bytes, after a collection of garbage. */
export function bufferBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().arrayBuffers;
}
