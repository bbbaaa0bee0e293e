import { setImmediate as yieldTurn } from 'node:timers/promises';

/**
 * Longest time that work which only adds meaning holds a worker's thread (ms). The same thread renews leases and stores
 * the words of documents, in slices of this length. Without a turn for them, a batch of 256 chunks held it for seconds.
 */
const MAX_HELD_MS = 4;

/**
 * Creates a function to be called between the parts of a long computation: it gives everything else on the thread a
 * turn once the computation has held it for `MAX_HELD_MS`.
 */
export function createYielder(): () => Promise<void> {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < MAX_HELD_MS) return;
    await yieldTurn();
    since = performance.now();
  };
}
