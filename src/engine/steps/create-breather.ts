import { setImmediate as turn } from 'node:timers/promises';

/**
 * A worker's thread is held no longer than this (ms) by what only adds meaning: on the same thread the words of documents are stored, in
 * slices as long as this, and leases renewed. A batch of 256 chunks held it for seconds.
 */
const HELD_MOST_MS = 4;

/** Asked between the parts of a long computation: lets everybody else on the thread have a turn where this one has taken long enough. */
export function createBreather(): () => Promise<void> {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < HELD_MOST_MS) return;
    await turn();
    since = performance.now();
  };
}
