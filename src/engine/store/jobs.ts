/**
 * The ledger: the one place that knows what work is owed. Redis, worker threads and timers only carry hints to it. This
 * file holds the life of a job under a claim; `job-claims.ts` takes jobs, `job-leases.ts` recovers them after a crash,
 * `job-control.ts` retries and cancels them, and `job-views.ts` reads them.
 *
 *   queued ──claim──► active ──advance──► (next step) ──finish──► done
 *     ▲                 │ fail: failed, waits for run_at; after the last attempt: dead
 *     │                 │ release: queued again, nothing counted
 *     └──── recover ────┘ crash: suspect, runs with suspects only; three crashes while alone: dead
 *
 * Jobs that were in flight together at a crash are suspects. They run again in groups, with no other job in the
 * process. A group that survives is cleared at once, a group that crashes is run in parts, and a job that is a group of
 * its own is charged with the crash. The column `suspect` limits how many may run together (0: no suspect);
 * `lease_alone` says how many do (0: other jobs may run beside them). Batches that fail as a whole are taken apart in
 * the same way.
 *
 * A claim raises the job's epoch. Every later statement of that claim names its epoch, so a worker that lost its lease
 * changes nothing.
 */
import type { QueuedStep } from '../jobs.ts';
import type { JobKind, JobState, JobStep } from '../types.ts';
import { noteEvents, type JobEvent } from './job-timeline.ts';
import type { Store } from './open-store.ts';

/** A job that a claim took, named by its number and the epoch of the claim. */
export interface HeldJob {
  readonly jobNo: number;
  /** Step that the claim works on. */
  readonly step: JobStep;
  /** Epoch of the claim. A later claim of the job has a higher one, and this claim then no longer holds the job. */
  readonly epoch: number;
  /** Number of failed attempts at this step so far. */
  readonly attempts: number;
  /** The job's UUIDv7, by which callers know it. */
  readonly id: string;
  /** W3C trace context of the request that asked for the job; null if that request was not traced. */
  readonly trace: string | null;
}

/** A claimed job about a memory. */
export interface Claim extends HeldJob {
  /**
   * A `memory` job encodes and links a new or changed memory. A `reembed` job only embeds the memory's text with
   * another model; at the step `link` it is the director of a change of the model. An `import` job only encodes a
   * memory whose links came with it.
   */
  readonly kind: 'memory' | 'reembed' | 'import';
  /** The memory that the job is about. A director has none: the field is null then, whatever its type says. */
  readonly memoryNo: number;
  /** The document that the memory belongs to; null if it belongs to none. */
  readonly documentNo: number | null;
  /** Time the job was added, Unix ms. */
  readonly createdAt: number;
  /** Priority of the job: 0 for an interactive add, 1 for a bulk one. */
  readonly isBulk: 0 | 1;
}

/** A claimed job that asks a language model something. */
export interface Question extends HeldJob {
  readonly kind: 'contradictions' | 'reflection' | 'consolidation';
  /** The memory that is checked for contradictions; null for the other kinds. */
  readonly memoryNo: number | null;
}

/** A claimed job that reads a document. */
export interface DocumentClaim extends HeldJob {
  readonly kind: 'document';
  readonly documentNo: number;
}

/** The type of the jobs that are claimed at a step. */
export type ClaimAt<Step extends QueuedStep> = Step extends 'ingest'
  ? DocumentClaim
  : Step extends 'reason'
    ? Question
    : Claim;

/** Number of crashes of a job while it ran alone at which it is dead. */
export const CRASH_BUDGET = 3;

/** Error code of a job that killed its workers. */
export const CRASH = 'crash';

/** Number of parts into which a group is divided that crashed or failed as a whole: 64 → 8 → 1. */
export const PARTS = 8;

/**
 * SQL condition for a job whose pause is over; the caller binds `:now` (Unix ms). No pause is longer than two minutes,
 * so a `run_at` further ahead was written before the clock was set back. Such a job is due, as it could otherwise wait
 * for ever.
 */
export const IS_DUE = '(run_at <= :now OR run_at > :now + 120000)';

/** States of a job that has not ended. */
const UNFINISHED_STATES: readonly string[] = ['queued', 'active', 'failed'] satisfies JobState[];
/** SQL list, in parentheses, of the states of a job that has not ended: queued, active and failed. */
export const UNFINISHED = `(${UNFINISHED_STATES.map((state) => `'${state}'`).join(', ')})`;

