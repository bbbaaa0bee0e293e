import { setImmediate as yieldTurn } from 'node:timers/promises';

/**
 * Longest time for which a computation that gives memories vectors, entities or links holds a worker's thread (ms). The
 * same thread renews leases and stores the words of documents, in slices of this length. If it did not yield, a batch
 * of 256 chunks would hold the thread for seconds.
 */
const MAX_HELD_MS = 4;

/**
 * Creates a function to be called between the steps of a long computation: it yields the thread once the computation
 * has held it for 4 ms, and else returns at once.
 */
export function createYielder(): () => Promise<void> {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < MAX_HELD_MS) return;
    await yieldTurn();
    since = performance.now();
  };
}
