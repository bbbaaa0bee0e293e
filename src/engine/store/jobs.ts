import { EngineError } from '../errors.ts';
import { JOB_IDS_MOST, type QueuedStep } from '../jobs.ts';
import type { Job, JobCounts, JobKind, JobState, JobStep, JobSummary, StepBacklog } from '../types.ts';
import { JOB_STATES, JOB_STEPS } from '../types.ts';
import { noteEvents, readEvents, type JobEvent } from './job-timeline.ts';
import { failDocument, setDocumentState } from './documents.ts';
import type { Store } from './open-store.ts';

/**
 * The ledger: the one place that knows what work is owed. Redis, worker threads and timers only carry hints to it.
 *
 *   queued ──claim──► active ──advance──► (next step) ──finish──► done
 *     ▲                 │ fail: failed, waits for run_at; after the last attempt: dead
 *     │                 │ release: queued again, nothing counted
 *     └──── recover ────┘ crash: suspect, runs with suspects only; three crashes while alone: dead
 *
 * Jobs that were in flight together at a crash are suspects. They run again in groups with nothing else inside: a group that survives is
 * cleared at once, one that crashes is run in parts, and a job that is a group of its own is charged. `suspect` is how many may run
 * together at most (0: no suspect), `lease_alone` how many do (0: others may be inside). Batches that fail as a whole are taken apart
 * the same way.
 *
 * A claim raises the epoch; every later statement of that claim names it, so work by a worker that lost its lease changes
 * nothing.
 */
export interface HeldJob {
  readonly seq: number;
  readonly step: JobStep;
  readonly epoch: number;
  readonly attempts: number;
  /** UUIDv7, as callers know it. */
  readonly id: string;
  /** W3C trace context of the request that asked for it; null where that was not traced. */
  readonly trace: string | null;
}

/** A job about a memory. */
export interface Claim extends HeldJob {
  /** `reembed`: its text is embedded once more, by another model; nothing else about it is new. */
  readonly kind: JobKind;
  readonly memory: number;
  /** That the memory belongs to. */
  readonly document: number | null;
  /** Unix ms. */
  readonly createdAt: number;
  /** 0 for an interactive add, 1 for a bulk one. */
  readonly isBulk: 0 | 1;
}

/** A job that asks a language model something. */
export interface Question extends HeldJob {
  readonly kind: 'contradictions' | 'reflection';
  /** That is looked at for contradictions; null for a reflection. */
  readonly memory: number | null;
}

/** A job that reads a document. */
export interface DocumentClaim extends HeldJob {
  readonly document: number;
}

export const CRASH_BUDGET = 3;
/** The error code of a job that killed its workers. */
export const CRASH = 'crash';
/** Into how many parts a group is divided that crashed or failed as a whole: 64 → 8 → 1. */
const PARTS = 8;
/** A job that was alone at a crash waits before it may be there at the next one: 10 s, then 20 s. */
const CRASH_PAUSE_MS = 10_000;
/** No pause is longer than two minutes: a time further ahead was written before the clock was set back, and waiting for it could take for ever. */
export const IS_DUE = '(run_at <= :now OR run_at > :now + 120000)';
/** Likewise. A worker that lives writes its lease anew every second, by the clock as it is now. */
const HAS_LAPSED = '(lease_until <= :now OR lease_until > :now + 2 * :leaseMs)';
const UNFINISHED = `('queued', 'active', 'failed')`;
/** A job's id as the ledger keeps it, 16 bytes; a text that is no UUID is NULL, which is no job's. */
export const UUID = `unhex(?, '-')`;

export interface NewJob {
  readonly id: string;
  readonly memory?: number;
  readonly document?: number | null;
  readonly step: QueuedStep;
  /** Where the step and what it is about do not say it. */
  readonly kind?: JobKind;
  readonly bulk: boolean;
  /** W3C trace context. */
  readonly trace?: string | null | undefined;
  readonly now: number;
}

/** @returns the job's `seq` */
export function insertJob(store: Store, job: NewJob): number {
  const kind = job.kind ?? (job.memory === undefined ? 'document' : 'memory');
  const result = store
    .prepare(
      `INSERT INTO jobs (uuid, kind, memory, document, step, state, priority, run_at, created_at, updated_at, trace_context)
       VALUES (${UUID}, ?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?)`,
    )
    .run(
      ...[job.id, kind, job.memory ?? null, job.document ?? null, job.step],
      ...[job.bulk ? 1 : 0, job.now, job.now, job.now, job.trace ?? null],
    );
  return Number(result.lastInsertRowid);
}

