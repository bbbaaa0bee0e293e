import { setImmediate as yieldTurn } from 'node:timers/promises';

/**
 * Time after which a computation that gives memories vectors, entities or links yields a worker's thread at its next
 * step (ms). The step itself may hold the thread longer. The same thread renews leases and stores the words of
 * documents, in slices of about this length. Without yielding, a batch of 256 chunks would hold it for seconds.
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
