import {
  JOB_STEPS,
  SECTORS,
  MEMORY_STATES,
  type EvalScores,
  type JobStep,
  type MemoryState,
  type Sector,
} from '../types.ts';
import { sliceEnd } from './dynamics.ts';
import { listLastEvalRuns } from './evals.ts';
import type { Store } from './open-store.ts';
import { listLastRuns } from './schedules.ts';

/** Counts of one tenant's file, for metrics. */
export interface FileCensus {
  /** Number of jobs by step and state. Done and cancelled jobs are not counted. */
  readonly jobs: Tally<JobStep, LedgerState>;
  /**
   * Time at which the oldest job of each step that is neither done, dead nor cancelled was added, Unix ms; a step
   * without one is absent.
   */
  readonly oldestAt: ReadonlyMap<JobStep, number>;
  /** Number of memories by primary sector (kind of memory) and state. */
  readonly memories: Tally<Sector, MemoryState>;
  /** Number of waypoints (links from a memory to its nearest one), automatic ones and those that a caller stated. */
  readonly waypoints: number;
  /**
   * Time at which each schedule (periodic maintenance task) began its last completed run, or was first checked, Unix
   * ms; a schedule without such a time is absent.
   */
  readonly lastRuns: ReadonlyMap<string, number>;
  /** The last run of each evaluation set; a set that was never run is absent. */
  readonly evals: readonly EvalScores[];
}

/** The states of a job that the census counts. */
export const LEDGER_STATES = ['queued', 'active', 'failed', 'dead'] as const;
/** A state of jobs that the census counts: any but `done` and `cancelled`. */
export type LedgerState = (typeof LEDGER_STATES)[number];

/** Counts of something by two names, such as jobs by step and state. */
export type Tally<A extends string, B extends string> = Record<A, Record<B, number>>;

/** Number of rows that are counted in one slice, which takes about a millisecond. */
const SLICE = 2_000;

/**
 * Counts a file in slices of 2,000 rows, each on a snapshot of its own, so that neither the thread nor a snapshot is
 * occupied for long. A row that changes meanwhile may be counted twice or not at all.
 * @param schedules names of the schedules whose last runs are reported
 * @param yieldTurn called between two slices to let other work run; an error that it throws ends the census
 */
export async function countFile(
  store: Store,
  { schedules, yieldTurn }: { readonly schedules: readonly string[]; readonly yieldTurn: () => Promise<void> },
): Promise<FileCensus> {
  const ledger = await countLedger(store, yieldTurn);
  const memories = emptyTally(SECTORS, MEMORY_STATES);
  let waypoints = 0;
  for (let after = 0, last = sliceEnd(store, 0, SLICE); last !== undefined; last = sliceEnd(store, after, SLICE)) {
    for (const { sector, state, n } of countBySector(store, after, last)) memories[sector][state] += n;
    waypoints += countWaypointsFrom(store, after, last);
    after = last;
    await yieldTurn();
  }
  return {
    ...ledger,
    memories,
    waypoints,
    lastRuns: new Map(listLastRuns(store, schedules)),
    evals: listLastEvalRuns(store),
  };
}

/** Makes a tally of all pairs of names in which every count is 0, so that metrics report a count that falls to 0. */
export function emptyTally<A extends string, B extends string>(first: readonly A[], second: readonly B[]): Tally<A, B> {
  const row = () => Object.fromEntries(second.map((name) => [name, 0])) as Record<B, number>;
  return Object.fromEntries(first.map((name) => [name, row()])) as Tally<A, B>;
}