/** Sends a memory's unfinished job back to `step`, whoever holds it. @returns its `seq`, or undefined if it has none */
export function restartJob(
  store: Store,
  memory: number,
  step: 'encode' | 'link',
  { now, trace = null }: Pick<NewJob, 'now' | 'trace'>,
): number | undefined {
  // Whoever embeds the text of before for another model, or asks about it, is not to write what came of it: the encode sees to both.
  if (step === 'encode') {
    store
      .prepare(`DELETE FROM jobs WHERE memory = ? AND kind IN ('reembed', 'contradictions') AND state IN ${UNFINISHED}`)
      .run(memory);
  }
  const job = store
    .prepare(`SELECT seq, step FROM jobs WHERE memory = ? AND kind = 'memory' AND state IN ${UNFINISHED}`)
    .get(memory) as { seq: number; step: JobStep } | undefined;
  // One that is still to be encoded will be linked by what it finds then, and keeps its attempts.
  if (job === undefined || (job.step === 'encode' && step === 'link')) return job?.seq;
  store
    .prepare(
      `UPDATE jobs SET step = ?, state = 'queued', attempts = 0, run_at = ?, lease_owner = NULL, lease_until = NULL,
         lease_epoch = lease_epoch + 1, dispatched_until = 0, updated_at = ?, ${noteEvents(['requeued'])},
         trace_context = coalesce(?, trace_context) WHERE seq = ?`,
    )
    .run(step, now, now, now, trace, job.seq);
  return job.seq;
}

export interface ClaimOptions {
  readonly step: QueuedStep;
  readonly limit: number;
  readonly owner: string;
  readonly leaseMs: number;
  readonly now: number;
  /** Bulk work that fell due later than this is left (Unix ms): see `bulkDueUntil`. All of it may be taken where it is left out. */
  readonly bulkUntil?: number | undefined;
}

/** So long at most bulk work waits for documents to be read. */
const BULK_HELD_MS = 30_000;
export const ALL_BULK = Number.MAX_SAFE_INTEGER;

/**
 * While documents of the tenant wait to be read or are read, bulk work waits for its vectors, half a minute at most, as it would take the
 * cores from the reading: a document's words are found once it is read and stored, and what it is encoded for adds only meaning. Vectors
 * that somebody else computes take none, and wait for nothing.
 * @param embedsHere whether vectors are computed on this machine
 * @returns Unix ms up to which bulk work has to be due to be claimed
 */
export function bulkDueUntil(store: Store, { embedsHere, now }: { embedsHere: boolean; now: number }): number {
  if (!embedsHere) return ALL_BULK;
  const isRead = store
    .prepare(`SELECT 1 FROM jobs INDEXED BY jobs_of_documents WHERE kind = 'document' AND state = 'active' LIMIT 1`)
    .get();
  return isRead !== undefined || hasDueJobAt(store, 'ingest', now) ? now - BULK_HELD_MS : ALL_BULK;
}

/** Takes jobs that are due, interactive before bulk, oldest first. Jobs that were in flight at a crash are left to `claimSuspect`. */
export function claimJobs(store: Store, options: ClaimOptions): Claim[] {
  return claim(store, options, 0, options.limit);
}

/** Takes a group of suspects, the largest first as most wait there. The caller runs nothing else meanwhile. */
export function claimSuspects(store: Store, options: ClaimOptions): Claim[] {
  const together = largestGroup(store, options);
  return together === 0 ? [] : claim(store, options, together, Math.min(together, options.limit));
}

/** How many suspects that are due may run together; 0 if there are none. */
function largestGroup(store: Store, { step, now }: Pick<ClaimOptions, 'step' | 'now'>): number {
  const row = store
    .prepare(
      `SELECT max(suspect) AS together FROM jobs INDEXED BY jobs_due
       WHERE step = :step AND suspect > 0 AND state IN ('queued', 'failed') AND ${IS_DUE}`,
    )
    .get({ step, now }) as { together: number | null };
  return row.together ?? 0;
}

/** By `seq`, which SQLite would rather look for among all rows of a step: 54 ms for 64 of a million, under the write lock. */
const CLAIM = `UPDATE jobs NOT INDEXED SET state = 'active', lease_owner = :owner, lease_until = :until, lease_epoch = lease_epoch + 1,
  lease_alone = 0, dispatched_until = 0, updated_at = :now`;
const CLAIMED =
  'seq, id, kind, memory, document, step, lease_epoch AS epoch, attempts, created_at AS createdAt, priority AS isBulk, trace_context AS trace';

