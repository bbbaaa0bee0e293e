import { setImmediate as yieldTurn } from 'node:timers/promises';
import type { Clock } from '../ports.ts';
import type { LedgerDatabases } from './ledger-databases.ts';
import { beginAt, listUnfinished, NO_WORK, type LedgerPoller, type Look } from './ledger-poller.ts';

export interface DatabasePollerOptions {
  /** The poller closes them. */
  readonly databases: LedgerDatabases;
  readonly leaseMs: number;
  readonly clock: Clock;
}

/** State of a ledger when it was last read. */
interface LastLook {
  /** The tenant's number and its counter of writes; '' for a tenant without a row. */
  readonly stamp: string;
  /** Undefined if the ledger could not be read. It is then read in its turn, as one that is unfinished. */
  readonly isUnfinished: boolean | undefined;
}

/**
 * Greatest number of ledgers that one look reads. One that did not change is read again only for what falls due without
 * a write: retries, and marks and leases that run out. Those that changed come first.
 */
export const MOST_READ = 256;

/** Number of tenants that are gone through before the thread yields to other work. */
const A_TURN = 1_000;

/**
 * Creates a poller of tenants that live in PostgreSQL. A look makes two round trips to each database, for which no
 * thread waits: one reads which tenants have changed, and one the ledgers of those that may have work. The caller must
 * close it.
 */
export function createDatabasePoller({ databases, leaseMs, clock }: DatabasePollerOptions): LedgerPoller {
  const seen = new Map<string, LastLook>();
  /** The first ledger that the last look left out, with which the next one begins; undefined if it left out none. */
  let turn: string | undefined;
  const readStatuses = (paths: readonly string[]) =>
    databases.readEach(paths, (reader, tenants) => reader.readStatuses(tenants, { now: clock.now(), leaseMs }));
  const forgetOthers = (paths: readonly string[]) => {
    const current = new Set(paths);
    databases.keepOnly(current);
    if (seen.size > current.size) for (const path of seen.keys()) if (!current.has(path)) seen.delete(path);
  };

  async function look(paths: readonly string[]): Promise<Look> {
    forgetOthers(paths);
    const rowAt = await databases.readRows(paths);
    const statuses: Look['statuses'][number][] = [];
    const changed: (readonly [path: string, stamp: string])[] = [];
    const unfinished: typeof changed = [];
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
        seen.set(path, { stamp, isUnfinished: false });
        statuses.push({ path, ...NO_WORK });
      } else (mayHaveChanged ? changed : unfinished).push([path, stamp]);
    }
    // New work first: what falls due without a write waits for a look or two.
    const wanted = [...changed, ...unfinished];
    const stamps = new Map(wanted.slice(0, MOST_READ));
    turn = wanted[MOST_READ]?.[0];
    const found = await readStatuses([...stamps.keys()]);
    for (const [path, stamp] of stamps) {
      const status = found.get(path);
      seen.set(path, { stamp, isUnfinished: status?.isUnfinished });
      if (status !== undefined) statuses.push({ path, ...status });
    }
    return { statuses, failures: [], isComplete: changed.length <= MOST_READ };
  }

  return {
    look,
    listUnfinished: (paths, signal) =>
      listUnfinished(paths, { look, signal, isUnfinished: (path) => seen.get(path)?.isUnfinished === true }),
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
