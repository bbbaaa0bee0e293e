import { setImmediate as yieldTurn } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { isEngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import { sightLedger, type LedgerSight } from '../store/dispatch.ts';
import { stampOf } from '../store/file-on-disk.ts';
import { openForLook, type Store } from '../store/open-store.ts';

/**
 * Sees which files have work, for a dispatcher that shares its event loop with requests. A file that has not changed
 * since nothing was left in it is not opened: the times of a file and of its log say so. A lookout has connections of
 * its own, so that looking at all tenants in turn closes none that queries use.
 */
export interface Lookout {
  /** Looks at those of the files that may have work, and opens at most `MAX_OPENINGS` that are not open yet. */
  look(paths: readonly string[]): Promise<Look>;
  /** Lists those of the files in which a job has not ended. It looks until it has seen every file that changed. */
  listUnfinished(paths: readonly string[]): Promise<string[]>;
  /** Reads a file over a connection for looks. `work` awaits nothing. @returns undefined where there is no ledger */
  read<T>(path: string, work: (store: Store) => T): T | undefined;
  close(): void;
}

/** Result of a look at several files. */
export interface Look {
  /** Ledgers that were read. A file in which nothing changed or is unfinished is left out. */
  readonly sights: readonly (LedgerSight & { readonly path: string })[];
  readonly failures: readonly { readonly path: string; readonly error: unknown }[];
  /** False if files that changed are left for the next look. */
  readonly isComplete: boolean;
}

export interface LookoutOptions {
  /** Most connections that stay open. */
  readonly openMost: number;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly open?: typeof openForLook;
}

/** Result of the last look at a file. */
interface FileSight {
  readonly stamp: string;
  /** False if the file may change once more without a new stamp, within the resolution of its times. */
  readonly isSettled: boolean;
  readonly isUnfinished: boolean;
}

/** Most files opened in one look; opening one takes about a millisecond. */
export const MAX_OPENINGS = 16;
/**
 * Number of files whose times are read before others get a turn on this thread, which takes a third of a millisecond.
 */
const STAMPS_AT_ONCE = 64;

export function createLookout({ openMost, leaseMs, clock, open = openForLook }: LookoutOptions): Lookout {
  const stores = new LRUCache<string, Store>({ max: openMost, dispose: (store) => store.close() });
  const storeOf = (path: string): Store | undefined => {
    const store = stores.get(path) ?? open(path);
    if (store !== undefined && !stores.has(path)) stores.set(path, store);
    return store;
  };
  const seen = new Map<string, FileSight>();
  const forget = (path: string) => {
    seen.delete(path);
    stores.delete(path);
  };
  /** The file at which the last look ran out of openings: the next look begins there. */
  let turn: string | undefined;
  const sightOf = (path: string): LedgerSight => {
    const store = storeOf(path);
    return store === undefined ? NO_WORK : sightLedger(store, { now: clock.now(), leaseMs });
  };

  async function look(paths: readonly string[]): Promise<Look> {
    const current = new Set(paths);
    for (const path of [...seen.keys()]) if (!current.has(path)) forget(path);
    const sights: (LedgerSight & { path: string })[] = [];
    const failures: { path: string; error: unknown }[] = [];
    let openings = 0;
    let isComplete = true;
    let stamps = 0;
    for (const path of beginAt(turn, paths)) {
      if (++stamps % STAMPS_AT_ONCE === 0) await yieldTurn();
      const { stamp, isSettled } = stampOf(path);
      const last = seen.get(path);
      const mayHaveChanged = last === undefined || !last.isSettled || last.stamp !== stamp;
      if (!mayHaveChanged && !last.isUnfinished) continue;
      if (!stores.has(path)) {
        if (openings === MAX_OPENINGS) {
          if (mayHaveChanged) isComplete = false;
          continue;
        }
        if (++openings === MAX_OPENINGS) turn = path;
        await yieldTurn();
      } else if (last !== undefined && inodeOf(last.stamp) !== inodeOf(stamp)) {
        stores.delete(path); // Another file has taken its place.
      }
      try {
        const sight = sightOf(path);
        seen.set(path, { stamp, isSettled, isUnfinished: sight.isUnfinished });
        sights.push({ path, ...sight });
      } catch (error) {
        forget(path);
        // An `unavailable` file is being created just now.
        if (!isEngineError(error, 'unavailable')) failures.push({ path, error });
      }
    }
    return { sights, failures, isComplete };
  }

  return {
    look,
    async listUnfinished(paths) {
      while (!(await look(paths)).isComplete);
      return paths.filter((path) => seen.get(path)?.isUnfinished);
    },
    read(path, work) {
      const store = storeOf(path);
      return store === undefined ? undefined : work(store);
    },
    close: () => stores.clear(),
  };
}

/** Result of a look at a path without a file. */
const NO_WORK: LedgerSight = { steps: [], hasLapsed: false, isUnfinished: false };

function inodeOf(stamp: string): string | undefined {
  return stamp.split(',')[0];
}

function beginAt(first: string | undefined, paths: readonly string[]): readonly string[] {
  const at = first === undefined ? 0 : paths.indexOf(first);
  return at <= 0 ? paths : [...paths.slice(at), ...paths.slice(0, at)];
}
