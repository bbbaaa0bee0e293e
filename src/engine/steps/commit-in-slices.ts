import { setTimeout as pause } from 'node:timers/promises';
import type { Store } from '../store/open-store.ts';

/** The time that a slice holds the write lock, and the time that the lock is free afterwards (ms). */
interface Pace {
  readonly sliceMs: number;
  readonly pauseMs: number;
}

/**
 * The pace while others write too. A worker's thread has the lowest priority and may lose its core while it holds the
 * lock, so its slices are short. At 32 connections, slices of 4 ms with pauses of 1 ms gave 3,000 adds a second and a
 * p95 of 21 ms; slices of 1 ms with pauses of 2 ms gave 4,000 and 16 ms.
 */
const AMONG_OTHERS: Pace = { sliceMs: 1, pauseMs: 2 };

/**
 * The pace while nobody else commits. A writer that comes then waits for one slice, and the next slice is a short one.
 */
const ALONE: Pace = { sliceMs: 4, pauseMs: 1 };

/** The pace in PostgreSQL, where a transaction alone takes as long as a slice of a file. */
const IN_DATABASE: Pace = { sliceMs: 30, pauseMs: 1 };

interface Slice {
  /** Version of the file when the slice began, which others' commits change: see `othersVersion`. */
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
 * Time without a commit by others after which nobody else counts as writing (ms): a service in use commits more often.
 */
const QUIET_MS = 100;

/**
 * Writes many small items in short transactions with a pause between them (1 to 4 ms each), so that the writer that
 * answers clients never waits long for SQLite's write lock. The pause is counted from the end of the last transaction:
 * a caller that computed for that long before its next call does not wait at all.
 * @param open    returns the tenant's open file; called for each slice, since others may close the file during a pause
 * @param items   what is written, in this order; the promise resolves when all are
 * @param write   writes one item inside the slice's transaction; it awaits nothing. If it throws, its slice is undone
 *   and the error is thrown on
 * @param sliceMs shortest slice (ms); a longer one suits items that take as long as a slice, as the pauses would take
 *   longer than the work
 */
export async function commitInSlices<T>(
  open: () => Store,
  items: readonly T[],
  write: (store: Store, item: T) => void,
  sliceMs = AMONG_OTHERS.sliceMs,
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
      do write(store, items[position++] as T);
      while (position < items.length && performance.now() < deadline);
      lastSlices.set(store, { version, versionSince, pace, endedAt: performance.now() });
      return position;
    });
  }
}

/**
 * True if nobody else has committed for 100 ms or more, as far as this connection's slices have seen; false before its
 * first slice. Then what is written can be computed in small parts without waiting for the end of a pause: the lock is
 * free while the next part is computed. While others write, the lock is asked for as seldom as possible.
 */
export function isAlone(store: Store): boolean {
  const last = lastSlices.get(store);
  if (last === undefined || performance.now() - last.versionSince < QUIET_MS) return false;
  return last.version === store.othersVersion();
}

function leftOfPause(store: Store): number {
  const last = lastSlices.get(store);
  return last === undefined ? 0 : Math.ceil(last.endedAt + last.pace.pauseMs - performance.now());
}
