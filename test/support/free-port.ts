import { once } from 'node:events';
import net from 'node:net';

/**
 * Ports below those that systems give to connections and to servers on port 0 (from 32,768 on Linux, from 49,152
 * elsewhere). So nothing but another call of `freePort` can take a port between its choice and its use.
 */
const [FIRST_PORT, PORTS] = [20_000, 12_000];

/** Returns the number of a TCP port of 127.0.0.1 on which nothing listens, for a program that has to be told one. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = net.createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
