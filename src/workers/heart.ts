import type { Worker } from 'node:worker_threads';
import type { Config } from '../engine/index.ts';

/**
 * The heart of a thread tells whether it comes back to its event loop: the thread counts beats in shared memory, and
 * whoever started it looks whether they go on. A text on which some step never ends would otherwise take its worker for
 * good, since the thread that spins is also the one that renews leases and takes them back.
 */
export type Heart = Int32Array<SharedArrayBuffer>;

/** Time between two beats (ms). */
const BEAT_MS = 200;
/** Looks without a beat after which a heart counts as still. */
const LOOKS = 10;
/**
 * Shortest silence that counts as a hang (ms), however short the leases are: a busy machine is no reason to end a
 * thread.
 */
const MIN_STILL_MS = 10_000;
/** Longest wait for a hung thread to end before the process is killed (ms). */
const MAX_TERMINATE_MS = 5_000;

export function createHeart(): Heart {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}

/** Lets the heart beat every 200 ms; called in the thread that is watched. */
export function startBeating(heart: Heart): void {
  // One beat comes at once: the first text that the thread gets may be the one on which it hangs.
  Atomics.add(heart, 0, 1);
  setInterval(() => Atomics.add(heart, 0, 1), BEAT_MS).unref();
}

/** Silence after which a thread counts as hung (ms): twice a lease, but 10 s at least. */
export function stillMostMs({ OM_LEASE_MS }: Config): number {
  return Math.max(2 * OM_LEASE_MS, MIN_STILL_MS);
}

/**
 * Calls `onStill` once, when a heart that beat before has stood still for about `mostMs`. Silence is counted in looks
 * of this thread, so that a process which was stopped, or whose own thread was busy, does not take its own silence for
 * the other's.
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
 * Ends a thread whose heart stands still. A thread that hangs outside of JavaScript does not hear of it and would hold
 * up the end of the process too, which is then killed: the ledger knows what it was at.
 */
export async function endHungThread(thread: Worker): Promise<void> {
  const timer = setTimeout(() => process.kill(process.pid, 'SIGKILL'), MAX_TERMINATE_MS);
  await thread.terminate();
  clearTimeout(timer);
}