/** Tells whether a job in this state has not ended: queued, active, or failed with another attempt to come. */
export function isUnfinished(state: string): boolean {
  return UNFINISHED_STATES.includes(state);
}

/**
 * SQL that turns a job's id, its one `?` parameter, into the 16 bytes that the ledger keeps. A text that is no UUID
 * becomes NULL, which matches no job.
 */
export const UUID = `unhex(?, '-')`;

/** A job to add to the ledger. */
export interface NewJob {
  /** The job's UUIDv7, by which callers will know it. */
  readonly id: string;
  /** Number of the memory that the job is about, if it is about one. */
  readonly memory?: number;
  /** Number of the document that the job reads, or that its memory belongs to. */
  readonly document?: number | null;
  readonly step: QueuedStep;
  /** Kind of the job; by default `memory` for a job with a memory and `document` for one without. */
  readonly kind?: JobKind | 'import';
  /** Whether the job waits behind the jobs of interactive adds. */
  readonly bulk: boolean;
  /** W3C trace context of the request; null or undefined if it was not traced. */
  readonly trace?: string | null | undefined;
  /** Time at which the job is added and due, Unix ms. */
  readonly now: number;
}

// Made once, as every add uses it.
const INSERT_JOB = `INSERT INTO jobs (uuid, kind, memory, document, step, state, priority, run_at, created_at,
    updated_at, trace_context)
  VALUES (${UUID}, ?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?)`;

/** Adds a queued job that is due at once. Call inside a write. @returns the job's `jobNo` */
export function insertJob(store: Store, job: NewJob): number {
  const kind = job.kind ?? (job.memory === undefined ? 'document' : 'memory');
  const result = store
    .prepare(INSERT_JOB)
    .run(
      job.id,
      kind,
      job.memory ?? null,
      job.document ?? null,
      job.step,
      job.bulk ? 1 : 0,
      job.now,
      job.now,
      job.now,
      job.trace ?? null,
    );
  return Number(result.lastInsertRowid);
}

/**
 * Sends a memory's unfinished `memory` job back to `step` with all its attempts, even if a worker holds it. A job that
 * is not encoded yet stays as it is if `step` is `link`. An `import` job counts as one from then on, since the links
 * that the memory came with no longer hold. With `encode`, unfinished jobs that embed the memory for another model or
 * check it for contradictions are deleted. Call inside a write.
 * @returns the job's `jobNo`, or undefined if the memory has no unfinished `memory` job
 */
export function restartJob(
  store: Store,
  memoryNo: number,
  step: 'encode' | 'link',
  { now, trace = null }: Pick<NewJob, 'now' | 'trace'>,
): number | undefined {
  // The jobs deleted here embed the earlier text for another model, or ask about it. Their results must not be written;
  // the encode adds such jobs again.
  if (step === 'encode') {
    store
      .prepare(`DELETE FROM jobs WHERE memory = ? AND kind IN ('reembed', 'contradictions') AND state IN ${UNFINISHED}`)
      .run(memoryNo);
  }
  store
    .prepare(`UPDATE jobs SET kind = 'memory' WHERE memory = ? AND kind = 'import' AND state IN ${UNFINISHED}`)
    .run(memoryNo);
  const job = store
    .prepare(`SELECT seq AS jobNo, step FROM jobs WHERE memory = ? AND kind = 'memory' AND state IN ${UNFINISHED}`)
    .get(memoryNo) as { jobNo: number; step: JobStep } | undefined;
  // A job that has still to encode the memory links it afterwards anyway, and keeps its attempts.
  if (job === undefined || (job.step === 'encode' && step === 'link')) return job?.jobNo;
  store
    .prepare(
      `UPDATE jobs SET step = ?, state = 'queued', attempts = 0, run_at = ?, lease_owner = NULL, lease_until = NULL,
         lease_epoch = lease_epoch + 1, dispatched_until = 0, updated_at = ?, ${noteEvents(['requeued'])},
         trace_context = coalesce(?, trace_context) WHERE seq = ?`,
    )
    .run(step, now, now, now, trace, job.jobNo);
  return job.jobNo;
}

/**
 * Moves a job to its next step and keeps the lease, if the claim still holds the job.
 * @returns the claim at the next step, even if it no longer holds the job: ask `holdsLease` in the same write
 */