/** Takes one document that is due, or one that was in flight when a worker died. */
export function claimDocument(
  store: Store,
  { alone, ...options }: Omit<ClaimOptions, 'limit' | 'step'> & { readonly alone: boolean },
): DocumentClaim | undefined {
  const one = { ...options, step: 'ingest', limit: 1 } as const;
  const [claimed] = alone ? claimSuspects(store, one) : claimJobs(store, one);
  return claimed as DocumentClaim | undefined;
}

/**
 * Takes of these jobs those that are still due at this step: what a queue carried may have been worked off or changed since, or belong to
 * a smaller group by now.
 */
export function claimThese(
  store: Store,
  {
    seqs,
    alone,
    ...options
  }: Omit<ClaimOptions, 'limit'> & { readonly seqs: readonly number[]; readonly alone: boolean },
): Claim[] {
  const rows = store
    .prepare(
      `${CLAIM}
       WHERE seq IN (SELECT value FROM json_each(:seqs)) AND step = :step AND ${alone ? 'suspect >= :together' : 'suspect = 0'}
         AND state IN ('queued', 'failed') AND ${IS_DUE}
       RETURNING ${CLAIMED}`,
    )
    .all({
      ...options,
      until: options.now + options.leaseMs,
      together: seqs.length,
      seqs: JSON.stringify(seqs),
    }) as Claim[];
  return noteAlone(store, rows, alone);
}

function claim(store: Store, options: ClaimOptions, suspect: number, limit: number): Claim[] {
  const { now, leaseMs, bulkUntil = ALL_BULK } = options;
  const rows = store
    .prepare(
      `${CLAIM}
       WHERE seq IN (
         SELECT seq FROM jobs INDEXED BY jobs_due
         WHERE step = :step AND suspect = :suspect AND (priority, run_at) <= (1, :bulkUntil)
           AND state IN ('queued', 'failed') AND ${IS_DUE}
         ORDER BY priority, run_at, seq LIMIT :limit)
       RETURNING ${CLAIMED}`,
    )
    .all({ ...options, bulkUntil, until: now + leaseMs, suspect, limit }) as Claim[];
  return noteAlone(store, rows, suspect > 0);
}

/** Writes down how many run together with nothing else inside, which is what a crash will mean. @returns them in order of arrival */
function noteAlone(store: Store, claims: readonly Claim[], alone: boolean): Claim[] {
  if (alone) {
    store
      .prepare('UPDATE jobs SET lease_alone = ? WHERE seq IN (SELECT value FROM json_each(?))')
      .run(claims.length, JSON.stringify(claims.map(({ seq }) => seq)));
  }
  return claims.toSorted((a, b) => a.seq - b.seq);
}

/** Suspects that cannot run alone just now are not due before `runAt`, and no queue knows them. */
export function postponeSuspects(store: Store, seqs: readonly number[], runAt: number): void {
  store
    .prepare(
      `UPDATE jobs SET run_at = max(run_at, ?), dispatched_until = 0
       WHERE seq IN (SELECT value FROM json_each(?)) AND suspect > 0 AND state IN ('queued', 'failed')`,
    )
    .run(runAt, JSON.stringify(seqs));
}

/** True if a suspect may run now. */
export function hasDueSuspect(store: Store, step: QueuedStep, now: number): boolean {
  return largestGroup(store, { step, now }) > 0;
}

