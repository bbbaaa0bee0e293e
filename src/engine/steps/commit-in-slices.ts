import { setTimeout as pause } from 'node:timers/promises';
import { othersVersion, type Store } from '../store/open-store.ts';

/** How long a slice holds the write lock, and how long it is free then. */
interface Pace {
  readonly sliceMs: number;
  readonly pauseMs: number;
}

/**
 * While others write, too. A worker's thread has the lowest priority and may lose its core while it holds the lock, so its slices are
 * short. At 32 connections 4 ms with pauses of 1 ms gave 3,000 adds a second and a p95 of 21 ms, 1 ms with pauses of 2 ms 4,000 and 16 ms.
 */
const AMONG_OTHERS: Pace = { sliceMs: 1, pauseMs: 2 };

/** While nobody else commits. Who comes then waits for one slice, and the next is a short one. */
const ALONE: Pace = { sliceMs: 4, pauseMs: 1 };

interface Slice {
  /** What others had committed by then, and when it was first met. */
  readonly version: number;
  readonly versionSince: number;
  readonly pace: Pace;
  readonly endedAt: number;
}

/** The last slice of a connection. */
const lastSlices = new WeakMap<Store, Slice>();
/** A service that is asked for anything at all commits more often. */
const QUIET_MS = 100;

/**
 * Writes many small things in short transactions with a pause between them, so that the writer that answers clients never waits long for
 * the lock. Who computes between two calls for as long as a pause takes is not held up.
 * @param open asked for each slice, since a pause lets others close the file
 * @param sliceMs longer where an item takes as long as a slice, or the pauses would take longer than the work
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
      const version = othersVersion(store);
      const begunAt = performance.now();
      const last = lastSlices.get(store);
      const [pace, versionSince] =
        last?.version === version ? [ALONE, last.versionSince] : ([AMONG_OTHERS, begunAt] as const);
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
 * Whether nobody else has committed for a while, as far as this connection's slices have seen. Then what is written can be computed in small parts, and nobody
 * waits for the end of a pause: the lock is free while the next part is computed. Among others it is asked for as seldom as can be.
 */
export function isAlone(store: Store): boolean {
  const last = lastSlices.get(store);
  if (last === undefined || performance.now() - last.versionSince < QUIET_MS) return false;
  return last.version === othersVersion(store);
}

function leftOfPause(store: Store): number {
  const last = lastSlices.get(store);
  return last === undefined ? 0 : Math.ceil(last.endedAt + last.pace.pauseMs - performance.now());
}
