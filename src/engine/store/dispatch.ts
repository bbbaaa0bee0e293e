/**
 * Marks on the jobs of the ledger that were handed to a queue. A mark is no claim: it only keeps a job from being
 * handed out twice while a queue knows it. A mark lapses, since a queue may forget.
 */
import { MAX_JOB_IDS, MAX_QUESTIONS, QUEUED_STEPS, type QueuedStep } from '../jobs.ts';
import { ALL_BULK, bulkDueUntil } from './job-claims.ts';
import { hasLapsedLease, type LeaseTimes } from './job-leases.ts';
import { IS_DUE } from './jobs.ts';
import { tracesOf } from '../tracing.ts';
import type { Store } from './open-store.ts';

/**
 * Time after which a mark lapses if nobody claimed the job, ms. Handing a job out twice costs a look, never a second
 * effect.
 */
const DISPATCH_LAPSE_MS = 15_000;

/**
 * Most jobs in one handout. A document may take minutes, so it goes alone; questions go in small groups, as a language
 * model is slow too.
 */
function maxHandout(step: QueuedStep): number {
  return step === 'ingest' ? 1 : step === 'reason' ? MAX_QUESTIONS : MAX_JOB_IDS;
}

/** Numbers of jobs of the ledger that one job of a queue carries to a worker. */
export interface Handout {
  /** Jobs of one step, those due longest first. */
  readonly jobNos: readonly number[];
  /** Name of the queue's job, unique as long as the ledger exists, since a queue ignores a name that it still knows. */
  readonly name: string;
  /** Whether these are jobs of bulk adds; otherwise all are interactive. */
  readonly bulk: boolean;
  /** Whether these are suspects, which run together with no other job in the process. */
  readonly alone: boolean;
  /** W3C trace contexts of the jobs, each once. */
  readonly traces: readonly string[];
}

interface DueRow {
  readonly jobNo: number;
  readonly id: string;
  readonly dispatches: number;
  readonly trace: string | null;
}

/** Kind of handout that is wanted. */
export interface WantedHandout {
  readonly step: QueuedStep;
  /** True for jobs of bulk adds, false for interactive ones. */
  readonly bulk: boolean;
  /**
   * Whether a handout may be less than full. If jobs wait to be picked up anyway, more of them gather meanwhile, and a
   * few full handouts cost much less than many small ones. A group of suspects is always handed out.
   */
  readonly partial: boolean;
}

/** Kind of handout that is wanted, and the circumstances that decide whether it may be made. */
export interface HandoutOptions extends WantedHandout {
  /** Whether vectors are computed on this machine, so that bulk work waits while documents are read. */
  readonly embedsHere: boolean;
  readonly now: number;
}

/** Result if jobs are due, but too few for a full handout, and `partial` is false. */
export type TooFew = 'too_few';

/**
 * SQL condition for a job without a valid mark; the caller binds `:now`. A mark that ends further ahead than twice the
 * lapse was made before the clock was set back.
 */
const IS_UNMARKED = `(dispatched_until <= :now OR dispatched_until > :now + ${2 * DISPATCH_LAPSE_MS})`;

/**
 * Marks due jobs that no queue knows, and returns them: a group of suspects if there are any, or else those due
 * longest, up to a full handout of the step. Call inside a write.
 * @returns undefined if there are no such jobs; 'too_few' if there are too few and `partial` is false, and none is then
 *   marked
 */
export function takeHandout(store: Store, options: HandoutOptions): Handout | TooFew | undefined {
  const handout = peekHandout(store, options);
  if (handout === undefined || handout === 'too_few') return handout;
  store
    .prepare(
      `UPDATE jobs SET dispatches = dispatches + 1, dispatched_until = ?
       WHERE seq IN (SELECT value FROM json_each(?))`,
    )
    .run(options.now + DISPATCH_LAPSE_MS, JSON.stringify(handout.jobNos));
  return handout;
}

/** Returns what `takeHandout` would return, without marking the jobs. It only reads, so it takes no lock. */
export function peekHandout(store: Store, options: HandoutOptions): Handout | TooFew | undefined {
  const { step, bulk, partial, now } = options;
  const priority = bulk ? 1 : 0;
  const together = largestUnmarkedGroup(store, { step, priority, now });
  const alone = together > 0;
  const limit = alone ? Math.min(together, maxHandout(step)) : maxHandout(step);
  const dueUntil = step === 'encode' && bulk && !alone ? bulkDueUntil(store, options) : ALL_BULK;
  const rows = listUnmarked(store, { step, suspect: together, priority, dueUntil, limit, now });
  const first = rows[0];
  if (first === undefined) return undefined;
  if (rows.length < limit && !alone && !partial) return 'too_few';
  const name = `${first.id}.${first.dispatches + 1}`;
  return { jobNos: rows.map(({ jobNo }) => jobNo), name, bulk, alone, traces: tracesOf(rows) };
}

