import fs from 'node:fs';
import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import type { ControlDatabase } from './control/control-database.ts';
import { serialiseError } from './errors.ts';
import type { Clock, Logger } from './ports.ts';
import { countFile, emptyTally, LEDGER_STATES, type FileCensus, type LedgerState } from './store/census.ts';
import { stampOf } from './store/file-on-disk.ts';
import { openForLook } from './store/open-store.ts';
import { JOB_STEPS, MEMORY_STATES, SECTORS, type JobStep, type MemoryState, type Sector } from './types.ts';

/** What all tenants' files hold together, for metrics. */
export interface Census {
  readonly jobs: readonly { readonly step: JobStep; readonly state: LedgerState; readonly jobs: number }[];
  /** 0 where nothing waits. */
  readonly oldest: readonly { readonly step: JobStep; readonly ageMs: number }[];
  readonly memories: readonly { readonly sector: Sector; readonly state: MemoryState; readonly memories: number }[];
  readonly waypoints: number;
  /** When each schedule last began a run that came to its end (Unix ms), in the file where that is longest ago. */
  readonly schedules: readonly { readonly schedule: string; readonly at: number }[];
  readonly tenants: number;
  /** Tenants whose file could not be read this time; the rest says nothing of them. */
  readonly unreadable: number;
  readonly databaseBytes: number;
  readonly walBytes: number;
  readonly largestWalBytes: number;
}

/** Counts what the files hold when somebody asks. */
export interface CensusTaker {
  /**
   * The latest census, a new one where that is possible within `WAIT_MOST_MS`; undefined as long as there is none. Never throws: a
   * file that cannot be read is counted as such.
   */
  read(): Promise<Census | undefined>;
  close(): Promise<void>;
}

export interface CensusOptions {
  readonly control: Pick<ControlDatabase, 'listTenants' | 'findTenantPath'>;
  /** Names of the schedules. */
  readonly schedules: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
  /** Told how long each census kept the thread (ms). */
  readonly onTaken?: (busyMs: number) => void;
}

/** All that ask within this time get the same. */
const FRESH_MS = 1_000;
/** After a census the thread has others' work to do for so many times as long. */
const REST_TIMES = 19;
/** Whoever scrapes has a timeout of his own. */
const WAIT_MOST_MS = 1_000;
/** Others get a turn on this thread after so long. */
const TURN_MS = 2;

/** A file as it was counted last. */
interface Counted {
  readonly stamp: string;
  readonly census: FileCensus;
}

/**
 * Counts on this thread, which serves requests, so in slices of some milliseconds and never for more than a twentieth of the time. A file
 * that has not changed since is not opened: the times of a file and of its log say so.
 */
export function createCensusTaker({ control, schedules, clock, logger, onTaken }: CensusOptions): CensusTaker {
  const counted = new Map<string, Counted>();
  let latest: Census | undefined;
  let running: Promise<void> | undefined;
  let nextAt = 0;
  let isClosed = false;

  return {
    async read() {
      if (running === undefined && !isClosed && performance.now() >= nextAt) {
        running = take().finally(() => (running = undefined));
      }
      if (running !== undefined) await atMost(WAIT_MOST_MS, running);
      return latest;
    },
    async close() {
      isClosed = true;
      await running;
    },
  };

  async function take(): Promise<void> {
    const turns = createTurns();
    const sum = createSum();
    try {
      const paths = control.listTenants().flatMap(({ id }) => control.findTenantPath(id) ?? []);
      const known = new Set(paths);
      for (const file of counted.keys()) if (!known.has(file)) counted.delete(file);
      for (const file of paths) {
        if (isClosed) return;
        sum.add(sizesOf(file), await count(file, turns.breathe));
        await turns.breathe();
      }
      latest = sum.result(clock.now());
    } catch (error) {
      // The control database is not to be read just now: the last census stands.
      logger.debug({ code: serialiseError(error).code }, 'census_failed');
    } finally {
      const busyMs = turns.busyMs();
      onTaken?.(busyMs);
      nextAt = performance.now() + Math.max(FRESH_MS, REST_TIMES * busyMs);
    }
  }

  /** @returns undefined for a file that cannot be read; null for one that nobody has made yet */
  async function count(file: string, breathe: () => Promise<void>): Promise<FileCensus | null | undefined> {
    const { stamp, isSettled } = stampOf(file);
    const last = counted.get(file);
    if (last !== undefined && last.stamp === stamp) return last.census;
    try {
      const store = openForLook(file);
      if (store === undefined) return null;
      try {
        const census = await countFile(store, { schedules, breathe });
        // One that may change once more within the resolution of its times is counted again.
        if (isSettled) counted.set(file, { stamp, census });
        else counted.delete(file);
        return census;
      } finally {
        store.close();
      }
    } catch (error) {
      counted.delete(file);
      logger.debug({ file: path.basename(file), code: serialiseError(error).code }, 'census_failed');
      return undefined;
    }
  }
}

