import type { Worker } from 'node:worker_threads';
import type { Config } from '../engine/index.ts';

/**
 * A counter in shared memory that shows whether a thread still returns to its event loop. The thread increments it five
 * times a second, and the thread that started it checks that it rises. Without this check, a step that never ends would
 * block its worker for good, since the blocked thread is also the one that renews its leases and makes jobs with ended
 * leases due again.
 */
export type Heart = Int32Array<SharedArrayBuffer>;

/** Time between two increments of the counter, the heart's beats (ms). */
const BEAT_MS = 200;
/** Number of successive checks that find no new beat after which the watched thread counts as hung. */
const LOOKS = 10;
/**
 * Shortest time without a beat that counts as a hang (ms), even if leases are short: a thread may be slow on a busy
 * machine.
 */
const MIN_STILL_MS = 10_000;
/** Longest wait for a hung thread to end, after which the process is killed (ms). */
const MAX_TERMINATE_MS = 5_000;

export function createHeart(): Heart {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}

/** Begins to increment the heart's counter every 200 ms. Call it in the thread that is watched. */
export function startBeating(heart: Heart): void {
  // One beat comes at once: the first text that the thread gets may be the one on which it hangs.
  Atomics.add(heart, 0, 1);
  setInterval(() => Atomics.add(heart, 0, 1), BEAT_MS).unref();
}

/** Returns the time without a beat after which a thread counts as hung (ms): twice OM_LEASE_MS, and at least 10 s. */
export function hungAfterMs({ OM_LEASE_MS }: Config): number {
  return Math.max(2 * OM_LEASE_MS, MIN_STILL_MS);
}

/**
 * Calls `onStill` once, when a heart that has beaten before did not beat for about `mostMs`. The silence must span ten
 * timer ticks of the calling thread. So if the process was suspended or the calling thread was busy, it does not take
 * that time for a silence of the watched thread.
 * @returns a function that ends the watch
 */
export function watchHeart(heart: Heart, mostMs: number, onStill: () => void): () => void {
  let seen = 0;
  let looks = 0;
  const timer = setInterval(() => {
    const beats = Atomics.load(heart, 0);
    looks = beats === seen ? looks + 1 : 0;
    seen = beats;
    if (beats === 0 || looks < LOOKS) return;
    clearInterval(timer);
    onStill();
  }, mostMs / LOOKS).unref();
  return () => clearInterval(timer);
}

/**
 * Ends a thread that hangs. A thread that hangs in native code cannot be ended; if it is still there after 5 s, the
 * process is killed. No job is lost, since the ledger holds all of them.
 */
export async function endHungThread(thread: Worker): Promise<void> {
  const timer = setTimeout(() => process.kill(process.pid, 'SIGKILL'), MAX_TERMINATE_MS);
  await thread.terminate();
  clearTimeout(timer);
}
