/**
 * The job ledger: the table `jobs`, the only record of all unfinished work. Queues, worker threads and timers carry
 * hints to it. This file changes jobs under a claim; `job-claims.ts` claims jobs, `job-leases.ts` recovers them after a
 * crash, `job-control.ts` retries and cancels them, and `job-views.ts` reads them.
 *
 *   queued ──claim──► active ──advance──► (next step) ──finish──► done
 *     ▲                 │ fail: failed, waits for run_at; after the last attempt: dead
 *     │                 │ release: queued again, nothing counted
 *     │                 │ yield: queued again after a slice of a long step, crashes and attempts reset
 *     └──── recover ────┘ crash: suspect, runs with suspects only; three crashes while alone: dead
 *
 * Jobs that were active together when their worker died are suspects. They run again in groups, with no other job in
 * the process. A group that survives is cleared at once, a group that crashes is divided into smaller groups, and a job
 * that crashes in a group of its own is charged with the crash. The column `suspect` limits how many may run together
 * (0: no suspect); `lease_alone` says how many do (0: other jobs may run beside them). Batches that fail as a whole are
 * divided in the same way.
 *
 * A claim raises the job's epoch. Every later statement of that claim names its epoch, so a worker that lost its lease
 * changes nothing.
 */

import type { QueuedStep } from '../jobs.ts';
import type { JobKind, JobState, JobStep } from '../types.ts';
import { noteEvents, type JobEvent } from './job-timeline.ts';
import type { Store } from './open-store.ts';
import { beginningOf } from '../text/beginning-of.ts';

/** A job that was claimed, identified by its number and the epoch of the claim. */
export interface HeldJob {
  readonly jobNo: number;
  /** Step of the job under this claim: the one at which it was claimed, or after `advanceJob` the next one. */
  readonly step: JobStep;
  /** Epoch of the claim. A later claim of the job has a higher one, and this claim then no longer holds the job. */
  readonly epoch: number;
  /** Number of failed attempts at this step before the claim. */
  readonly attempts: number;
  /** UUIDv7 of the job, by which callers know it. */
  readonly id: string;
  /** W3C trace context of the request that caused the job; null if that request was not traced. */
  readonly trace: string | null;
}

/** A claimed job that embeds or links a memory. */
export interface Claim extends HeldJob {
  /**
   * Kind of the job. `memory` embeds and links a memory. `import` only embeds a memory whose links were imported.
   * `reembed` embeds a memory by another model. A `reembed` job without a memory, at the step `link`, is a controller:
   * the job that controls a change of the model.
   */
  readonly kind: 'memory' | 'reembed' | 'import';
  /** Number of the memory; null, in spite of its type, for the controller of a change of the model. */
  readonly memoryNo: number;
  /** Number of the document that the memory is a part of; null if it is no part of one. */
  readonly documentNo: number | null;
  /** Time at which the job was added, Unix ms. */
  readonly createdAt: number;
  /** Priority of the job: 1 for a bulk job, 0 for an interactive one, which runs first. */
  readonly isBulk: 0 | 1;
}

/** A claimed job at the step `reason`: it asks a language model, or gathers memories. */
export interface Question extends HeldJob {
  readonly kind: 'contradictions' | 'reflection' | 'consolidation';
  /** Number of the memory that is checked for contradictions; null for the other kinds. */
  readonly memoryNo: number | null;
}

/** A claimed job that reads a document. */
export interface DocumentClaim extends HeldJob {
  readonly kind: 'document';
  readonly documentNo: number;
}

/** The type of the jobs that can be claimed at a step. */
export type ClaimAt<Step extends QueuedStep> = Step extends 'ingest'
  ? DocumentClaim
  : Step extends 'reason'
    ? Question
    : Claim;

/** Number of crashes at which a job is given up (`dead`): deaths of a worker while it ran only this job. */
export const CRASH_BUDGET = 3;

/** Error code of a job that was given up because it killed its workers. */
export const CRASH = 'crash';

/**
 * Number of smaller groups into which a group of suspects is divided after it crashed or failed as a whole: groups of
 * 64, then 8, then 1.
 */
export const PARTS = 8;

