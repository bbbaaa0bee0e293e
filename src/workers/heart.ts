import type { Worker } from 'node:worker_threads';
import { limitTime, ownThreadId, unscheduledMs } from '../engine/for-workers.ts';
import type { Config } from '../engine/index.ts';

/**
 * A counter in shared memory that shows whether a thread still returns to its event loop. The thread increments it five
 * times a second, and the thread that started it checks that it rises. Without this check, a step that never ends would
 * block its worker for good, since the blocked thread is also the one that renews its leases and makes jobs with ended
 * leases due again. The second number is the system's id of the thread; 0 before its first beat, and where the system
 * has none.
 */
export type Heart = Int32Array<SharedArrayBuffer>;

const [BEATS, THREAD] = [0, 1];

/** Time between two increments of the counter, the heart's beats (ms). */
const BEAT_MS = 200;
/**
 * Number of successive checks that find no new beat after which the watched thread counts as hung. A check counts in
 * part if the thread waited for a processor since the one before.
 */
const LOOKS = 10;
/** Least part of a check that counts, so that a hang is found within ten times its time however busy the machine is. */
const LEAST_LOOK = 0.1;
/**
 * Shortest time without a beat that counts as a hang (ms), even if leases are short: a thread may be slow on a busy
 * machine.
 */
const MIN_STILL_MS = 10_000;
/** Longest wait for a hung thread to end, without its waits for a processor, after which the process is killed (ms). */
const MAX_TERMINATE_MS = 5_000;

export function createHeart(): Heart {
  return new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
}

/** Begins to increment the heart's counter every 200 ms. Call it in the thread that is watched. */
export function startBeating(heart: Heart): void {
  Atomics.store(heart, THREAD, ownThreadId() ?? 0);
  // One beat comes at once: the first text that the thread gets may be the one on which it hangs.
  Atomics.add(heart, BEATS, 1);
  setInterval(() => Atomics.add(heart, BEATS, 1), BEAT_MS).unref();
}

/** Tells whether the heart has begun to beat. */
export function hasBeaten(heart: Heart): boolean {
  return Atomics.load(heart, BEATS) > 0;
}

/** Returns the time without a beat after which a thread counts as hung (ms): twice OM_LEASE_MS, and at least 10 s. */
export function hungAfterMs({ OM_LEASE_MS }: Config): number {
  return Math.max(2 * OM_LEASE_MS, MIN_STILL_MS);
}

/**
 * Calls `onStill` once, when a heart that has beaten before did not beat for about `mostMs`. The silence must span ten
 * timer ticks of the calling thread. So if the process was suspended or the calling thread was busy, it does not take
 * that time for a silence of the watched thread. Nor does the time count, up to nine tenths of it, in which the watched
 * thread waited for a processor: on a busy machine a thread of low priority waits far longer than it runs.
 * @param waitedMs returns how long a thread, by the system's id, has waited for a processor so far (ms)
 * @returns a function that ends the watch
 */
export function watchHeart(heart: Heart, mostMs: number, onStill: () => void, waitedMs = unscheduledMs): () => void {
  const everyMs = mostMs / LOOKS;
  let seen = 0;
  let looks = 0;
  let waitedBefore = 0;
  const timer = setInterval(() => {
    const beats = Atomics.load(heart, BEATS);
    // Of a thread that has ended the system reports 0.
    const waited = Math.max(waitedBefore, waitedMs(Atomics.load(heart, THREAD)));
    const look = Math.max(LEAST_LOOK, 1 - (waited - waitedBefore) / everyMs);
    looks = beats === seen ? looks + look : 0;
    [seen, waitedBefore] = [beats, waited];
    if (beats === 0 || looks < LOOKS) return;
    clearInterval(timer);
    onStill();
  }, everyMs).unref();
  return () => clearInterval(timer);
}

/**
 * Ends a thread that hangs. A thread that hangs in native code cannot be ended; if it is still there after 5 s, the
 * process is killed. No job is lost, since the ledger holds all of them. The time in which the thread waits for a
 * processor does not count.
 */
export async function endHungThread(thread: Worker, heart: Heart): Promise<void> {
  let hasEnded = false;
  const stop = limitTime({
    timeoutMs: MAX_TERMINATE_MS,
    unscheduledMs: () => unscheduledMs(Atomics.load(heart, THREAD)),
    // The thread may have ended while this one was busy.
    expire: () => hasEnded || process.kill(process.pid, 'SIGKILL'),
  });
  await thread.terminate();
  hasEnded = true;
  stop();
}
