import type { Worker } from 'node:worker_threads';
import type { Config } from '../engine/config.ts';

/**
 * Whether a thread comes back to its event loop: it counts beats in shared memory, and whoever started it looks whether they go on. A
 * text on which some step never ends would otherwise take its worker for good, since the thread that spins is also the one that renews
 * leases and takes them back.
 */
export type Heart = Int32Array<SharedArrayBuffer>;

const BEAT_MS = 200;
/** How often it is looked at before it counts as still. */
const LOOKS = 10;
/** Steps keep a thread for milliseconds at a time. However short the leases are, a busy machine is no reason to end it. */
const STILL_LEAST_MS = 10_000;
const TERMINATE_MOST_MS = 5_000;

export function createHeart(): Heart {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}

/** In the thread that is watched. */
export function startBeating(heart: Heart): void {
  // At once too: the first text that it gets may be the one.
  Atomics.add(heart, 0, 1);
  setInterval(() => Atomics.add(heart, 0, 1), BEAT_MS).unref();
}

export function stillMostMs({ OM_LEASE_MS }: Config): number {
  return Math.max(2 * OM_LEASE_MS, STILL_LEAST_MS);
}

/**
 * Tells once that a heart which beat before stands still. Counted in looks of this thread, so that a process which was stopped, or
 * whose own thread was busy, does not take that for the other's silence.
 * @returns ends the watch
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
 * Ends a thread whose heart stands still. One that hangs outside of JavaScript does not hear of it and would hold up the end of the
 * process too, which is then killed: the ledger knows what it was at.
 */
export async function endHungThread(thread: Worker): Promise<void> {
  const timer = setTimeout(() => process.kill(process.pid, 'SIGKILL'), TERMINATE_MOST_MS);
  await thread.terminate();
  clearTimeout(timer);
}