/** True if a job has yet to run among suspects only. One that has failed so and waits for its next attempt does not count. */
export function hasSuspect(store: Store, step: QueuedStep): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM jobs INDEXED BY jobs_due
         WHERE step = ? AND suspect > 0 AND state IN ('queued', 'failed') AND state = 'queued' LIMIT 1`,
      )
      .get(step) !== undefined
  );
}

/** True while this claim still holds its job. Every commit of a step asks inside its transaction. */
export function holdsLease(store: Store, held: HeldJob): boolean {
  return (
    store
      .prepare(`SELECT 1 FROM jobs WHERE seq = ? AND lease_epoch = ? AND state = 'active'`)
      .get(held.seq, held.epoch) !== undefined
  );
}

export function renewLeases(store: Store, owner: string, until: number): void {
  store.prepare(`UPDATE jobs SET lease_until = ? WHERE state = 'active' AND lease_owner = ?`).run(until, owner);
}

/** Moves a job that the claim still holds to its next step and keeps the lease. */
export function advanceJob(store: Store, held: Claim, step: 'link', now: number): Claim {
  store
    .prepare(
      `UPDATE jobs SET step = ?, attempts = 0, suspect = 0, updated_at = ?, ${noteEvents([PAST_TENSE[held.step]])}
       WHERE seq = ? AND lease_epoch = ?`,
    )
    .run(step, now, now, held.seq, held.epoch);
  return { ...held, step, attempts: 0 };
}

export function finishJob(store: Store, held: HeldJob, now: number): void {
  store
    .prepare(
      `UPDATE jobs SET step = 'done', state = 'done', suspect = 0, lease_owner = NULL, lease_until = NULL, error = NULL,
         error_code = NULL, finished_at = ?, updated_at = ?, ${noteEvents([PAST_TENSE[held.step], 'done'])}
       WHERE seq = ? AND lease_epoch = ?`,
    )
    .run(now, now, now, held.seq, held.epoch);
}

/** The document is read and shown: its job waits for its chunks. Nobody claims this step; `settleDocument` ends it. */
export function awaitChunks(store: Store, held: DocumentClaim, now: number): void {
  store
    .prepare(
      `UPDATE jobs SET step = 'settle', state = 'queued', attempts = 0, suspect = 0, lease_owner = NULL, lease_until = NULL,
         error = NULL, error_code = NULL, updated_at = ?, ${noteEvents(['read'])} WHERE seq = ? AND lease_epoch = ?`,
    )
    .run(now, now, held.seq, held.epoch);
}

export function hasUnfinishedChunks(store: Store, document: number): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM jobs INDEXED BY jobs_by_document
         WHERE document = ? AND document > 0 AND state IN ${UNFINISHED} AND kind = 'memory' LIMIT 1`,
      )
      .get(document) !== undefined
  );
}

/** Ends the job of a document whose chunks have all ended. @returns whether they have, and it had waited for them */
export function settleDocumentJob(store: Store, document: number, now: number): boolean {
  if (hasUnfinishedChunks(store, document)) return false;
  return (
    store
      .prepare(
        `UPDATE jobs SET step = 'done', state = 'done', finished_at = ?, updated_at = ?, ${noteEvents(['settled', 'done'])}
         WHERE document = ? AND document > 0 AND kind = 'document' AND step = 'settle' AND state = 'queued'`,
      )
      .run(now, now, now, document).changes > 0
  );
}

/** Documents that wait for their chunks. */
export function listUnsettled(store: Store, limit: number): number[] {
  const rows = store
    .prepare(
      `SELECT document FROM jobs INDEXED BY jobs_due WHERE step = 'settle' AND suspect = 0 AND state IN ('queued', 'failed') LIMIT ?`,
    )
    .all(limit) as { document: number }[];
  return rows.map(({ document }) => document);
}

export interface Failure {
  readonly code: string;
  readonly message: string;
  /** When to try again; null gives up. */
  readonly retryAt: number | null;
}

