import { setImmediate as yieldTurn } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { isEngineError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import {
  hasDispatchMarks,
  peekDispatchBatch,
  readLedgerStatus,
  type DispatchBatchOptions,
  type DueSteps,
  type LedgerStatus,
  type TooFew,
} from '../store/dispatch.ts';
import { stampOf } from '../store/file-on-disk.ts';
import { openForLook, type Store } from '../store/open-store.ts';
import type { Readiness } from '../store/postgres/ledger-reader.ts';

/**
 * Finds the tenants that have work, for a dispatcher that shares its event loop with requests. With OM_DATABASE_URL,
 * its promises reject with the error of that database if it cannot be read; a further database (OM_DATABASES) that
 * cannot be read is left out.
 */
export interface LedgerPoller {
  /**
   * Reads the ledgers of the tenants that may have work, by their paths. It reads a bounded number of them; the rest is
   * left for the next call.
   */
  look(paths: readonly string[]): Promise<Look>;
  /**
   * Lists those of the tenants that have a job which has not ended. It calls `look` until all that changed was read (in
   * PostgreSQL a bounded number of times) or the signal aborts, and leaves out tenants whose ledger cannot be read.
   */
  listUnfinished(paths: readonly string[], signal?: AbortSignal): Promise<string[]>;
  /**
   * Tells whether a waiting job of a tenant has a mark that it was handed out to a queue, even a mark that has run out;
   * false for a tenant without data, and for one in a further database that cannot be read.
   */
  hasMarks(path: string): Promise<boolean>;
  /** Reads the ledgers of many tenants in one statement; null where each ledger is a file of its own. */
  readonly together: LedgersTogether | null;
  /**
   * Tells whether `take` would find jobs in a ledger that is a file: `some`; `too_few`, if they do not fill a batch and
   * `partial` is false; undefined if there are none, or if the file does not exist or has no tables yet. Where
   * `together` is not null, it reads nothing and always returns `some`.
   */
  peek(path: string, options: DispatchBatchOptions): TooFew | 'some' | undefined;
  close(): void;
}

/** Reads the ledgers of many tenants at once. Tenants of a database that cannot be read are left out. */
interface LedgersTogether {
  /** Returns for each tenant the steps at which it has due jobs that are not with a queue. */
  dueSteps(paths: readonly string[]): Promise<ReadonlyMap<string, DueSteps>>;
  /** Returns whether each tenant has due jobs for a lane: none, few, or enough to fill a job of the queue. */
  peek(paths: readonly string[], lane: Omit<DispatchBatchOptions, 'partial'>): Promise<ReadonlyMap<string, Readiness>>;
}

/** What one look found. */
export interface Look {
  /** Ledgers that were read. One that has not changed and has no unfinished jobs is left out. */
  readonly statuses: readonly (LedgerStatus & { readonly path: string })[];
  readonly failures: readonly { readonly path: string; readonly error: unknown }[];
  /** False if ledgers that changed are left for the next call. */
  readonly isComplete: boolean;
}

/** What a poller needs to read the ledgers in tenants' files. */
interface LedgerPollerOptions {
  /** Greatest number of connections to tenants' files that stay open between two looks. */
  readonly openMost: number;
  readonly leaseMs: number;
  readonly clock: Clock;
  /**
   * Opens a tenant's file to look for work; the default is `openForLook`. Undefined if there is no file to read yet.
   */
  readonly open?: (path: string) => Store | undefined;
}

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

/**
 * Creates a poller of tenants' files, which opens no file before its first call. It opens at most 16 of those that are
 * not open in each call. A file without unfinished jobs is not opened again until it changes, which the times of the
 * file and of its log show. The poller has connections of its own, so that reading all tenants in turn closes none of
 * the connections that queries use. The caller must close it.
 */
export function createFilePoller(options: LedgerPollerOptions): LedgerPoller {
  const { leaseMs, clock } = options;
  const { stores, storeOf } = createStores(options);
  const seen = new Map<string, FileStatus>();
  const forget = (path: string) => {
    seen.delete(path);
    stores.delete(path);
  };
  /** Path at which the next call begins: the last one that a call opened. Undefined until one opened `MAX_OPENINGS`. */
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
    for (const path of beginAt(turn, paths)) {
      if (++looks % STAMPS_AT_ONCE === 0) await yieldTurn();
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

  const read = <T>(path: string, work: (store: Store) => T): T | undefined => {
    const store = storeOf(path);
    return store === undefined ? undefined : work(store);
  };

  return {
    look,
    listUnfinished: (paths, signal) =>
      listUnfinished(paths, { look, signal, isUnfinished: (path) => seen.get(path)?.isUnfinished === true }),
    hasMarks: async (path) => read(path, hasDispatchMarks) === true,
    together: null,
    peek(path, batch) {
      const found = read(path, (store) => store.read(() => peekDispatchBatch(store, batch)));
      return found === undefined || found === 'too_few' ? found : 'some';
    },
    close: () => stores.clear(),
  };
}

/**
 * Calls `look` until every ledger that changed was read, `mostLooks` times at most, or until the signal aborts. Then it
 * lists the tenants for which `isUnfinished` is true. A ledger that `look` reports as a failure is not tried again.
 */
export async function listUnfinished(
  paths: readonly string[],
  {
    look,
    signal,
    isUnfinished,
    mostLooks = Infinity,
  }: {
    readonly look: LedgerPoller['look'];
    readonly signal: AbortSignal | undefined;
    readonly isUnfinished: (path: string) => boolean;
    readonly mostLooks?: number;
  },
): Promise<string[]> {
  const unreadable = new Set<string>();
  let isComplete = false;
  for (let looks = 0; !isComplete && looks < mostLooks && signal?.aborted !== true; looks += 1) {
    const result = await look(paths.filter((path) => !unreadable.has(path)));
    for (const { path } of result.failures) unreadable.add(path);
    ({ isComplete } = result);
  }
  return paths.filter(isUnfinished);
}

/**
 * Creates the connections of a poller: the `openMost` that were used last stay open. `storeOf` opens one if needed, and
 * returns undefined where `open` does.
 */
function createStores({ openMost, open = openForLook }: Pick<LedgerPollerOptions, 'openMost' | 'open'>) {
  const stores = new LRUCache<string, Store>({ max: openMost, dispose: (store) => store.close() });
  const storeOf = (path: string): Store | undefined => {
    const store = stores.get(path) ?? open(path);
    if (store !== undefined && !stores.has(path)) stores.set(path, store);
    return store;
  };
  return { stores, storeOf };
}

/** What a look reports of a path without a file, or of a tenant without a row. */
export const NO_WORK: LedgerStatus = { interactive: [], bulk: [], hasLapsed: false, isUnfinished: false };

function inodeOf(stamp: string): string | undefined {
  return stamp.split(',')[0];
}

/**
 * Returns the paths in another order: beginning with `first`, and with those before it at the end. Unchanged if `first`
 * is undefined or not one of them.
 */
export function beginAt(first: string | undefined, paths: readonly string[]): readonly string[] {
  const at = first === undefined ? 0 : paths.indexOf(first);
  return at <= 0 ? paths : [...paths.slice(at), ...paths.slice(0, at)];
}
