/**
 * Marks the jobs that were handed to a queue (BullMQ). A mark is no claim of a worker: it only prevents a job from
 * being handed out twice while a queue has it. A mark ends after 15 seconds, since a queue may lose a job.
 */

import { MAX_JOB_IDS, MAX_QUESTIONS, QUEUED_STEPS, type QueuedStep } from '../jobs.ts';
import { ALL_BULK, BULK_HELD_MS, bulkDueUntil } from './job-claims.ts';
import { hasLapsedLease, type LeaseTimes } from './job-leases.ts';
import { dueUntil, selectDue, selectWhetherDue } from './due-jobs.ts';
import { IS_DUE } from './jobs.ts';
import { tracesOf } from '../tracing.ts';
import type { Store } from './open-store.ts';

/**
 * Time after which a mark ends if no worker claimed the job (ms). If a job is handed out twice, the second worker finds
 * nothing to claim.
 */
const DISPATCH_LAPSE_MS = 15_000;

/**
 * Returns the greatest number of jobs that one job of a queue may carry to a worker: 1 for `ingest`, since a document
 * may take minutes; 8 for `reason`, since a language model is slow; 64 for other steps.
 */
export function maxBatchSize(step: QueuedStep): number {
  return step === 'ingest' ? 1 : step === 'reason' ? MAX_QUESTIONS : MAX_JOB_IDS;
}

/** Jobs of the table `jobs` that one job of a queue carries to a worker. */
export interface DispatchBatch {
  /** Numbers (`jobNo`) of the jobs, all of one step, in the order of their due times. */
  readonly jobNos: readonly number[];
  /**
   * Name of the queue's job. It is never used again for this file, since a queue ignores a job with a name that it
   * still knows.
   */
  readonly name: string;
  /** Whether these are jobs of bulk adds; otherwise all of them are interactive. */
  readonly bulk: boolean;
  /**
   * Whether these are suspects, jobs that were active when a worker died. While they run, the process must run no other
   * job.
   */
  readonly alone: boolean;
  /** W3C trace contexts of the jobs, each once; empty if none was traced. */
  readonly traces: readonly string[];
}

interface DueRow {
  readonly jobNo: number;
  readonly id: string;
  readonly dispatches: number;
  readonly trace: string | null;
}

/** Which jobs are looked for: the step, and whether bulk or interactive jobs. */
export interface WantedLane {
  readonly step: QueuedStep;
  /** Whether jobs of bulk adds are wanted; if false, interactive ones. */
  readonly bulk: boolean;
}

/** Which jobs are to be handed to a queue. */
export interface WantedBatch extends WantedLane {
  /**
   * Whether a batch may have fewer jobs than its limit. If not, jobs collect while earlier ones wait in the queue,
   * since few full batches cost much less than many small ones. A group of suspects is always handed out.
   */
  readonly partial: boolean;
}

/** Which jobs are to be handed to a queue, with the time and the settings on which that depends. */
export interface DispatchBatchOptions extends WantedBatch {
  /** Whether vectors are computed on this machine. If so, bulk jobs that embed wait while documents are read. */
  readonly embedsHere: boolean;
  readonly now: number;
}

/** Result of `takeDispatchBatch` if fewer jobs are due than one batch may carry, and `partial` is false. */
export type TooFew = 'too_few';

/**
 * SQL condition that a job has no valid mark; the caller binds `:now` (Unix ms). A mark that ends too far in the future
 * (more than twice its duration) was made before the clock was set back, and is not valid.
 */
const IS_UNMARKED = `(dispatched_until <= :now OR dispatched_until > :now + ${2 * DISPATCH_LAPSE_MS})`;

/**
 * Marks due jobs that have no valid mark, and returns them. If there are due suspects, it returns a group of them;
 * otherwise the jobs that have been due longest, at most a full batch of the step. Call inside a write.
 * @returns undefined if no such job is due; 'too_few', without marking any, if there are fewer than a full batch and
 *   `partial` is false
 */
export function takeDispatchBatch(store: Store, options: DispatchBatchOptions): DispatchBatch | TooFew | undefined {
  const batch = peekDispatchBatch(store, options);
  if (batch === undefined || batch === 'too_few') return batch;
  store
    .prepare(
      `UPDATE jobs SET dispatches = dispatches + 1, dispatched_until = ?
       WHERE seq IN (SELECT value FROM json_each(?))`,
    )
    .run(options.now + DISPATCH_LAPSE_MS, JSON.stringify(batch.jobNos));
  return batch;
}

/** Returns what `takeDispatchBatch` would return, without marking jobs. It only reads, so it takes no write lock. */
export function peekDispatchBatch(store: Store, options: DispatchBatchOptions): DispatchBatch | TooFew | undefined {
  const { step, bulk, partial, now } = options;
  const priority = bulk ? 1 : 0;
  const together = largestUnmarkedGroup(store, { step, priority, now });
  const alone = together > 0;
  const limit = alone ? Math.min(together, maxBatchSize(step)) : maxBatchSize(step);
  const until = step === 'encode' && bulk && !alone ? bulkDueUntil(store, options) : ALL_BULK;
  const rows = listUnmarked(store, { step, suspect: together, priority, until, limit, now });
  const first = rows[0];
  if (first === undefined) return undefined;
  if (rows.length < limit && !alone && !partial) return 'too_few';
  const name = `${first.id}.${first.dispatches + 1}`;
  return { jobNos: rows.map(({ jobNo }) => jobNo), name, bulk, alone, traces: tracesOf(rows) };
}