/** @returns the state the job is in now, or undefined if the claim no longer held it */
export function failJob(store: Store, held: HeldJob, failure: Failure, now: number): 'failed' | 'dead' | undefined {
  const state = failure.retryAt === null ? 'dead' : 'failed';
  const result = store
    .prepare(
      `UPDATE jobs SET state = ?, attempts = attempts + 1, run_at = coalesce(?, run_at), error_code = ?, error = ?, lease_owner = NULL,
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
      held.seq,
      held.epoch,
    );
  return result.changes === 0 ? undefined : state;
}

/** Hands a job back untouched, to run at `runAt`: a stop, or a provider that is down. Nothing is counted against it. */
export function releaseJob(store: Store, held: HeldJob, runAt: number, now: number): void {
  requeue(store, held, { suspect: null, runAt, now });
}

/** Hands back the jobs of a batch that failed as a whole: they run in smaller groups next time, until it is known whose fault it was. */
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
      `UPDATE jobs SET state = 'queued', suspect = coalesce(?, suspect), run_at = ?, lease_owner = NULL, lease_until = NULL,
         updated_at = ?
       WHERE seq = ? AND lease_epoch = ? AND state = 'active'`,
    )
    .run(suspect, runAt, now, held.seq, held.epoch);
}

export interface LeaseTimes {
  readonly now: number;
  /** How long leases are. */
  readonly leaseMs: number;
}

/** Whether `recoverLeases` would find anything: a look that takes no lock. */
export function hasLapsedLease(store: Store, times: LeaseTimes): boolean {
  return (
    store
      .prepare(`SELECT 1 FROM jobs INDEXED BY jobs_leased WHERE state = 'active' AND ${HAS_LAPSED} LIMIT 1`)
      .get(times) !== undefined
  );
}

export interface Recovery {
  readonly requeued: number;
  readonly dead: number;
}

/**
 * Takes back the jobs of workers that fell silent: those whose lease ran out, or all that `deadOwnersOnly` does not spare. Jobs
 * that were in flight together become suspects; one that was alone is charged with the crash.
 */
export function recoverLeases(
  store: Store,
  { now, leaseMs, everyOwner }: LeaseTimes & { readonly everyOwner: boolean },
): Recovery {
  const condition = everyOwner ? `state = 'active'` : `state = 'active' AND ${HAS_LAPSED}`;
  const wasAlone = '(lease_alone = 1)';
  const charge = `crashes = crashes + ${wasAlone}`;
  const together = `CASE lease_alone WHEN 0 THEN ${JOB_IDS_MOST} ELSE (lease_alone + ${PARTS - 1}) / ${PARTS} END`;
  const common = `suspect = ${together}, lease_owner = NULL, lease_until = NULL, lease_epoch = lease_epoch + 1, updated_at = :now`;
  const dead = store
    .prepare(
      `UPDATE jobs SET ${charge}, ${common}, state = 'dead', finished_at = :now, error_code = '${CRASH}',
         error = 'its worker died ${CRASH_BUDGET} times while it ran alone', ${noteEvents(['crashed', 'dead'], ':now')}
       WHERE ${condition} AND crashes + ${wasAlone} >= ${CRASH_BUDGET} RETURNING kind, memory, document, error_code AS code, error AS message`,
    )
    .all({ now, leaseMs }) as DeadJob[];
  const requeued = store
    .prepare(
      `UPDATE jobs SET ${charge}, ${common}, state = 'queued', run_at = :now + ${wasAlone} * (crashes + 1) * ${CRASH_PAUSE_MS},
         ${noteEvents(['crashed'], ':now')} WHERE ${condition}`,
    )
    .run({ now, leaseMs }).changes;
  for (const { kind, memory, document, code, message } of dead) {
    if (kind === 'memory') markFailed(store, memory);
    else if (document !== null) failDocument(store, document, { code, message, now });
  }
  return { requeued, dead: dead.length };
}

interface DeadJob {
  readonly kind: JobKind;
  readonly memory: number | null;
  readonly document: number | null;
  readonly code: string;
  readonly message: string;
}

/** A memory whose job has given up is `failed`: found by its words, without a vector. */
export function markFailed(store: Store, memory: number | null): void {
  if (memory === null) return;
  store
    .prepare(
      `UPDATE memory_dynamics SET state = CASE WHEN EXISTS (SELECT 1 FROM vectors WHERE memory = :memory) THEN 'ready' ELSE 'failed' END
       WHERE seq = :memory`,
    )
    .run({ memory });
}

/** Ends every unfinished job of a memory and forgets which memory it was. @returns how many rows spoke of it */
export function detachJobs(store: Store, memory: number, now: number): number {
  store
    .prepare(
      `UPDATE jobs SET state = 'cancelled', finished_at = ?, lease_owner = NULL, lease_until = NULL, lease_epoch = lease_epoch + 1,
         updated_at = ?, ${noteEvents(['cancelled'])} WHERE memory = ? AND state IN ${UNFINISHED}`,
    )
    .run(now, now, now, memory);
  return store.prepare('UPDATE jobs SET memory = NULL WHERE memory = ?').run(memory).changes;
}

/** Ends the unfinished jobs that read a document. @returns how many rows spoke of it */
export function cancelDocumentJobs(store: Store, document: number, now: number): number {
  return store
    .prepare(
      `UPDATE jobs SET state = 'cancelled', finished_at = ?, lease_owner = NULL, lease_until = NULL, lease_epoch = lease_epoch + 1,
         updated_at = ?, ${noteEvents(['cancelled'])}
       WHERE document = ? AND document > 0 AND kind = 'document' AND state IN ${UNFINISHED}`,
    )
    .run(now, now, now, document).changes;
}

/** @throws EngineError `not_found`; `conflict` for a job that is done or still has attempts */
export function retryJob(store: Store, id: string, now: number): Job {
  const job = getJob(store, id);
  if (job.kind === 'document') return retryDocumentJob(store, job, now);
  if (job.step === 'reason') return retryQuestion(store, job, now);
  if (!['failed', 'dead', 'cancelled'].includes(job.state) || job.memoryId === null) {
    throw new EngineError(
      'conflict',
      `a job that is ${job.state}${job.memoryId === null ? ' and lost its memory' : ''} cannot be retried`,
    );
  }
  const memory = (store.prepare(`SELECT memory FROM jobs WHERE uuid = ${UUID}`).get(id) as { memory: number }).memory;
  const other = store
    .prepare(`SELECT 1 FROM jobs WHERE memory = ? AND id <> ? AND kind <> 'contradictions' AND state IN ${UNFINISHED}`)
    .get(memory, job.id);
  if (other !== undefined) throw new EngineError('conflict', 'a newer job works on this memory already');
  store
    .prepare(
      `UPDATE jobs SET kind = 'memory', state = 'queued', attempts = 0, crashes = 0, suspect = 0, run_at = ?, finished_at = NULL,
         error = NULL, error_code = NULL, lease_epoch = lease_epoch + 1, dispatched_until = 0, updated_at = ?, ${noteEvents(['retried'])}
       WHERE uuid = ${UUID}`,
    )
    .run(now, now, now, id);
  store.prepare(`UPDATE memory_dynamics SET state = 'queued' WHERE seq = ?`).run(memory);
  return getJob(store, id);
}

function retryQuestion(store: Store, job: Job, now: number): Job {
  const lostMemory = job.kind === 'contradictions' && job.memoryId === null;
  if (!['failed', 'dead', 'cancelled'].includes(job.state) || lostMemory) {
    throw new EngineError(
      'conflict',
      `a job that is ${job.state}${lostMemory ? ' and lost its memory' : ''} cannot be retried`,
    );
  }
  requeueAnew(store, job.id, now);
  return getJob(store, job.id);
}

function requeueAnew(store: Store, id: string, now: number): void {
  store
    .prepare(
      `UPDATE jobs SET state = 'queued', attempts = 0, crashes = 0, suspect = 0, run_at = ?, finished_at = NULL, error = NULL,
         error_code = NULL, lease_epoch = lease_epoch + 1, dispatched_until = 0, updated_at = ?, ${noteEvents(['retried'])}
       WHERE uuid = ${UUID}`,
    )
    .run(now, now, now, id);
}

function retryDocumentJob(store: Store, job: Job, now: number): Job {
  const row = store
    .prepare(
      `SELECT o.document_no AS no, o.next_no AS next, g.source = 'upload' AND g.upload = '' AS isGone FROM jobs j
       JOIN documents o ON o.document_no = j.document LEFT JOIN document_generations g ON g.generation_no = o.next_no WHERE j.uuid = ${UUID}`,
    )
    .get(job.id) as { no: number; next: number | null; isGone: 0 | 1 | null } | undefined;
  if (!['failed', 'dead'].includes(job.state) || row === undefined || row.next === null) {
    throw new EngineError(
      'conflict',
      `a document's job that is ${job.state} cannot be retried${job.state === 'cancelled' ? ': hand the document in again' : ''}`,
    );
  }
  if (row.isGone) throw new EngineError('conflict', 'its file was removed: hand the document in again');
  requeueAnew(store, job.id, now);
  setDocumentState(store, row.no, { state: 'queued', now });
  store.prepare('UPDATE document_generations SET failed_at = NULL WHERE generation_no = ?').run(row.next);
  return getJob(store, job.id);
}

