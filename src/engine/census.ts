/** Counts what all tenants' files hold together, for the metrics. */

import fs from 'node:fs';
import path from 'node:path';
import { setImmediate as yieldTurn } from 'node:timers/promises';
import type { ControlDatabase } from './control/control-database.ts';
import { serialiseError } from './errors.ts';
import type { Clock, Logger } from './ports.ts';
import { countFile, emptyTally, LEDGER_STATES, type FileCensus, type LedgerState } from './store/census.ts';
import { stampOf } from './store/file-on-disk.ts';
import { openForLook, type Store } from './store/open-store.ts';
import {
  JOB_STEPS,
  MEMORY_STATES,
  SECTORS,
  type EvalScores,
  type JobStep,
  type MemoryState,
  type Sector,
  type TenantLooks,
} from './types.ts';

/** Totals over the database files of all tenants. Sizes are in bytes. */
export interface Census {
  /** Number of jobs by step and state, 0 included and dead ones, too; done and cancelled jobs are not counted. */
  readonly jobs: readonly { readonly step: JobStep; readonly state: LedgerState; readonly jobs: number }[];
  /**
   * Age in ms of the oldest job at each step that is neither done, dead nor cancelled, counted from when the job was
   * added; 0 if there is none.
   */
  readonly oldest: readonly { readonly step: JobStep; readonly ageMs: number }[];
  /** Number of memories by primary sector (kind of memory) and state, 0 included. */
  readonly memories: readonly { readonly sector: Sector; readonly state: MemoryState; readonly memories: number }[];
  readonly waypoints: number;
  /**
   * One entry for each schedule: the start of its last completed run (Unix ms), in the file in which that is longest
   * ago. In a file where the schedule has not run yet, the time at which it was first checked stands in. A schedule
   * without such a time in any file is left out.
   */
  readonly schedules: readonly { readonly schedule: string; readonly at: number }[];
  /**
   * Over the last run of each evaluation set (queries with known right answers): the lowest of each quality measure and
   * the longest p95. A measure that no run has is left out.
   */
  readonly evals: LowestScores;
  /** Number of tenants, unreadable ones included. */
  readonly tenants: number;
  /** Number of tenants whose file could not be read this time. Only `tenants` and the sizes include them. */
  readonly unreadable: number;
  /**
   * Size of all tenants' files together, without their write-ahead logs, in bytes. A tenant in PostgreSQL has no file
   * and counts 0.
   */
  readonly databaseBytes: number;
  /** Size of the write-ahead logs of all tenants' files together, in bytes. */
  readonly walBytes: number;
  /** Size of the largest write-ahead log of a tenant's file, in bytes. */
  readonly largestWalBytes: number;
}

/**
 * The lowest value of each quality measure, and the longest p95 of query times, among the last runs of the evaluation
 * sets.
 */
interface LowestScores {
  readonly scores: readonly { readonly measure: EvalMeasure; readonly score: number }[];
  /** The longest p95 of the time of a query, in ms; undefined if no set has run. */
  readonly p95Ms: number | undefined;
}

const EVAL_MEASURES = ['recall', 'precision', 'rightlyEmpty'] as const;
type EvalMeasure = (typeof EVAL_MEASURES)[number];

/** Takes a census (totals over all tenants' files) when somebody asks for one. */
export interface CensusTaker {
  /**
   * Returns the latest census: a new one if one is due and ready within a second, else the one before; undefined before
   * the first one is ready. It never throws: a file that cannot be read is counted in `unreadable`, and if the control
   * database cannot be read, the census before stays.
   */
  read(): Promise<Census | undefined>;
  /** Stops a census that is running, at its next file, and starts no more. */
  close(): Promise<void>;
}

/** What a census taker works with. */
export interface CensusOptions {
  readonly control: Pick<ControlDatabase, 'listTenants' | 'findTenantPath'>;
  /** Names of the scheduled maintenance tasks of which the census reports the last runs. */
  readonly schedules: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
  /**
   * Opens a tenant's file read-only; returns undefined if it does not exist or has no tables yet. The default opens it
   * with SQLite.
   */
  readonly look?: (file: string) => Store | undefined;
  /**
   * Reads stamps of tenants by id, as `TenantLooks` does. The default takes them from the times of files, which tenants
   * in PostgreSQL do not have.
   */
  readonly stampsOf?: TenantLooks['stampsOf'] | undefined;
  /** Called after each census with the time for which the census kept this thread busy (ms). */
  readonly onTaken?: (busyMs: number) => void;
}

