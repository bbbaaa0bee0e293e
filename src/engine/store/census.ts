import { JOB_STEPS, SECTORS, MEMORY_STATES, type JobStep, type MemoryState, type Sector } from '../types.ts';
import { sliceEnd } from './dynamics.ts';
import type { Store } from './open-store.ts';
import { listLastRuns } from './schedules.ts';

/** What one tenant's file holds, counted for metrics. */
export interface FileCensus {
  /** Jobs that have not ended well, by step and state. Those that are done or cancelled are many and say nothing. */
  readonly jobs: Tally<JobStep, LedgerState>;
  /** When the oldest unfinished job of each step was made (Unix ms). */
  readonly oldestAt: ReadonlyMap<JobStep, number>;
  readonly memories: Tally<Sector, MemoryState>;
  readonly waypoints: number;
  /** When each schedule last began a run that came to its end (Unix ms). */
  readonly lastRuns: ReadonlyMap<string, number>;
}

export const LEDGER_STATES = ['queued', 'active', 'failed', 'dead'] as const;
export type LedgerState = (typeof LEDGER_STATES)[number];

/** Counts by two names. */
export type Tally<A extends string, B extends string> = Record<A, Record<B, number>>;

/** Rows that are counted at once: about a millisecond. */
const SLICE = 2_000;

/**
 * Counts in slices, each by itself, so that neither the thread nor a snapshot is held for long: what moves meanwhile may be counted twice
 * or not at all, once.
 * @param breathe called between two slices
 */
export async function countFile(
  store: Store,
  { schedules, breathe }: { readonly schedules: readonly string[]; readonly breathe: () => Promise<void> },
): Promise<FileCensus> {
  const ledger = await countLedger(store, breathe);
  const memories = emptyTally(SECTORS, MEMORY_STATES);
  let waypoints = 0;
  for (let after = 0, last = sliceEnd(store, 0, SLICE); last !== undefined; last = sliceEnd(store, after, SLICE)) {
    for (const { sector, state, n } of countMemories(store, after, last)) memories[sector][state] += n;
    waypoints += countWaypointsFrom(store, after, last);
    after = last;
    await breathe();
  }
  return { ...ledger, memories, waypoints, lastRuns: new Map(listLastRuns(store, schedules)) };
}

/** All of them at 0, so that what is gone is not left standing. */
export function emptyTally<A extends string, B extends string>(first: readonly A[], second: readonly B[]): Tally<A, B> {
  const row = () => Object.fromEntries(second.map((name) => [name, 0])) as Record<B, number>;
  return Object.fromEntries(first.map((name) => [name, row()])) as Tally<A, B>;
}

async function countLedger(store: Store, breathe: () => Promise<void>): Promise<Pick<FileCensus, 'jobs' | 'oldestAt'>> {
  const jobs = emptyTally(JOB_STEPS, LEDGER_STATES);
  const firstSeqs = new Map<JobStep, number>();
  const noteFirst = (step: JobStep, seq: number) => firstSeqs.set(step, Math.min(seq, firstSeqs.get(step) ?? Infinity));
  for (let page = waitingAfter(store, BEFORE_ALL); page.length > 0; page = waitingAfter(store, page.at(-1)!)) {
    for (const { step, state, seq } of page) {
      jobs[step][state] += 1;
      noteFirst(step, seq);
    }
    await breathe();
  }
  for (const { step, n, first } of countActive(store)) {
    jobs[step].active = n;
    noteFirst(step, first);
  }
  for (let page = deadAfter(store, 0, 0); page.length > 0; page = deadAfter(store, ...endOf(page))) {
    for (const { step } of page) jobs[step].dead += 1;
    await breathe();
  }
  const oldestAt = new Map<JobStep, number>();
  for (const [step, seq] of firstSeqs) {
    const at = store.prepare('SELECT created_at FROM jobs WHERE seq = ?').pluck().get(seq) as number | undefined;
    if (at !== undefined) oldestAt.set(step, at);
  }
  return { jobs, oldestAt };
}

interface WaitingPlace {
  readonly step: string;
  readonly suspect: number;
  readonly priority: number;
  readonly run_at: number;
  readonly seq: number;
}

interface WaitingRow extends WaitingPlace {
  readonly step: JobStep;
  readonly state: 'queued' | 'failed';
}

const BEFORE_ALL: WaitingPlace = { step: '', suspect: 0, priority: 0, run_at: 0, seq: 0 };

/** The next page along the index of what is due. */
function waitingAfter(store: Store, { step, suspect, priority, run_at, seq }: WaitingPlace): WaitingRow[] {
  return store
    .prepare(
      `SELECT step, suspect, priority, run_at, seq, state FROM jobs INDEXED BY jobs_due
       WHERE state IN ('queued', 'failed') AND (step, suspect, priority, run_at, seq) > (:step, :suspect, :priority, :run_at, :seq)
       ORDER BY step, suspect, priority, run_at, seq LIMIT :size`,
    )
    .all({ step, suspect, priority, run_at, seq, size: SLICE }) as WaitingRow[];
}

interface DeadRow {
  readonly step: JobStep;
  readonly finished_at: number;
  readonly seq: number;
}

function deadAfter(store: Store, at: number, seq: number): DeadRow[] {
  return store
    .prepare(
      `SELECT step, finished_at, seq FROM jobs INDEXED BY jobs_by_end
       WHERE state = 'dead' AND finished_at > 0 AND (finished_at, seq) > (?, ?) ORDER BY finished_at, seq LIMIT ?`,
    )
    .all(at, seq, SLICE) as DeadRow[];
}

function endOf(page: readonly DeadRow[]): [at: number, seq: number] {
  const { finished_at, seq } = page.at(-1)!;
  return [finished_at, seq];
}

/** No more than workers have under way. */
function countActive(store: Store): { step: JobStep; n: number; first: number }[] {
  return store
    .prepare(
      `SELECT step, count(*) AS n, min(seq) AS first FROM jobs INDEXED BY jobs_leased WHERE state = 'active' GROUP BY step`,
    )
    .all() as { step: JobStep; n: number; first: number }[];
}

function countMemories(store: Store, after: number, last: number): { sector: Sector; state: MemoryState; n: number }[] {
  return store
    .prepare(
      `SELECT primary_sector AS sector, state, count(*) AS n FROM memory_dynamics WHERE seq > ? AND seq <= ? GROUP BY 1, 2`,
    )
    .all(after, last) as { sector: Sector; state: MemoryState; n: number }[];
}

function countWaypointsFrom(store: Store, after: number, last: number): number {
  return store
    .prepare(`SELECT count(*) FROM edges WHERE src > ? AND src <= ? AND type = 'waypoint'`)
    .pluck()
    .get(after, last) as number;
}