/** @throws EngineError `not_found`; `conflict` for a job that has ended */
export function cancelJob(store: Store, id: string, now: number): Job {
  const job = getJob(store, id);
  if (!['queued', 'active', 'failed'].includes(job.state)) {
    throw new EngineError('conflict', `a job that is ${job.state} cannot be cancelled`);
  }
  const row = store
    .prepare(
      `UPDATE jobs SET state = 'cancelled', finished_at = ?, lease_owner = NULL, lease_until = NULL, lease_epoch = lease_epoch + 1,
         updated_at = ?, ${noteEvents(['cancelled'])} WHERE uuid = ${UUID} RETURNING memory`,
    )
    .get(now, now, now, id) as { memory: number | null };
  if (job.step !== 'reason') markFailed(store, row.memory);
  return getJob(store, id);
}

/** @throws EngineError `not_found`; `conflict` for a job that is neither dead nor cancelled */
export function discardJob(store: Store, id: string): void {
  const job = getJob(store, id);
  if (job.state !== 'dead' && job.state !== 'cancelled') {
    throw new EngineError(
      'conflict',
      `a job that is ${job.state} cannot be discarded; only dead and cancelled ones can`,
    );
  }
  store.prepare(`DELETE FROM jobs WHERE uuid = ${UUID}`).run(id);
}

