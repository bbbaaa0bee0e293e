import { setImmediate as yieldTurn } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { isEngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import { readLedgerStatus, type LedgerStatus } from '../store/dispatch.ts';
import { stampOf } from '../store/file-on-disk.ts';
import { openForLook, type Store } from '../store/open-store.ts';

/**
 * Finds the files that have work, for a dispatcher that shares its event loop with requests. A file without unfinished
 * jobs is not opened again until it changes, which the times of the file and of its log show. A poller has connections
 * of its own, so that reading all tenants in turn closes none of the connections that queries use.
 */
export interface LedgerPoller {
  /**
   * Reads the files that may have work. It opens at most 16 of those that are not open; the rest is left for the next
   * call.
   */
  look(paths: readonly string[]): Promise<Look>;
  /**
   * Lists those of the files in which a job has not ended. It reads on until it has read every file that changed, and
   * leaves out a file that cannot be read.
   */
  listUnfinished(paths: readonly string[]): Promise<string[]>;
  /**
   * Runs `work`, which awaits nothing, on a connection of the poller.
   * @returns the result; undefined if the file does not exist or has no tables yet
   */
  read<T>(path: string, work: (store: Store) => T): T | undefined;
  close(): void;
}

/** Result of reading several files for work. */
export interface Look {
  /** Ledgers that were read. A file that has not changed and has no unfinished jobs is left out. */
  readonly statuses: readonly (LedgerStatus & { readonly path: string })[];
  readonly failures: readonly { readonly path: string; readonly error: unknown }[];
  /** False if files that changed are left for the next call. */
  readonly isComplete: boolean;
}

/** What a poller needs to read tenants' ledgers. */
export interface LedgerPollerOptions {
  /** Greatest number of connections that stay open between two calls. */
  readonly openMost: number;
  readonly leaseMs: number;
  readonly clock: Clock;
  /** Opens a tenant's database to look for work; the default opens its file. */
  readonly open?: (path: string) => Store | undefined;
  /**
   * Reads the stamps of all tenants, which change with their data, at once; by default the stamps of their files
   * (`stampOf`).
   */
  readonly stamps?: StampReader;
}

/** Reads stamps of tenants: values by which a later look tells whether a tenant's data has changed. */
interface StampReader {
  /**
   * Reads the stamps that one look compares.
   * @returns a function that returns the stamp of a tenant by its path; undefined for a tenant that this look leaves
   *   out, because its database cannot be read
   */
  read(): (path: string) => ReturnType<typeof stampOf> | undefined;
  close(): void;
}

const STAMPS_OF_FILES: StampReader = { read: () => stampOf, close() {} };

/** State of a file when it was last read to look for unfinished jobs. */
interface FileStatus {
  readonly stamp: string;
  /** False if the file may change once more and keep the same stamp, since file times have a limited resolution. */
  readonly isSettled: boolean;
  readonly isUnfinished: boolean;
}

/** Greatest number of files opened in one call; opening one takes about a millisecond. */
export const MAX_OPENINGS = 16;
/**
 * Number of files whose times are read before the thread yields to other work. Reading them takes a third of a
 * millisecond.
 */
const STAMPS_AT_ONCE = 64;

/** Creates a poller, which opens no file before its first call. The caller must close it. */
export function createLedgerPoller(options: LedgerPollerOptions): LedgerPoller {
  const { leaseMs, clock, stamps = STAMPS_OF_FILES } = options;
  const { stores, storeOf } = createStores(options);
  const seen = new Map<string, FileStatus>();
  const forget = (path: string) => {
    seen.delete(path);
    stores.delete(path);
  };
  /** The last file that a call could open, at which the next begins; undefined before a call opened `MAX_OPENINGS`. */
  let turn: string | undefined;
  const statusOf = (path: string): LedgerStatus => {
    const store = storeOf(path);
    return store === undefined ? NO_WORK : readLedgerStatus(store, { now: clock.now(), leaseMs });
  };

  async function look(paths: readonly string[]): Promise<Look> {
    const current = new Set(paths);
    for (const path of [...seen.keys()]) if (!current.has(path)) forget(path);
    const statuses: (LedgerStatus & { path: string })[] = [];
    const failures: { path: string; error: unknown }[] = [];
    let [openings, looks, isComplete] = [0, 0, true];
    const stampAt = stamps.read();
    for (const path of beginAt(turn, paths)) {
      if (++looks % STAMPS_AT_ONCE === 0) await yieldTurn();
      const found = stampAt(path);
      if (found === undefined) continue;
      const { stamp, isSettled } = found;
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
        const status = statusOf(path);
        seen.set(path, { stamp, isSettled, isUnfinished: status.isUnfinished });
        statuses.push({ path, ...status });
      } catch (error) {
        forget(path);
        // An `unavailable` file is being created just now.
        if (!isEngineError(error, 'unavailable')) failures.push({ path, error });
      }
    }
    return { statuses, failures, isComplete };
  }

  return {
    look,
    async listUnfinished(paths) {
      await lookAtAll(paths, look);
      return paths.filter((path) => seen.get(path)?.isUnfinished);
    },
    read(path, work) {
      const store = storeOf(path);
      return store === undefined ? undefined : work(store);
    },
    close() {
      stores.clear();
      stamps.close();
    },
  };
}

/** Looks until every file that changed was read. A file that cannot be read is tried once: it may never be readable. */
async function lookAtAll(paths: readonly string[], look: LedgerPoller['look']): Promise<void> {
  const unreadable = new Set<string>();
  for (let isComplete = false; !isComplete;) {
    const result = await look(paths.filter((path) => !unreadable.has(path)));
    for (const { path } of result.failures) unreadable.add(path);
    ({ isComplete } = result);
  }
}

/** Keeps the connections that were used last open, for later looks. */
function createStores({ openMost, open = openForLook }: Pick<LedgerPollerOptions, 'openMost' | 'open'>) {
  const stores = new LRUCache<string, Store>({ max: openMost, dispose: (store) => store.close() });
  const storeOf = (path: string): Store | undefined => {
    const store = stores.get(path) ?? open(path);
    if (store !== undefined && !stores.has(path)) stores.set(path, store);
    return store;
  };
  return { stores, storeOf };
}

/** State of a path without a file. */
const NO_WORK: LedgerStatus = { steps: [], hasLapsed: false, isUnfinished: false };

function inodeOf(stamp: string): string | undefined {
  return stamp.split(',')[0];
}

function beginAt(first: string | undefined, paths: readonly string[]): readonly string[] {
  const at = first === undefined ? 0 : paths.indexOf(first);
  return at <= 0 ? paths : [...paths.slice(at), ...paths.slice(0, at)];
}