/** Largest number of unmarked suspects that may run together; 0 if there are none. */
function largestUnmarkedGroup(store: Store, parameters: { step: QueuedStep; priority: 0 | 1; now: number }): number {
  const row = store
    .prepare(
      `SELECT max(suspect) AS together FROM jobs INDEXED BY jobs_due
       WHERE step = :step AND suspect > 0 AND priority = :priority AND state IN ('queued', 'failed') AND ${IS_DUE}
         AND ${IS_UNMARKED}`,
    )
    .get(parameters) as { together: number | null };
  return row.together ?? 0;
}

function listUnmarked(
  store: Store,
  parameters: { step: QueuedStep; suspect: number; priority: 0 | 1; dueUntil: number; limit: number; now: number },
): DueRow[] {
  return store
    .prepare(
      `SELECT seq AS jobNo, id, dispatches, trace_context AS trace FROM jobs INDEXED BY jobs_due
       WHERE step = :step AND suspect = :suspect AND priority = :priority AND run_at <= :dueUntil
         AND state IN ('queued', 'failed') AND ${IS_DUE} AND ${IS_UNMARKED}
       ORDER BY run_at, seq LIMIT :limit`,
    )
    .all(parameters) as DueRow[];
}

/** What waits and what is leased in the ledger of a file at one moment. */
export interface LedgerSight {
  /** Steps at which at least one due job is known to no queue. */
  readonly steps: readonly QueuedStep[];
  /** Whether the lease of any claimed job ran out, so that its worker fell silent. */
  readonly hasLapsed: boolean;
  /**
   * Whether any job at a step with a queue has not ended, so that time alone brings work: a retry falls due, or a mark
   * or lease lapses.
   */
  readonly isUnfinished: boolean;
}

/** Reads the state of the ledger on one snapshot. */
export function sightLedger(store: Store, times: LeaseTimes): LedgerSight {
  return store.read(() => {
    const hasQueued = store
      .prepare(
        `SELECT 1 FROM jobs INDEXED BY jobs_due
         WHERE step IN (SELECT value FROM json_each(?)) AND state IN ('queued', 'failed') LIMIT 1`,
      )
      .get(JSON.stringify(QUEUED_STEPS));
    const hasLeased = store.prepare(`SELECT 1 FROM jobs INDEXED BY jobs_leased WHERE state = 'active' LIMIT 1`).get();
    return {
      steps: hasQueued === undefined ? [] : QUEUED_STEPS.filter((step) => hasUnmarked(store, step, times.now)),
      hasLapsed: hasLeased !== undefined && hasLapsedLease(store, times),
      isUnfinished: hasQueued !== undefined || hasLeased !== undefined,
    };
  });
}

function hasUnmarked(store: Store, step: QueuedStep, now: number): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM jobs INDEXED BY jobs_due
         WHERE step = :step AND state IN ('queued', 'failed') AND ${IS_DUE} AND ${IS_UNMARKED} LIMIT 1`,
      )
      .get({ step, now }) !== undefined
  );
}

/** Removes the marks of these jobs, which a queue did not take, so that they may be handed out again at once. */
export function returnHandout(store: Store, jobNos: readonly number[]): void {
  store
    .prepare('UPDATE jobs SET dispatched_until = 0 WHERE seq IN (SELECT value FROM json_each(?))')
    .run(JSON.stringify(jobNos));
}

/** Tells whether any waiting job has a mark, lapsed marks included. */
export function hasHandouts(store: Store): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM jobs WHERE seq IN (SELECT seq FROM jobs INDEXED BY jobs_due WHERE state IN ('queued', 'failed'))
           AND dispatched_until > 0 LIMIT 1`,
      )
      .get() !== undefined
  );
}

/**
 * Removes the marks of all waiting jobs, since the queues lost what they knew. Call inside a write.
 * @returns the number of jobs that had a mark, lapsed ones included
 */
export function forgetHandouts(store: Store): number {
  return store
    .prepare(
      `UPDATE jobs SET dispatched_until = 0 WHERE seq IN (
         SELECT seq FROM jobs INDEXED BY jobs_due WHERE state IN ('queued', 'failed')) AND dispatched_until > 0`,
    )
    .run().changes;
}