export function purgeJobs(store: Store, before: number, limit: number): number {
  return store
    .prepare(
      `DELETE FROM jobs WHERE seq IN
         (SELECT seq FROM jobs INDEXED BY jobs_by_end
          WHERE state IN ('done', 'cancelled') AND finished_at > 0 AND finished_at < ? LIMIT ?)`,
    )
    .run(before, limit).changes;
}

/** Whether a job of any step may run now, suspects included. */
export function hasDueJob(store: Store, now: number): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM jobs INDEXED BY jobs_due
         WHERE state IN ('queued', 'failed') AND step <> 'settle' AND ${IS_DUE} LIMIT 1`,
      )
      .get({ now }) !== undefined
  );
}

/** Whether a job of this step may run now. */
export function hasDueJobAt(store: Store, step: QueuedStep, now: number): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM jobs INDEXED BY jobs_due WHERE step = :step AND state IN ('queued', 'failed') AND ${IS_DUE} LIMIT 1`,
      )
      .get({ step, now }) !== undefined
  );
}

/** Whether a memory was or will be looked at for contradictions by a job that came later than `after`. */
export function hasLaterCheck(store: Store, memory: number, after: number): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM jobs WHERE memory = ? AND kind = 'contradictions' AND seq > ? AND state NOT IN ('dead', 'cancelled')`,
      )
      .get(memory, after) !== undefined
  );
}

/** Whether a job between two numbers of the ledger has not ended. */
export function hasUnfinishedBetween(store: Store, first: number, last: number): boolean {
  return (
    store
      .prepare(`SELECT 1 FROM jobs WHERE seq BETWEEN ? AND ? AND state IN ${UNFINISHED} LIMIT 1`)
      .get(first, last) !== undefined
  );
}

export function countActive(store: Store): number {
  return store
    .prepare(`SELECT count(*) FROM jobs INDEXED BY jobs_leased WHERE state = 'active'`)
    .pluck()
    .get() as number;
}

export function countWaiting(store: Store): number {
  return (store.prepare(`SELECT count(*) AS n FROM jobs WHERE state IN ('queued', 'failed')`).get() as { n: number }).n;
}

export function countJobs(store: Store): JobCounts {
  return summariseJobs(store).counts;
}

/** Counted on the three partial indexes, which together hold every job once. */
export function summariseJobs(store: Store): JobSummary {
  const rows = store
    .prepare(
      `SELECT state, step, count(*) AS n, min(seq) AS first FROM jobs INDEXED BY jobs_due
         WHERE state IN ('queued', 'failed') GROUP BY step, state
       UNION ALL SELECT 'active', step, count(*), min(seq) FROM jobs INDEXED BY jobs_leased WHERE state = 'active' GROUP BY step
       UNION ALL SELECT state, NULL, count(*), NULL FROM jobs INDEXED BY jobs_by_end WHERE finished_at > 0 GROUP BY state`,
    )
    .all() as { state: JobState; step: JobStep | null; n: number; first: number | null }[];
  const counts = Object.fromEntries(JOB_STATES.map((state) => [state, 0])) as Record<JobState, number>;
  for (const { state, n } of rows) counts[state] += n;
  const backlog = JOB_STEPS.flatMap((step): StepBacklog[] => {
    const own = rows.filter((row) => row.step === step);
    if (own.length === 0) return [];
    const countOf = (state: JobState) => own.find((row) => row.state === state)?.n ?? 0;
    const first = Math.min(...own.map((row) => row.first!));
    const oldestAt = store.prepare('SELECT created_at FROM jobs WHERE seq = ?').pluck().get(first) as number;
    return [{ step, queued: countOf('queued'), active: countOf('active'), failed: countOf('failed'), oldestAt }];
  });
  return { counts, backlog };
}

/** When the oldest job that has not ended was made; null if there is none. */
export function oldestWaitingAt(store: Store): number | null {
  const row = store
    .prepare(
      `SELECT created_at AS at FROM jobs WHERE seq = (SELECT min(seq) FROM (
         SELECT min(seq) AS seq FROM jobs INDEXED BY jobs_due WHERE state IN ('queued', 'failed')
         UNION ALL SELECT min(seq) FROM jobs INDEXED BY jobs_leased WHERE state = 'active'))`,
    )
    .get() as { at: number } | undefined;
  return row?.at ?? null;
}

interface JobRow {
  readonly seq: number;
  readonly id: string;
  readonly kind: JobKind;
  readonly memory_id: string | null;
  readonly document_id: string | null;
  readonly step: JobStep;
  readonly state: JobState;
  readonly priority: number;
  readonly attempts: number;
  readonly crashes: number;
  readonly run_at: number;
  readonly error_code: string | null;
  readonly error: string | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly finished_at: number | null;
  readonly timeline: string;
}

const JOB = `SELECT j.seq, j.id, j.kind, m.id AS memory_id, o.id AS document_id, j.step, j.state, j.priority, j.attempts, j.crashes, j.run_at, j.error_code,
  j.error, j.created_at, j.updated_at, j.finished_at, j.timeline
  FROM jobs j LEFT JOIN memories m ON m.seq = j.memory LEFT JOIN documents o ON o.document_no = j.document`;

/** @throws EngineError `not_found` */
export function getJob(store: Store, id: string): Job {
  const row = store.prepare(`${JOB} WHERE j.uuid = ${UUID}`).get(id) as JobRow | undefined;
  // Of the spellings of a UUID only ours is a name.
  if (row?.id !== id) throw new EngineError('not_found', 'no job with this id');
  return toJob(row);
}

/** The unfinished job that reads a document, or waits for its chunks. */
export function findOpenDocumentJob(store: Store, document: number): { id: string; seq: number } | undefined {
  return store
    .prepare(
      `SELECT id, seq FROM jobs WHERE document = ? AND document > 0 AND kind = 'document' AND state IN ${UNFINISHED} LIMIT 1`,
    )
    .get(document) as { id: string; seq: number } | undefined;
}

/** The number of the document that a job is about; null for none. */
export function documentOfJob(store: Store, id: string): number | null {
  const row = store.prepare(`SELECT document FROM jobs WHERE uuid = ${UUID}`).get(id) as
    { document: number | null } | undefined;
  return row?.document ?? null;
}

/** Newest first. */
export function listJobs(
  store: Store,
  {
    state,
    kind,
    limit,
    offset,
  }: { state?: JobState | undefined; kind?: JobKind | undefined; limit: number; offset: number },
): Job[] {
  // The kind is written out, so that the index of documents' jobs can be used.
  const ofKind = kind === undefined ? '' : `AND j.kind = '${kind}'`;
  const ofState = state === undefined ? '' : 'AND j.state = ?';
  const rows = store
    .prepare(`${JOB} WHERE true ${ofKind} ${ofState} ORDER BY j.seq DESC LIMIT ? OFFSET ?`)
    .all(...(state === undefined ? [] : [state]), limit, offset);
  return (rows as JobRow[]).map(toJob);
}

/** Jobs of all other kinds have an index that holds no others. */
const INDEX_OF_KIND = {
  document: 'jobs_of_documents',
  reembed: 'jobs_of_reembed',
  contradictions: 'jobs_of_contradictions',
  reflection: 'jobs_of_reflections',
} as const satisfies Record<Exclude<JobKind, 'memory'>, string>;

/** @param counts as `countJobs` counts them */
export function countJobsOfKind(store: Store, counts: JobCounts, kind: JobKind, state?: JobState): number {
  const ofState = state === undefined ? '' : 'AND state = ?';
  const count = (other: keyof typeof INDEX_OF_KIND) =>
    store
      .prepare(`SELECT count(*) FROM jobs INDEXED BY ${INDEX_OF_KIND[other]} WHERE kind = '${other}' ${ofState}`)
      .pluck()
      .get(...(state === undefined ? [] : [state])) as number;
  if (kind !== 'memory') return count(kind);
  const all = state === undefined ? Object.values(counts).reduce((sum, n) => sum + n, 0) : counts[state];
  const others = Object.keys(INDEX_OF_KIND) as (keyof typeof INDEX_OF_KIND)[];
  return others.reduce((left, other) => left - count(other), all);
}

function toJob(row: JobRow): Job {
  return {
    id: row.id,
    seq: row.seq,
    kind: row.kind,
    memoryId: row.memory_id,
    documentId: row.document_id,
    step: row.step,
    state: row.state,
    priority: row.priority,
    attempts: row.attempts,
    crashes: row.crashes,
    runAt: row.run_at,
    error: row.error_code === null ? null : { code: row.error_code, message: row.error ?? '' },
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    finishedAt: row.finished_at,
    timeline: readEvents(row.timeline, row.created_at),
  };
}

const PAST_TENSE: Readonly<Record<JobStep, JobEvent>> = {
  ingest: 'read',
  settle: 'settled',
  encode: 'encoded',
  link: 'linked',
  reason: 'reasoned',
  done: 'done',
};
