import type { IncomingMessage } from 'node:http';
import { EngineError, networkOf } from '../../engine/index.ts';

/**
 * Greatest number of sign-ins from one network whose body has not arrived. A sign-in needs no key, so anyone could open
 * any number of them and never send the rest.
 */
const MOST_OF_NETWORK = 32;

/** Number of sign-ins whose body has not arrived, by network. */
const arriving = new Map<string, number>();

/**
 * Reads the body of a sign-in. One that came together with its headers, as most do, is always read.
 * @param address address of the client
 * @param read reads the body
 * @throws EngineError `rate_limited` if 32 other bodies from the network have not arrived; also what `read` throws
 */
export async function readSignIn<Body>(
  request: IncomingMessage,
  address: string,
  read: () => Promise<Body>,
): Promise<Body> {
  // Node passes on the headers first, and what came with them right afterwards.
  await Promise.resolve();
  if (request.readableLength === Number(request.headers['content-length'])) return read();
  const network = networkOf(address);
  const others = arriving.get(network) ?? 0;
  if (others >= MOST_OF_NETWORK) {
    throw new EngineError(
      'rate_limited',
      `${MOST_OF_NETWORK} sign-ins from this address have sent only a part of their body: send the rest, or try again`,
      { retryAfterMs: 1_000 },
    );
  }
  arriving.set(network, others + 1);
  try {
    return await read();
  } finally {
    const left = arriving.get(network)! - 1;
    if (left === 0) arriving.delete(network);
    else arriving.set(network, left);
  }
}
