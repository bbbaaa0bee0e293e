import { setImmediate as yieldTurn } from 'node:timers/promises';
import type { Clock } from '../ports.ts';
import type { LedgerDatabases } from './ledger-databases.ts';
import { beginAt, listUnfinished, NO_WORK, type LedgerPoller, type Look } from './ledger-poller.ts';

export interface DatabasePollerOptions {
  /** The databases that have the ledgers. The poller closes them when it is closed. */
  readonly databases: LedgerDatabases;
  readonly leaseMs: number;
  readonly clock: Clock;
}

/** State of a ledger when it was last read. */
interface LastLook {
  /**
   * The tenant's number and its counter of writes: an equal stamp later means that nothing was written meanwhile. ''
   * for a tenant without a row.
   */
  readonly stamp: string;
  /**
   * Whether the tenant had jobs that have not ended; undefined if the ledger could not be read. It is then read in its
   * turn, as one that is unfinished.
   */
  readonly isUnfinished: boolean | undefined;
  /** Number of the last look (from 1) that read this ledger or tried to. */
  triedIn: number;
}

/**
 * Greatest number of ledgers that one look reads. Those that changed come first, but a quarter of the number is kept
 * for unfinished ones that did not change: these are read again only for what falls due without a write (retries, and
 * marks and leases that run out).
 */
export const MOST_READ = 256;

/** Number of tenants that are gone through before the thread yields to other work. */
const A_TURN = 1_000;

type StampedPath = readonly [path: string, stamp: string];

/**
 * Chooses at most `most` ledgers to read: those that changed, and of the others those that were not tried for longest.
 * @returns the ledgers with their stamps; `next`: the first one that changed and is left out, undefined if none is
 */
function choose({
  changed,
  unfinished,
  most,
  seen,
}: {
  readonly changed: readonly StampedPath[];
  readonly unfinished: readonly StampedPath[];
  readonly most: number;
  readonly seen: ReadonlyMap<string, LastLook>;
}): { readonly stamps: ReadonlyMap<string, string>; readonly next: string | undefined } {
  const first = changed.slice(0, most - Math.min(unfinished.length, Math.floor(most / 4)));
  const longest = unfinished.toSorted(([a], [b]) => seen.get(a)!.triedIn - seen.get(b)!.triedIn);
  return { stamps: new Map([...first, ...longest].slice(0, most)), next: changed[first.length]?.[0] };
}

/**
 * Records for these ledgers that the look with this number is about to read them. It counts even if the read then
 * fails.
 */
function noteTried(seen: ReadonlyMap<string, LastLook>, paths: Iterable<string>, lookNo: number): void {
  for (const path of paths) {
    const last = seen.get(path);
    if (last !== undefined) last.triedIn = lookNo;
  }
}

/**
 * Returns how many looks are enough to read each of `ledgers` ledgers once, even if others change all the time. They
 * may not be enough just after failed reads, when looks read fewer ledgers than `MOST_READ`.
 */
function mostLooksAt(ledgers: number): number {
  return Math.ceil(ledgers / (MOST_READ / 2)) + 1;
}

/**
 * Creates a poller of tenants that live in PostgreSQL. A look makes two round trips to each database, for which no
 * thread waits: one reads which tenants have changed, and one the ledgers of those that may have work. The caller must
 * close it.
 */
export function createDatabasePoller({ databases, leaseMs, clock }: DatabasePollerOptions): LedgerPoller {
  const seen = new Map<string, LastLook>();
  /** Path of the first changed ledger that the last look left out; the next begins with it. Undefined if none was. */
  let turn: string | undefined;
  let lookNo = 0;
  /** Greatest number of ledgers of the next look, which is halved when a read fails: one of them may take too long. */
  let most = MOST_READ;
  const readStatuses = (paths: readonly string[]) =>
    databases.readEach(paths, (reader, tenants) => reader.readStatuses(tenants, { now: clock.now(), leaseMs }));
  const isUnfinished = (path: string) => seen.get(path)?.isUnfinished === true;
  const forgetOthers = (paths: readonly string[]) => {
    const current = new Set(paths);
    databases.keepOnly(current);
    if (seen.size > current.size) for (const path of seen.keys()) if (!current.has(path)) seen.delete(path);
  };

  async function look(paths: readonly string[]): Promise<Look> {
    forgetOthers(paths);
    lookNo += 1;
    const rowAt = await databases.readRows(paths);
    const statuses: Look['statuses'][number][] = [];
    const changed: StampedPath[] = [];
    const unfinished: StampedPath[] = [];
    let looks = 0;
    for (const path of beginAt(turn, paths)) {
      if (++looks % A_TURN === 0) await yieldTurn();
      const row = rowAt(path);
      if (row === undefined) continue;
      const stamp = row === null ? '' : `${row.number},${row.writes}`;
      const last = seen.get(path);
      const mayHaveChanged = last?.stamp !== stamp;
      if (!mayHaveChanged && last.isUnfinished === false) continue;
      if (row === null) {
        seen.set(path, { stamp, isUnfinished: false, triedIn: lookNo });
        statuses.push({ path, ...NO_WORK });
      } else (mayHaveChanged ? changed : unfinished).push([path, stamp]);
    }
    const { stamps, next } = choose({ changed, unfinished, most, seen });
    turn = next;
    noteTried(seen, stamps.keys(), lookNo);
    const found = await readStatuses([...stamps.keys()]).catch((error: unknown) => {
      most = Math.max(1, Math.floor(most / 2));
      throw error;
    });
    most = Math.min(MOST_READ, most * 2);
    for (const [path, stamp] of stamps) {
      const status = found.get(path);
      seen.set(path, { stamp, isUnfinished: status?.isUnfinished, triedIn: lookNo });
      if (status !== undefined) statuses.push({ path, ...status });
    }
    return { statuses, failures: [], isComplete: next === undefined };
  }

  return {
    look,
    listUnfinished: (paths, signal) =>
      listUnfinished(paths, { look, signal, isUnfinished, mostLooks: mostLooksAt(paths.length) }),
    async hasMarks(path) {
      const marked = await databases.readEach([path], (reader, tenants) => reader.readMarks(tenants));
      return marked.get(path) === true;
    },
    together: {
      dueSteps: readStatuses,
      peek: (paths, lane) => databases.readEach(paths, (reader, tenants) => reader.peek(tenants, lane)),
    },
    // Whoever takes rows has read the ledgers of its turn together.
    peek: () => 'some',
    close: databases.close,
  };
}