async function countLedger(
  store: Store,
  yieldTurn: () => Promise<void>,
): Promise<Pick<FileCensus, 'jobs' | 'oldestAt'>> {
  const jobs = emptyTally(JOB_STEPS, LEDGER_STATES);
  const firstJobNos = new Map<JobStep, number>();
  const noteFirst = (step: JobStep, jobNo: number) =>
    firstJobNos.set(step, Math.min(jobNo, firstJobNos.get(step) ?? Infinity));
  for (let page = waitingAfter(store, BEFORE_ALL); page.length > 0; page = waitingAfter(store, page.at(-1)!)) {
    for (const { step, state, jobNo } of page) {
      jobs[step][state] += 1;
      noteFirst(step, jobNo);
    }
    await yieldTurn();
  }
  for (const { step, n, first } of countActive(store)) {
    jobs[step].active = n;
    noteFirst(step, first);
  }
  for (let page = deadAfter(store, 0, 0); page.length > 0; page = deadAfter(store, ...endOf(page))) {
    for (const { step } of page) jobs[step].dead += 1;
    await yieldTurn();
  }
  const oldestAt = new Map<JobStep, number>();
  for (const [step, jobNo] of firstJobNos) {
    const at = store.prepare('SELECT created_at FROM jobs WHERE seq = ?').pluck().get(jobNo) as number | undefined;
    if (at !== undefined) oldestAt.set(step, at);
  }
  return { jobs, oldestAt };
}

interface WaitingPlace {
  readonly step: string;
  readonly suspect: number;
  readonly priority: number;
  readonly run_at: number;
  readonly jobNo: number;
}

interface WaitingRow extends WaitingPlace {
  readonly step: JobStep;
  readonly state: 'queued' | 'failed';
}

const BEFORE_ALL: WaitingPlace = { step: '', suspect: 0, priority: 0, run_at: 0, jobNo: 0 };

/**
 * Reads the next 2,000 jobs that are `queued` or `failed` after a position in the index of due jobs, including suspects
 * (jobs that were active when their worker died).
 */
function waitingAfter(store: Store, { step, suspect, priority, run_at, jobNo }: WaitingPlace): WaitingRow[] {
  return store
    .prepare(
      `SELECT step, suspect, priority, run_at, seq AS jobNo, state FROM jobs INDEXED BY jobs_due
       WHERE state IN ('queued', 'failed')
         AND (step, suspect, priority, run_at, seq) > (:step, :suspect, :priority, :run_at, :jobNo)
       ORDER BY step, suspect, priority, run_at, seq LIMIT :size`,
    )
    .all({ step, suspect, priority, run_at, jobNo, size: SLICE }) as WaitingRow[];
}

interface DeadRow {
  readonly step: JobStep;
  readonly finished_at: number;
  readonly jobNo: number;
}

function deadAfter(store: Store, at: number, jobNo: number): DeadRow[] {
  return store
    .prepare(
      `SELECT step, finished_at, seq AS jobNo FROM jobs INDEXED BY jobs_by_end
       WHERE state = 'dead' AND finished_at > 0 AND (finished_at, seq) > (?, ?) ORDER BY finished_at, seq LIMIT ?`,
    )
    .all(at, jobNo, SLICE) as DeadRow[];
}

function endOf(page: readonly DeadRow[]): [at: number, jobNo: number] {
  const { finished_at, jobNo } = page.at(-1)!;
  return [finished_at, jobNo];
}

/**
 * Counts the active jobs of each step in one statement, since there are only as many as workers hold. `first` is the
 * lowest number of an active job of the step.
 */
function countActive(store: Store): { step: JobStep; n: number; first: number }[] {
  return store
    .prepare(
      `SELECT step, count(*) AS n, min(seq) AS first FROM jobs INDEXED BY jobs_leased
       WHERE state = 'active' GROUP BY step`,
    )
    .all() as { step: JobStep; n: number; first: number }[];
}

function countBySector(store: Store, after: number, last: number): { sector: Sector; state: MemoryState; n: number }[] {
  return store
    .prepare(
      `SELECT primary_sector AS sector, state, count(*) AS n FROM memory_dynamics
       WHERE seq > ? AND seq <= ? GROUP BY 1, 2`,
    )
    .all(after, last) as { sector: Sector; state: MemoryState; n: number }[];
}

function countWaypointsFrom(store: Store, after: number, last: number): number {
  return store
    .prepare(`SELECT count(*) FROM edges WHERE src > ? AND src <= ? AND type = 'waypoint'`)
    .pluck()
    .get(after, last) as number;
}
