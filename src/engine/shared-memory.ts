/**
 * Memory that several threads of a process share. All threads read at any time and wait for nobody. One thread at a
 * time changes the memory, under a lock for which others may wait. A thread may die at any moment; the memory that it
 * left half changed is then lost and must be made again.
 */

import { assert } from './errors.ts';

/**
 * Thrown if another thread has removed data from shared memory that a query's older database snapshot still needs. End
 * the read transaction and begin again: the next snapshot is newer.
 */
export class SnapshotIsBehind extends Error {
  override readonly name = 'SnapshotIsBehind';
  constructor() {
    super('another thread has taken over removals that are newer than this snapshot');
  }
}

/**
 * Thrown by every use of shared memory that a thread left half changed when it died or its change threw, or whose lock
 * a thread holds without any progress for 10 seconds. The owner of the memory makes a new one and fills it from the
 * file.
 */
export class SharedMemoryLost extends Error {
  override readonly name = 'SharedMemoryLost';
  constructor() {
    super('a thread left the shared memory half changed');
  }
}

/** A thread among those that share memory. A thread uses one such object for all memory that it shares. */
export interface SharedReader {
  /** Number from 0 up to, but not including, `maxReaders`. No other living thread that shares the memory has it. */
  readonly number: number;
  /**
   * While true, no `SnapshotIsBehind` is thrown; instead a query's answer may lack data that was removed by commits
   * after its snapshot. It is true within the fourth try of a read and later ones, whatever other reads of the thread
   * do meanwhile, and checked at each use of the memory.
   */
  readonly acceptsLaterRemovals: boolean;
}

/** A part of shared memory; the first `LOCK_WORDS` 32-bit words of `control` hold its lock. */
interface Lockable {
  readonly control: SharedArrayBuffer;
}

/**
 * Number of 32-bit words at the beginning of `control` that belong to the lock: 64 bytes, one line of a processor's
 * cache.
 */
export const LOCK_WORDS = 16;
/** Index of the word that holds the number, plus 1, of the thread that holds the lock; 0 if none does. */
const HOLDER = 0;
/** Index of the word that is 1 while the memory is half changed. */
const IS_CHANGING = 1;
/** Index of the word that is 1 once the memory is lost. */
const IS_LOST = 2;
/**
 * Index of the word that is raised whenever a thread takes the lock or completes a change, so that others see progress.
 */
const STEPS = 3;

/** Longest time that a waiting thread sleeps before it checks again whether the memory is lost (ms). */
const LOOK_EACH_MS = 50;
/**
 * Time after which the memory counts as lost if the thread that holds the lock made no step (ms). A step takes some
 * milliseconds. A dead thread is usually reported earlier by the memory's owner, except while the owner itself waits
 * for the lock.
 */
const STALLED_MS = 10_000;

/** The lock of shared memory, as one thread uses it. */
export interface ChangeLock {
  /**
   * Runs `work` while no other thread runs anything under this lock. A call inside `work` throws EngineError
   * `internal`.
   * @throws SharedMemoryLost if the memory is lost, or the lock's holder makes no progress for 10 seconds
   */
  alone<R>(work: () => R): R;
  /**
   * Runs `work`, which changes what other threads read; call it inside `alone`. If the thread dies in `work`, or `work`
   * throws, the memory is lost.
   */
  change(work: () => void): void;
  /**
   * Throws SharedMemoryLost if the memory is lost: a thread died while it was changing it, or blocked its lock for too
   * long.
   */
  requireKept(): void;
}

/**
 * Opens the lock for one thread.
 * @param stalledMs time without a step of the lock's holder after which the memory counts as lost; 10 seconds by
 *   default
 */
export function openChangeLock({ control }: Lockable, reader: SharedReader, stalledMs = STALLED_MS): ChangeLock {
  const words = new Int32Array(control, 0, LOCK_WORDS);
  const holder = reader.number + 1;

  function requireKept(): void {
    if (Atomics.load(words, IS_LOST) === 1) throw new SharedMemoryLost();
  }

  function acquire(): void {
    let [steps, since] = [Atomics.load(words, STEPS), performance.now()];
    for (;;) {
      requireKept();
      const other = Atomics.compareExchange(words, HOLDER, 0, holder);
      if (other === 0) break;
      assert(other !== holder, 'a thread that waits for itself');
      Atomics.wait(words, HOLDER, other, LOOK_EACH_MS);
      const stepsNow = Atomics.load(words, STEPS);
      if (stepsNow !== steps) [steps, since] = [stepsNow, performance.now()];
      else if (performance.now() - since > stalledMs) lose(words);
    }
    Atomics.add(words, STEPS, 1);
  }

  return {
    requireKept,

    alone(work) {
      acquire();
      try {
        return work();
      } finally {
        free(words, holder);
      }
    },

    change(work) {
      Atomics.store(words, IS_CHANGING, 1);
      try {
        work();
      } catch (error) {
        lose(words);
        throw error;
      }
      Atomics.store(words, IS_CHANGING, 0);
      Atomics.add(words, STEPS, 1);
    },
  };
}

/**
 * Records that the thread with this number is dead, so that no other waits for it. If the thread left the memory half
 * changed, the memory is lost: all others get SharedMemoryLost. Call it for each memory that the thread shared, before
 * its number is given to another thread.
 */
export function releaseReader({ control }: Lockable, number: number): void {
  const words = new Int32Array(control, 0, LOCK_WORDS);
  if (Atomics.load(words, HOLDER) !== number + 1) return;
  if (Atomics.load(words, IS_CHANGING) === 1) lose(words);
  free(words, number + 1);
}

function free(words: Int32Array, holder: number): void {
  Atomics.compareExchange(words, HOLDER, holder, 0);
  Atomics.notify(words, HOLDER);
}

function lose(words: Int32Array): void {
  Atomics.store(words, IS_LOST, 1);
  Atomics.notify(words, HOLDER);
}
