import { setTimeout as pause } from 'node:timers/promises';
import type { Store } from '../store/open-store.ts';

/**
 * Timing of slices (short write transactions), in ms: `sliceMs` is the time after which a slice begins no further item
 * and commits, `pauseMs` the least time for which the write lock is free afterwards.
 */
interface Pace {
  readonly sliceMs: number;
  readonly pauseMs: number;
}

/**
 * Timing of slices while others write too. A worker's thread has the lowest priority and may lose its core while it
 * holds the lock, so its slices are short. At 32 connections, slices of 4 ms with pauses of 1 ms gave 3,000 adds a
 * second and a p95 of 21 ms; slices of 1 ms with pauses of 2 ms gave 4,000 and 16 ms.
 */
const AMONG_OTHERS: Pace = { sliceMs: 1, pauseMs: 2 };

/**
 * Timing of slices while nobody else commits. A writer that arrives then waits for one slice of 4 ms at most; the
 * slices after it are short.
 */
const ALONE: Pace = { sliceMs: 4, pauseMs: 1 };

/** Timing of slices in PostgreSQL, where one short transaction takes about as long as a whole slice takes in a file. */
const IN_DATABASE: Pace = { sliceMs: 30, pauseMs: 1 };

/** Greatest number of items that one call of `SliceOptions.begin` gets. */
const BEGUN_AT_ONCE = 32;

interface Slice {
  /**
   * Number that changes when another connection commits to the file (`Store.othersVersion`), as it was when the slice
   * began.
   */
  readonly version: number;
  /** Time at which that version was first seen, as `performance.now()`. */
  readonly versionSince: number;
  readonly pace: Pace;
  /** Time at which the slice ended, as `performance.now()`. */
  readonly endedAt: number;
}

/** The last slice of each connection. */
const lastSlices = new WeakMap<Store, Slice>();
/**
 * Time without a commit by others (ms) after which no other connection counts as writing. While the service is used,
 * commits are more frequent.
 */
const QUIET_MS = 100;

interface SliceOptions<T> {
  /**
   * Least time (ms) for which a slice goes on to begin items, while there are any. It should be longer than one item
   * takes, or the pauses between slices would take longer than the work. 1 by default.
   */
  readonly sliceMs?: number;
  /**
   * Called in the transaction with the items that are written next, at most 32, so that it can read ahead for all of
   * them. In PostgreSQL the transaction does not end before all of these items are written.
   */
  readonly begin?: (store: Store, items: readonly T[]) => void;
}

/**
 * Writes many small items in short transactions (1 to 4 ms each in a file, up to 30 ms in PostgreSQL) with a pause
 * between them, so that the writer that answers clients never waits long for SQLite's write lock. The pause counts from
 * the end of the last transaction: a caller that computed for that long before its next call does not wait at all.
 * @param open returns the tenant's open file; called for each slice, since others may close the file during a pause
 * @param items what is written, in this order; the promise resolves once all items are written
 * @param write writes one item inside the slice's transaction; it awaits nothing. If it throws, its slice is rolled
 *   back and the error is thrown on; earlier slices stay
 */
export async function commitInSlices<T>(
  open: () => Store,
  items: readonly T[],
  write: (store: Store, item: T) => void,
  { sliceMs = AMONG_OTHERS.sliceMs, begin }: SliceOptions<T> = {},
): Promise<void> {
  for (let next = 0; next < items.length;) {
    const pauseMs = leftOfPause(open());
    if (pauseMs > 0) await pause(pauseMs);
    const store = open();
    next = store.write(() => {
      const version = store.othersVersion();
      const begunAt = performance.now();
      const last = lastSlices.get(store);
      const isSame = last?.version === version;
      const pace = store.words !== null ? IN_DATABASE : isSame ? ALONE : AMONG_OTHERS;
      const versionSince = isSame ? last.versionSince : begunAt;
      const deadline = begunAt + Math.max(sliceMs, pace.sliceMs);
      let position = next;
      do {
        if (begin !== undefined && (position - next) % BEGUN_AT_ONCE === 0) {
          begin(store, items.slice(position, position + BEGUN_AT_ONCE));
        }
        write(store, items[position++] as T);
      } while (position < items.length && (performance.now() < deadline || (begin && isBegun(store, position - next))));
      lastSlices.set(store, { version, versionSince, pace, endedAt: performance.now() });
      return position;
    });
  }
}

/**
 * Whether nobody else has committed for 100 ms or more, as far as this connection's slices have seen; false before its
 * first slice. If so, a caller can compute and write in small groups without waiting for the end of a pause, since the
 * lock is free while the next group is computed. While others write, the lock should be taken as seldom as possible.
 */
export function isAlone(store: Store): boolean {
  const last = lastSlices.get(store);
  if (last === undefined || performance.now() - last.versionSince < QUIET_MS) return false;
  return last.version === store.othersVersion();
}

/**
 * Whether a slice in PostgreSQL has written only some of the items that `begin` got together. If it ended there, what
 * `begin` has read ahead for the others would be lost.
 */
function isBegun(store: Store, written: number): boolean {
  return store.ahead !== null && written % BEGUN_AT_ONCE !== 0;
}

function leftOfPause(store: Store): number {
  const last = lastSlices.get(store);
  return last === undefined ? 0 : Math.ceil(last.endedAt + last.pace.pauseMs - performance.now());
}