/**
 * Returns the latest due time (Unix ms) of the jobs of a lane that may be handed out while documents are read: 30
 * seconds ago for bulk jobs that embed, if vectors are computed on this machine. Null for any other lane, which reading
 * documents does not hold back.
 */
export function heldUntil({ step, bulk, embedsHere, now }: Omit<DispatchBatchOptions, 'partial'>): number | null {
  return step === 'encode' && bulk && embedsHere ? now - BULK_HELD_MS : null;
}

/** Returns how many due suspects without a mark may run together at most; 0 if there are none. */
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

// Made once, as every look for jobs to hand out uses them.
const UNMARKED = ([0, 1] as const).map((priority) => {
  const columns = 'seq AS jobNo, id, dispatches, trace_context AS trace, run_at';
  const due = selectDue(columns, {
    ranges: dueUntil(priority),
    suspect: ':suspect',
    and: ` AND ${IS_UNMARKED}`,
  });
  return `SELECT jobNo, id, dispatches, trace FROM (${due}) ORDER BY run_at, jobNo LIMIT :limit`;
});
const HAS_UNMARKED = ([0, 1] as const).map(
  (priority) =>
    Object.fromEntries(
      QUEUED_STEPS.map((step) => [step, selectWhetherDue([step], { priority, and: ` AND ${IS_UNMARKED}` })]),
    ) as Readonly<Record<QueuedStep, string>>,
);

function listUnmarked(
  store: Store,
  {
    priority,
    ...parameters
  }: { step: QueuedStep; suspect: number; priority: 0 | 1; until: number; limit: number; now: number },
): DueRow[] {
  return store
    .prepare(UNMARKED[priority]!)
    .all({ ...parameters, untilNow: Math.min(parameters.now, parameters.until) }) as DueRow[];
}

/** Steps that have a due job which is not with a queue already (has no valid mark). */
export interface DueSteps {
  /** Steps with such a job of an interactive add. */
  readonly interactive: readonly QueuedStep[];
  /** Steps with such a job of a bulk add. */
  readonly bulk: readonly QueuedStep[];
}

/** State of a file's jobs at one moment, as a dispatcher needs it. */
export interface LedgerStatus extends DueSteps {
  /** Whether the lease of a claimed job has expired, because its worker stopped renewing it. */
  readonly hasLapsed: boolean;
  /**
   * Whether a job at a step with a queue is unfinished. If so, a job may become due without a further write: when its
   * retry time comes, or when its mark or lease expires.
   */
  readonly isUnfinished: boolean;
}

/** Reads the state of the jobs for a dispatcher, on one snapshot. */
export function readLedgerStatus(store: Store, times: LeaseTimes): LedgerStatus {
  return store.read(() => {
    const hasQueued = store
      .prepare(
        `SELECT 1 FROM jobs INDEXED BY jobs_due
         WHERE step IN (SELECT value FROM json_each(?)) AND state IN ('queued', 'failed') LIMIT 1`,
      )
      .get(JSON.stringify(QUEUED_STEPS));
    const hasLeased = store.prepare(`SELECT 1 FROM jobs INDEXED BY jobs_leased WHERE state = 'active' LIMIT 1`).get();
    const dueAt = (priority: 0 | 1) =>
      hasQueued === undefined ? [] : QUEUED_STEPS.filter((step) => hasUnmarked(store, { step, priority }, times.now));
    return {
      interactive: dueAt(0),
      bulk: dueAt(1),
      hasLapsed: hasLeased !== undefined && hasLapsedLease(store, times),
      isUnfinished: hasQueued !== undefined || hasLeased !== undefined,
    };
  });
}

function hasUnmarked(store: Store, at: { step: QueuedStep; priority: 0 | 1 }, now: number): boolean {
  return store.prepare(HAS_UNMARKED[at.priority]![at.step]).get({ now }) !== undefined;
}

/**
 * Removes the marks of jobs that a queue did not accept, so that they may be handed out again at once. Call inside a
 * write.
 */
export function returnDispatchBatch(store: Store, jobNos: readonly number[]): void {
  store
    .prepare('UPDATE jobs SET dispatched_until = 0 WHERE seq IN (SELECT value FROM json_each(?))')
    .run(JSON.stringify(jobNos));
}

/** Tells whether a waiting job has a mark, even one that has ended. */
export function hasDispatchMarks(store: Store): boolean {
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
 * Removes the marks of all waiting jobs, after the queues have lost their jobs. Call inside a write.
 * @returns the number of jobs that had a mark, even one that had ended
 */
export function forgetDispatchMarks(store: Store): number {
  return store
    .prepare(
      `UPDATE jobs SET dispatched_until = 0 WHERE seq IN (
         SELECT seq FROM jobs INDEXED BY jobs_due WHERE state IN ('queued', 'failed')) AND dispatched_until > 0`,
    )
    .run().changes;
}