export function advanceJob(store: Store, held: Claim, step: 'link', now: number): Claim {
  store
    .prepare(
      `UPDATE jobs SET step = ?, attempts = 0, suspect = 0, updated_at = ?, ${noteEvents([PAST_TENSE[held.step]])}
       WHERE seq = ? AND lease_epoch = ?`,
    )
    .run(step, now, now, held.jobNo, held.epoch);
  return { ...held, step, attempts: 0 };
}

/** Marks a job as done, if the claim still holds it. */
export function finishJob(store: Store, held: HeldJob, now: number): void {
  store
    .prepare(
      `UPDATE jobs SET step = 'done', state = 'done', suspect = 0, lease_owner = NULL, lease_until = NULL, error = NULL,
         error_code = NULL, finished_at = ?, updated_at = ?, ${noteEvents([PAST_TENSE[held.step], 'done'])}
       WHERE seq = ? AND lease_epoch = ?`,
    )
    .run(now, now, now, held.jobNo, held.epoch);
}

/** Reason of a failed attempt, and the time of the next one. */
export interface Failure {
  readonly code: string;
  /** What went wrong; the ledger keeps the first 1,000 characters. */
  readonly message: string;
  /** Earliest time of the next attempt, Unix ms; null gives the job up. */
  readonly retryAt: number | null;
}

/**
 * Ends a claim by a failed attempt.
 * @returns the state of the job now: 'failed' if another attempt follows, 'dead' if the job was given up; undefined if
 *   the claim no longer held the job, which then stays as it is
 */
export function failJob(store: Store, held: HeldJob, failure: Failure, now: number): 'failed' | 'dead' | undefined {
  const state = failure.retryAt === null ? 'dead' : 'failed';
  const result = store
    .prepare(
      `UPDATE jobs SET state = ?, attempts = attempts + 1, run_at = coalesce(?, run_at), error_code = ?, error = ?,
         lease_owner = NULL,
         lease_until = NULL, finished_at = ?, updated_at = ?, ${noteEvents([state])}
       WHERE seq = ? AND lease_epoch = ? AND state = 'active'`,
    )
    .run(
      state,
      failure.retryAt,
      failure.code,
      failure.message.slice(0, 1_000),
      state === 'dead' ? now : null,
      now,
      now,
      held.jobNo,
      held.epoch,
    );
  return result.changes === 0 ? undefined : state;
}

/**
 * Hands a job back at its present step, to run from `runAt` (Unix ms) on: at a stop, or when a provider is down.
 * Nothing is counted against the job. A job that the claim no longer holds stays as it is.
 */
export function releaseJob(store: Store, held: HeldJob, runAt: number, now: number): void {
  requeue(store, held, { suspect: null, runAt, now });
}

/**
 * Hands back the jobs of a batch that failed as a whole, as suspects. They run in smaller and smaller groups until the
 * job that causes the failure is known. Jobs that their claims no longer hold stay as they are.
 */
export function isolateJobs(store: Store, held: readonly HeldJob[], now: number): void {
  const suspect = Math.ceil(held.length / PARTS);
  for (const job of held) requeue(store, job, { suspect, runAt: now, now });
}

function requeue(
  store: Store,
  held: HeldJob,
  { suspect, runAt, now }: { suspect: number | null; runAt: number; now: number },
): void {
  store
    .prepare(
      `UPDATE jobs SET state = 'queued', suspect = coalesce(?, suspect), run_at = ?, lease_owner = NULL,
         lease_until = NULL,
         updated_at = ?
       WHERE seq = ? AND lease_epoch = ? AND state = 'active'`,
    )
    .run(suspect, runAt, now, held.jobNo, held.epoch);
}

/**
 * Ends the wait of a memory whose job has given up. Without a vector the memory is `failed`, which means it is found by
 * its words alone; with one it is `ready`. Null and the number of an erased memory have no effect.
 */
export function markFailed(store: Store, memoryNo: number | null): void {
  if (memoryNo === null) return;
  store
    .prepare(
      `UPDATE memory_dynamics
       SET state = CASE WHEN EXISTS (SELECT 1 FROM vectors WHERE memory = :memory) THEN 'ready' ELSE 'failed' END
       WHERE seq = :memory`,
    )
    .run({ memory: memoryNo });
}

/** Event that the timeline notes when a step ends. */
const PAST_TENSE: Readonly<Record<JobStep, JobEvent>> = {
  ingest: 'read',
  settle: 'settled',
  encode: 'encoded',
  link: 'linked',
  reason: 'reasoned',
  done: 'done',
};