async function atMost(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  await Promise.race([work, timeout]);
  clearTimeout(timer);
}

/** Gives others a turn on this thread now and then, and knows how long it was kept from them. */
function createTurns() {
  let busyMs = 0;
  let since = performance.now();
  return {
    async breathe(): Promise<void> {
      const ms = performance.now() - since;
      if (ms < TURN_MS) return;
      busyMs += ms;
      await turn();
      since = performance.now();
    },
    busyMs: () => busyMs + performance.now() - since,
  };
}

function sizesOf(file: string): { database: number; wal: number } {
  const sizeOf = (name: string) => fs.statSync(name, { throwIfNoEntry: false })?.size ?? 0;
  return { database: sizeOf(file), wal: sizeOf(`${file}-wal`) };
}

function createSum() {
  const jobs = emptyTally(JOB_STEPS, LEDGER_STATES);
  const memories = emptyTally(SECTORS, MEMORY_STATES);
  const oldestAt = new Map<JobStep, number>();
  const lastRuns = new Map<string, number>();
  const totals = { tenants: 0, unreadable: 0, waypoints: 0, databaseBytes: 0, walBytes: 0, largestWalBytes: 0 };
  return {
    add(sizes: { database: number; wal: number }, file: FileCensus | null | undefined): void {
      totals.tenants += 1;
      totals.databaseBytes += sizes.database;
      totals.walBytes += sizes.wal;
      totals.largestWalBytes = Math.max(totals.largestWalBytes, sizes.wal);
      if (file === undefined) totals.unreadable += 1;
      if (file === undefined || file === null) return;
      for (const step of JOB_STEPS) for (const state of LEDGER_STATES) jobs[step][state] += file.jobs[step][state];
      for (const sector of SECTORS)
        for (const state of MEMORY_STATES) memories[sector][state] += file.memories[sector][state];
      totals.waypoints += file.waypoints;
      for (const [step, at] of file.oldestAt) oldestAt.set(step, Math.min(at, oldestAt.get(step) ?? Infinity));
      for (const [schedule, at] of file.lastRuns)
        lastRuns.set(schedule, Math.min(at, lastRuns.get(schedule) ?? Infinity));
    },
    result: (now: number): Census => ({
      ...totals,
      jobs: WAITING_STEPS.flatMap((step) => LEDGER_STATES.map((state) => ({ step, state, jobs: jobs[step][state] }))),
      oldest: WAITING_STEPS.map((step) => ({ step, ageMs: Math.max(0, now - (oldestAt.get(step) ?? now)) })),
      memories: SECTORS.flatMap((sector) =>
        MEMORY_STATES.map((state) => ({ sector, state, memories: memories[sector][state] })),
      ),
      schedules: [...lastRuns].map(([schedule, at]) => ({ schedule, at })),
    }),
  };
}

const WAITING_STEPS = JOB_STEPS.filter((step) => step !== 'done');
