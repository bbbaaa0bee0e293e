/**
 * Memory that several threads of a process share: who may change it, and what a thread is told that cannot use it. All
 * threads read at any time and wait for nobody. One thread at a time changes something, and the others that want to
 * wait for it. A thread may die at any moment.
 */

import { assert } from './errors.ts';

/**
 * Thrown where a query's snapshot is older than what another thread has taken over into shared memory, and would need
 * what was removed there since. End the read and begin again: the next snapshot is newer.
 */
export class SnapshotIsBehind extends Error {
  override readonly name = 'SnapshotIsBehind';
  constructor() {
    super('another thread has taken over removals that are newer than this snapshot');
  }
}

/**
 * Thrown by every use of shared memory that a thread left half changed when it died, or that a thread holds without any
 * progress. Its owner makes another one, which is filled from the file.
 */
export class SharedMemoryLost extends Error {
  override readonly name = 'SharedMemoryLost';
  constructor() {
    super('a thread left the shared memory half changed');
  }
}

/** A thread among those that share memory. One object serves all that the thread shares. */
export interface SharedReader {
  /** Number from 0 up to, but not including, `maxReaders`. No other living thread has it. */
  readonly number: number;
  /**
   * True while answers may lack what commits after their snapshot removed, instead of a `SnapshotIsBehind`: for the
   * last try of a query. It is asked at each use.
   */
  acceptsLaterRemovals: boolean;
}

/** Shared memory begins with the words of its lock. */
interface Lockable {
  readonly control: SharedArrayBuffer;
}

/** Words of 32 bits at the beginning of `control` that belong to the lock: a line of the processor's cache. */
export const LOCK_WORDS = 16;
/** Word with the thread that may change the memory, its number plus 1; 0 for none. */
const HOLDER = 0;
/** Word that is 1 while the memory is half changed. */
const IS_CHANGING = 1;
/** Word that is 1 once the memory is lost. */
const IS_LOST = 2;
/** Word that rises whenever a thread begins to hold the lock, or has changed something. */
const STEPS = 3;

/** Longest time that a thread sleeps before it looks again whether the memory is lost, ms. */
const LOOK_EACH_MS = 50;
/**
 * Time without a step of the thread that holds the lock after which the memory counts as lost, ms. A step takes some
 * milliseconds. Only where the owner itself waits, and so cannot report a dead thread, is this time ever reached.
 */
const STALLED_MS = 10_000;

/** The right to change shared memory, as one thread asks for it. */
export interface ChangeLock {
  /**
   * Runs `work` while no other thread runs any under this lock. Do not call it inside `work`.
   * @throws SharedMemoryLost
   */
  alone<R>(work: () => R): R;
  /**
   * Runs `work`, which changes what others read, inside `alone`. If the thread dies in it, or `work` throws, the memory
   * is lost.
   */
  change(work: () => void): void;
  /** Throws SharedMemoryLost if the memory is lost. */
  requireKept(): void;
}

/** Opens the lock for one thread. */
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
 * Takes note that the thread with this number is dead, so that no other waits for it. If it left the memory half
 * changed, all others get SharedMemoryLost. Call it for each memory that the thread shared, before its number is given
 * to another.
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