/** Shortest time between the end of a census and the start of the next (ms). */
const FRESH_MS = 1_000;
/**
 * Pause after a census, as a multiple of the time for which it held the thread. With 19, counting takes at most a
 * twentieth of the thread's time.
 */
const REST_TIMES = 19;
/** Longest time that `read` waits for a new census (ms), since the scraper that asks has a timeout itself. */
const MAX_WAIT_MS = 1_000;
/**
 * Time (ms) for which counting has held the thread from which on it yields to other work at the end of a slice. A slice
 * may take longer.
 */
const TURN_MS = 2;

/**
 * What the last census counted in one file, and the file's stamp at that time: the sizes and modification times of the
 * file and of its write-ahead log. While the stamp stays the same, the file is not counted again.
 */
interface Counted {
  readonly stamp: string;
  readonly census: FileCensus;
}

/**
 * Makes a census taker. It counts on this thread, which serves requests, and therefore in slices of some milliseconds
 * and for at most a twentieth of the time. A file is opened again only if it or its log has changed since it was
 * counted.
 */
export function createCensusTaker(options: CensusOptions): CensusTaker {
  const { control, schedules, clock, logger, look = openForLook, stampsOf, onTaken } = options;
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
      if (running !== undefined) await atMost(MAX_WAIT_MS, running);
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
      const pathsNow = pathsOf(control);
      const stamps = await stampsOf?.([...pathsNow.values()]);
      for (const file of counted.keys()) if (!pathsNow.has(file)) counted.delete(file);
      for (const [file, id] of pathsNow) {
        if (isClosed) return;
        const stamp = stamps === undefined ? stampOf(file) : { stamp: stamps.get(id) ?? '', isSettled: true };
        sum.add(sizesOf(file), await count(file, stamp, turns.yieldTurn));
        await turns.yieldTurn();
      }
      latest = sum.result(clock.now());
    } catch (error) {
      // The control database cannot be read just now: the last census stays.
      logger.debug({ code: serialiseError(error).code }, 'census_failed');
    } finally {
      const busyMs = turns.busyMs();
      onTaken?.(busyMs);
      nextAt = performance.now() + Math.max(FRESH_MS, REST_TIMES * busyMs);
    }
  }

  /** Counts one file. Null if it does not exist or has no tables yet; undefined if it cannot be read. */
  async function count(file: string, { stamp, isSettled }: Stamp, yieldTurn: Turns['yieldTurn']): Promise<Count> {
    const last = counted.get(file);
    if (stamp !== '' && last?.stamp === stamp) return last.census;
    try {
      const store = look(file);
      if (store === undefined) return null;
      try {
        const census = await countFile(store, { schedules, yieldTurn });
        // A file that may change again within the resolution of its times is counted again.
        if (isSettled && stamp !== '') counted.set(file, { stamp, census });
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

type Stamp = ReturnType<typeof stampOf>;
type Turns = ReturnType<typeof createTurns>;
type Count = FileCensus | null | undefined;

/** Returns the ids of all tenants by their paths. */
function pathsOf(control: CensusOptions['control']): Map<string, string> {
  const places = control.listTenants().map(({ id }) => [control.findTenantPath(id), id] as const);
  return new Map(places.filter((place): place is readonly [string, string] => place[0] !== undefined));
}

async function atMost(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  await Promise.race([work, timeout]);
  clearTimeout(timer);
}

/** Yields this thread to other work every few milliseconds, and measures how long counting held the thread. */
function createTurns() {
  let busyMs = 0;
  let since = performance.now();
  return {
    async yieldTurn(): Promise<void> {
      const ms = performance.now() - since;
      if (ms < TURN_MS) return;
      busyMs += ms;
      await yieldTurn();
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
  const evals: EvalScores[] = [];
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
      evals.push(...file.evals);
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
      evals: lowestOf(evals),
      schedules: [...lastRuns].map(([schedule, at]) => ({ schedule, at })),
    }),
  };
}

function lowestOf(runs: readonly EvalScores[]): LowestScores {
  const scores = EVAL_MEASURES.flatMap((measure) => {
    const values = runs.flatMap((run) => run[measure] ?? []);
    return values.length === 0 ? [] : [{ measure, score: Math.min(...values) }];
  });
  return { scores, p95Ms: runs.length === 0 ? undefined : Math.max(...runs.map(({ p95Ms }) => p95Ms)) };
}

const WAITING_STEPS = JOB_STEPS.filter((step) => step !== 'done');