/**
 * SQL condition that a waiting job is due; the caller binds `:now` (Unix ms). No job is postponed by more than two
 * minutes. So a `run_at` further ahead was written before the clock was set back; such a job counts as due, as it might
 * otherwise wait forever.
 */
export const IS_DUE = '(run_at <= :now OR run_at > :now + 120000)';

/** States of an unfinished job. */
const UNFINISHED_STATES: readonly string[] = ['queued', 'active', 'failed'] satisfies JobState[];
/** SQL list, in parentheses, of the states of an unfinished job: queued, active and failed. */
export const UNFINISHED = `(${UNFINISHED_STATES.map((state) => `'${state}'`).join(', ')})`;

/** Tells whether a job in this state is unfinished: queued, active, or failed with another attempt to come. */
export function isUnfinished(state: string): boolean {
  return UNFINISHED_STATES.includes(state);
}

/**
 * SQL that turns a job's id, its one parameter, into the 16 bytes that the ledger stores. A text that is no UUID
 * becomes NULL, which equals no id.
 */
export const UUID = `unhex(?, '-')`;

/** A job to add to the ledger. */
export interface NewJob {
  /** UUIDv7 of the job, by which callers will know it. */
  readonly id: string;
  /** Number of the memory that the job works on; left out if it works on none. */
  readonly memory?: number;
  /** Number of the document that the job reads, or that its memory is a part of; null or left out if there is none. */
  readonly document?: number | null;
  readonly step: QueuedStep;
  /** Kind of the job; if left out, `memory` for a job with a memory and `document` for one without. */
  readonly kind?: JobKind | 'import';
  /** Whether it is a bulk job, which runs after interactive ones. */
  readonly bulk: boolean;
  /** W3C trace context of the request that causes the job; null or left out if it is not traced. */
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
 * Sends the unfinished `memory` jobs of memories back to `step`, with their full number of attempts, even if a worker
 * holds them. If `step` is `link`, a job that still has to encode the memory stays as it is. An unfinished `import` job
 * becomes a `memory` job, since the imported links are no longer right. If `step` is `encode`, unfinished jobs that
 * embed the memory by another model or check it for contradictions are deleted. Call inside a write.
 * @returns `memoryNo` of the memories that have an unfinished `memory` job
 */
export function restartJobs(
  store: Store,
  memoryNos: readonly number[],
  step: 'encode' | 'link',
  { now, trace = null }: Pick<NewJob, 'now' | 'trace'>,
): ReadonlySet<number> {
  // The jobs deleted here embed the earlier text for another model, or ask about it. Their results must not be written;
  // the encode adds such jobs again.
  if (step === 'encode') {
    const drop = store.prepare(
      `DELETE FROM jobs WHERE memory = ? AND kind IN ('reembed', 'contradictions') AND state IN ${UNFINISHED}`,
    );
    for (const memoryNo of memoryNos) drop.run(memoryNo);
  }
  const change = store.prepare(
    `UPDATE jobs SET kind = 'memory' WHERE memory = ? AND kind = 'import' AND state IN ${UNFINISHED}`,
  );
  for (const memoryNo of memoryNos) change.run(memoryNo);
  const select = `SELECT seq AS jobNo, step FROM jobs WHERE memory = ? AND kind = 'memory' AND state IN ${UNFINISHED}`;
  store.ahead?.ask(
    select,
    memoryNos.map((memoryNo) => [memoryNo]),
  );
  const jobs = memoryNos.flatMap((memoryNo) => {
    const job = store.prepare(select).get(memoryNo) as { jobNo: number; step: JobStep } | undefined;
    return job === undefined ? [] : [{ ...job, memoryNo }];
  });
  // A job that has still to encode the memory links it afterwards anyway, and keeps its attempts.
  const restarting = jobs.filter((job) => job.step !== 'encode' || step !== 'link');
  const restart = store.prepare(
    `UPDATE jobs SET step = ?, state = 'queued', attempts = 0, run_at = ?, lease_owner = NULL, lease_until = NULL,
       lease_epoch = lease_epoch + 1, dispatched_until = 0, updated_at = ?, ${noteEvents(['requeued'])},
       trace_context = coalesce(?, trace_context) WHERE seq = ?`,
  );
  for (const { jobNo } of restarting) restart.run(step, now, now, now, trace, jobNo);
  return new Set(jobs.map(({ memoryNo }) => memoryNo));
}

/** Number of ended jobs that a memory keeps when another job of it is added. */
const ENDED_KEPT = 100;

/**
 * Deletes at most 100 ended jobs of a memory beyond the newest 100. A memory may be changed any number of times, and
 * each change looks through all of its jobs. Call inside a write.
 */
export function forgetEndedJobs(store: Store, memoryNo: number): void {
  store
    .prepare(
      `DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs
         WHERE memory = ? AND state NOT IN ${UNFINISHED} ORDER BY seq DESC LIMIT ${ENDED_KEPT} OFFSET ${ENDED_KEPT})`,
    )
    .run(memoryNo);
}

/**
 * Moves a job to its next step and keeps the lease. Only the epoch of the claim is checked: call `holdsLease` before,
 * in the same write.
 * @returns the claim at the next step, even if the job has another epoch by now and was not moved
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

/** Marks a job as done. Only the epoch of the claim is checked: call `holdsLease` before, in the same write. */
export function finishJob(store: Store, held: HeldJob, now: number): void {
  store
    .prepare(
      `UPDATE jobs SET step = 'done', state = 'done', suspect = 0, lease_owner = NULL, lease_until = NULL, error = NULL,
         error_code = NULL, finished_at = ?, updated_at = ?, ${noteEvents([PAST_TENSE[held.step], 'done'])}
       WHERE seq = ? AND lease_epoch = ?`,
    )
    .run(now, now, now, held.jobNo, held.epoch);
}

/** Reason of a failed attempt, and the time of the next attempt. */
export interface Failure {
  readonly code: string;
  /** What went wrong; the ledger stores the first 1,000 characters. */
  readonly message: string;
  /** Earliest time of the next attempt, Unix ms; null if the job is to be given up. */
  readonly retryAt: number | null;
}

/**
 * Ends a claim because its attempt failed. The state of the job's memory or document is left as it is. Call inside a
 * write.
 * @returns the new state of the job: 'failed' if another attempt follows, 'dead' if the job was given up; undefined if
 *   the claim no longer held the job, which stays as it is
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
      beginningOf(failure.message, 1_000),
      state === 'dead' ? now : null,
      now,
      now,
      held.jobNo,
      held.epoch,
    );
  return result.changes === 0 ? undefined : state;
}

/**
 * Returns a job to the queue at its present step, due at `runAt` (Unix ms), because the worker stops or a provider is
 * down. It does not count as an attempt. A job that the claim no longer holds stays as it is. Call inside a write.
 */
export function releaseJob(store: Store, held: HeldJob, runAt: number, now: number): void {
  requeue(store, held, { suspect: null, runAt, now });
}

/**
 * Returns a job to the queue at its present step after a slice of its work, due at `runAt` (Unix ms). The slice went
 * well, so the job is no suspect any more, and its crashes and failed attempts are reset. A job that the claim no
 * longer holds stays as it is. Call inside a write.
 */
export function yieldJob(store: Store, held: HeldJob, runAt: number, now: number): void {
  store
    .prepare(
      `UPDATE jobs SET state = 'queued', suspect = 0, crashes = 0, attempts = 0, run_at = ?, lease_owner = NULL,
         lease_until = NULL,
         updated_at = ? WHERE seq = ? AND lease_epoch = ? AND state = 'active'`,
    )
    .run(runAt, now, held.jobNo, held.epoch);
}

/**
 * Returns the jobs of a batch that failed as a whole to the queue as suspects, due at once. They run in smaller and
 * smaller groups until the job that causes the failure is found. A job that its claim no longer holds stays as it is.
 * Call inside a write.
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
 * Sets the state of a memory whose job failed for good or was cancelled: `ready` if the memory has a vector, otherwise
 * `failed`, so that only its words find it. With null or the number of an erased memory it does nothing. Call inside a
 * write.
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

/** Event that the timeline records at the end of each step. */
const PAST_TENSE: Readonly<Record<JobStep, JobEvent>> = {
  ingest: 'read',
  settle: 'settled',
  encode: 'encoded',
  link: 'linked',
  reason: 'reasoned',
  done: 'done',
};
