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
 * Timing of slices while nobody else commits. A writer that arrives then waits for one slice of about 4 ms, or of
 * `SliceOptions.sliceMs` if that is more; the slices after it are short.
 */
const ALONE: Pace = { sliceMs: 4, pauseMs: 1 };

/** Timing of slices in PostgreSQL, where one short transaction takes about as long as a whole slice takes in a file. */
const IN_DATABASE: Pace = { sliceMs: 30, pauseMs: 1 };

/**
 * Greatest number of items that one call of `SliceOptions.begin` gets. It is that of a group of encode or link, so that
 * such a group is one transaction in PostgreSQL.
 */
const BEGUN_AT_ONCE = 64;

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
   * Prefetches answers for the items that are written next, at most 64. In PostgreSQL it is called in the transaction,
   * for the first items before the tenant's lock is taken, so it must not wait for an answer; and the transaction does
   * not end before all of these items are written. In a file it is not called.
   */
  readonly begin?: (store: Store, items: readonly T[]) => void;
  /**
   * Does the last part of the work on items that `write` has written: in a file after each item; in PostgreSQL before
   * the transaction commits, for all of its items at once, since statements of one kind that follow each other are sent
   * as one. The items for which `write` returned false are left out.
   */
  readonly end?: (store: Store, written: readonly T[]) => void;
}

/**
 * Writes many small items in short transactions with a pause between them, so that the writer that answers clients
 * never waits long for SQLite's write lock. A transaction begins no further item after 1 to 4 ms in a file, or after
 * `sliceMs` if that is more, and after 30 ms in PostgreSQL. The pause counts from the end of the last transaction: a
 * caller that computed for that long before its next call does not wait at all.
 * @param open returns the tenant's open file; called for each slice, since others may close the file during a pause
 * @param items what is written, in this order; the promise resolves once all items are written
 * @param write writes one item inside the slice's transaction; it awaits nothing. If it throws, its slice is rolled
 *   back and the error is thrown on; earlier slices stay. It returns false for an item that `end` must not get
 */
export async function commitInSlices<T>(
  open: () => Store,
  items: readonly T[],
  write: (store: Store, item: T) => boolean | void,
  { sliceMs = AMONG_OTHERS.sliceMs, begin, end }: SliceOptions<T> = {},
): Promise<void> {
  for (let next = 0; next < items.length;) {
    const pauseMs = leftOfPause(open());
    if (pauseMs > 0) await pause(pauseMs);
    const store = open();
    const ask = () => begin?.(store, items.slice(next, next + BEGUN_AT_ONCE));
    next = store.write(() => {
      const version = store.othersVersion();
      const begunAt = performance.now();
      const last = lastSlices.get(store);
      const isSame = last?.version === version;
      const pace = store.words !== null ? IN_DATABASE : isSame ? ALONE : AMONG_OTHERS;
      const versionSince = isSame ? last.versionSince : begunAt;
      const deadline = begunAt + Math.max(sliceMs, pace.sliceMs);
      let position = next;
      const written: T[] = [];
      do {
        if (store.ahead !== null && position > next && (position - next) % BEGUN_AT_ONCE === 0) {
          begin?.(store, items.slice(position, position + BEGUN_AT_ONCE));
        }
        const item = items[position++] as T;
        if (write(store, item) === false || end === undefined) continue;
        if (store.ahead === null) end(store, [item]);
        else written.push(item);
      } while (position < items.length && (performance.now() < deadline || (begin && isBegun(store, position - next))));
      if (written.length > 0) end?.(store, written);
      lastSlices.set(store, { version, versionSince, pace, endedAt: performance.now() });
      return position;
    }, ask);
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
