import { EngineError } from '../errors.ts';
import type { Job, JobCounts, JobState, JobStep } from '../types.ts';
import { JOB_STATES } from '../types.ts';
import type { Store } from './open-store.ts';

/**
 * The ledger: the one place that knows what work is owed. Redis, worker threads and timers only carry hints to it.
 *
 *   queued ──claim──► active ──advance──► (next step) ──finish──► done
 *     ▲                 │ fail: failed, waits for run_at; after the last attempt: dead
 *     │                 │ release: queued again, nothing counted
 *     └──── recover ────┘ crash: suspect, runs alone next time; three crashes while alone: dead
 *
 * A claim raises the epoch; every later statement of that claim names it, so work by a worker that lost its lease changes
 * nothing.
 */
export interface Claim {
  readonly seq: number;
  readonly memory: number;
  readonly step: JobStep;
  readonly epoch: number;
  readonly attempts: number;
}

export const CRASH_BUDGET = 3;
/** A job that was alone at a crash waits before it may be there at the next one: 10 s, then 20 s. */
const CRASH_PAUSE_MS = 10_000;
/**
 * No pause is longer than two minutes and no lease than ten: a time further ahead was written before the clock was set back, and
 * waiting for it could take for ever.
 */
export const IS_DUE = '(run_at <= :now OR run_at > :now + 120000)';
const HAS_LAPSED = '(lease_until <= :now OR lease_until > :now + 1200000)';
const UNFINISHED = `('queued', 'active', 'failed')`;

export interface NewJob {
  readonly id: string;
  readonly memory: number;
  readonly step: Exclude<JobStep, 'done'>;
  readonly bulk: boolean;
  readonly now: number;
}

/** @returns the job's `seq` */
export function insertJob(store: Store, job: NewJob): number {
  const result = store
    .prepare(
      `INSERT INTO jobs (id, kind, memory, step, state, priority, run_at, created_at, updated_at, timeline)
       VALUES (?, 'memory', ?, ?, 'queued', ?, ?, ?, ?, ?)`,
    )
    .run(job.id, job.memory, job.step, job.bulk ? 1 : 0, job.now, job.now, job.now, `["queued",${job.now}]`);
  return Number(result.lastInsertRowid);
}

/** Sends a memory's unfinished job back to `step`, whoever holds it. @returns its `seq`, or undefined if it has none */
export function restartJob(store: Store, memory: number, step: 'encode' | 'link', now: number): number | undefined {
  const job = store.prepare(`SELECT seq, step FROM jobs WHERE memory = ? AND state IN ${UNFINISHED}`).get(memory) as
    { seq: number; step: JobStep } | undefined;
  // One that is still to be encoded will be linked by what it finds then, and keeps its attempts.
  if (job === undefined || (job.step === 'encode' && step === 'link')) return job?.seq;
  store
    .prepare(
      `UPDATE jobs SET step = ?, state = 'queued', attempts = 0, run_at = ?, lease_owner = NULL, lease_until = NULL,
         lease_epoch = lease_epoch + 1, dispatched_until = 0, updated_at = ?, timeline = timeline || ? WHERE seq = ?`,
    )
    .run(step, now, now, `,["requeued",${now}]`, job.seq);
  return job.seq;
}

export interface ClaimOptions {
  readonly step: 'encode' | 'link';
  readonly limit: number;
  readonly owner: string;
  readonly leaseMs: number;
  readonly now: number;
}

/** Takes jobs that are due, interactive before bulk, oldest first. Jobs that were in flight at a crash are left to `claimSuspect`. */
export function claimJobs(store: Store, options: ClaimOptions): Claim[] {
  return claim(store, options, 0, options.limit);
}

/** Takes one job that was in flight when a worker died. The caller runs nothing else meanwhile. */
export function claimSuspect(store: Store, options: Omit<ClaimOptions, 'limit'>): Claim | undefined {
  return claim(store, options, 1, 1)[0];
}

/** By `seq`, which SQLite would rather look for among all rows of a step: 54 ms for 64 of a million, under the write lock. */
const CLAIM = `UPDATE jobs NOT INDEXED SET state = 'active', lease_owner = :owner, lease_until = :until, lease_epoch = lease_epoch + 1,
  lease_alone = :suspect, dispatched_until = 0, updated_at = :now`;
const CLAIMED = 'seq, memory, step, lease_epoch AS epoch, attempts';

/** Takes of these jobs those that are still due at this step: what a queue carried may have been worked off or changed since. */
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
       WHERE seq IN (SELECT value FROM json_each(:seqs)) AND step = :step AND suspect = :suspect
         AND state IN ('queued', 'failed') AND ${IS_DUE}
       RETURNING ${CLAIMED}`,
    )
    .all({ ...options, until: options.now + options.leaseMs, suspect: alone ? 1 : 0, seqs: JSON.stringify(seqs) });
  return (rows as Claim[]).sort((a, b) => a.seq - b.seq);
}

function claim(store: Store, options: Omit<ClaimOptions, 'limit'>, suspect: 0 | 1, limit: number): Claim[] {
  const rows = store
    .prepare(
      `${CLAIM}
       WHERE seq IN (
         SELECT seq FROM jobs INDEXED BY jobs_due
         WHERE step = :step AND suspect = :suspect AND state IN ('queued', 'failed') AND ${IS_DUE}
         ORDER BY priority, run_at, seq LIMIT :limit)
       RETURNING ${CLAIMED}`,
    )
    .all({ ...options, until: options.now + options.leaseMs, suspect, limit });
  return (rows as Claim[]).sort((a, b) => a.seq - b.seq);
}

/** True if a job has yet to run alone. One that has failed so and waits for its next attempt does not count. */
export function hasSuspect(store: Store, step: 'encode' | 'link'): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM jobs INDEXED BY jobs_due
         WHERE step = ? AND suspect = 1 AND state IN ('queued', 'failed') AND state = 'queued' LIMIT 1`,
      )
      .get(step) !== undefined
  );
}

/** True while this claim still holds its job. Every commit of a step asks inside its transaction. */
export function holdsLease(store: Store, held: Claim): boolean {
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
      `UPDATE jobs SET step = ?, attempts = 0, suspect = 0, updated_at = ?, timeline = timeline || ? WHERE seq = ? AND lease_epoch = ?`,
    )
    .run(step, now, `,["${pastTense(held.step)}",${now}]`, held.seq, held.epoch);
  return { ...held, step, attempts: 0 };
}

export function finishJob(store: Store, held: Claim, now: number): void {
  store
    .prepare(
      `UPDATE jobs SET step = 'done', state = 'done', suspect = 0, lease_owner = NULL, lease_until = NULL, error = NULL,
         error_code = NULL, finished_at = ?, updated_at = ?, timeline = timeline || ? WHERE seq = ? AND lease_epoch = ?`,
    )
    .run(now, now, `,["${pastTense(held.step)}",${now}],["done",${now}]`, held.seq, held.epoch);
}

export interface Failure {
  readonly code: string;
  readonly message: string;
  /** When to try again; null gives up. */
  readonly retryAt: number | null;
}

/** @returns the state the job is in now, or undefined if the claim no longer held it */
export function failJob(store: Store, held: Claim, failure: Failure, now: number): 'failed' | 'dead' | undefined {
  const state = failure.retryAt === null ? 'dead' : 'failed';
  const result = store
    .prepare(
      `UPDATE jobs SET state = ?, attempts = attempts + 1, run_at = coalesce(?, run_at), error_code = ?, error = ?, lease_owner = NULL,
         lease_until = NULL, finished_at = ?, updated_at = ?, timeline = timeline || ?
       WHERE seq = ? AND lease_epoch = ? AND state = 'active'`,
    )
    .run(
      state,
      failure.retryAt,
      failure.code,
      failure.message.slice(0, 1_000),
      state === 'dead' ? now : null,
      now,
      `,["${state}",${now}]`,
      held.seq,
      held.epoch,
    );
  return result.changes === 0 ? undefined : state;
}

/** Hands a job back untouched, to run at `runAt`: a stop, or a provider that is down. Nothing is counted against it. */
export function releaseJob(store: Store, held: Claim, runAt: number, now: number): void {
  requeue(store, held, { suspect: 0, runAt, now });
}

/** Hands back a job of a batch that failed as a whole: it runs alone next time, which tells whose fault it was. */
export function isolateJob(store: Store, held: Claim, now: number): void {
  requeue(store, held, { suspect: 1, runAt: now, now });
}

function requeue(
  store: Store,
  held: Claim,
  { suspect, runAt, now }: { suspect: 0 | 1; runAt: number; now: number },
): void {
  store
    .prepare(
      `UPDATE jobs SET state = 'queued', suspect = max(suspect, ?), run_at = ?, lease_owner = NULL, lease_until = NULL,
         updated_at = ?
       WHERE seq = ? AND lease_epoch = ? AND state = 'active'`,
    )
    .run(suspect, runAt, now, held.seq, held.epoch);
}

export interface Recovery {
  readonly requeued: number;
  readonly dead: number;
}

/**
 * Takes back the jobs of workers that fell silent: those whose lease ran out, or all that `deadOwnersOnly` does not spare. Jobs
 * that were in flight together become suspects and run alone; one that was alone is charged with the crash.
 */
export function recoverLeases(store: Store, { now, everyOwner }: { now: number; everyOwner: boolean }): Recovery {
  const condition = everyOwner ? `state = 'active'` : `state = 'active' AND ${HAS_LAPSED}`;
  const charge = `crashes = crashes + lease_alone`;
  const common = `suspect = 1, lease_owner = NULL, lease_until = NULL, lease_epoch = lease_epoch + 1, updated_at = :now`;
  const dead = store
    .prepare(
      `UPDATE jobs SET ${charge}, ${common}, state = 'dead', finished_at = :now, error_code = 'crash',
         error = 'its worker died ${CRASH_BUDGET} times while it ran alone', timeline = timeline || :deadEvent
       WHERE ${condition} AND crashes + lease_alone >= ${CRASH_BUDGET} RETURNING memory`,
    )
    .all({ now, deadEvent: `,["crashed",${now}],["dead",${now}]` }) as { memory: number | null }[];
  const requeued = store
    .prepare(
      `UPDATE jobs SET ${charge}, ${common}, state = 'queued', run_at = :now + lease_alone * (crashes + 1) * ${CRASH_PAUSE_MS},
         timeline = timeline || :event WHERE ${condition}`,
    )
    .run({ now, event: `,["crashed",${now}]` }).changes;
  for (const { memory } of dead) markFailed(store, memory);
  return { requeued, dead: dead.length };
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
         updated_at = ?, timeline = timeline || ? WHERE memory = ? AND state IN ${UNFINISHED}`,
    )
    .run(now, now, `,["cancelled",${now}]`, memory);
  return store.prepare('UPDATE jobs SET memory = NULL WHERE memory = ?').run(memory).changes;
}

/** @throws EngineError `not_found`; `conflict` for a job that is done or still has attempts */
export function retryJob(store: Store, id: string, now: number): Job {
  const job = getJob(store, id);
  if (!['failed', 'dead', 'cancelled'].includes(job.state) || job.memoryId === null) {
    throw new EngineError(
      'conflict',
      `a job that is ${job.state}${job.memoryId === null ? ' and lost its memory' : ''} cannot be retried`,
    );
  }
  const memory = (store.prepare('SELECT memory FROM jobs WHERE id = ?').get(id) as { memory: number }).memory;
  const other = store
    .prepare(`SELECT 1 FROM jobs WHERE memory = ? AND id <> ? AND state IN ${UNFINISHED}`)
    .get(memory, id);
  if (other !== undefined) throw new EngineError('conflict', 'a newer job works on this memory already');
  store
    .prepare(
      `UPDATE jobs SET state = 'queued', attempts = 0, crashes = 0, suspect = 0, run_at = ?, finished_at = NULL, error = NULL,
         error_code = NULL, lease_epoch = lease_epoch + 1, dispatched_until = 0, updated_at = ?, timeline = timeline || ? WHERE id = ?`,
    )
    .run(now, now, `,["retried",${now}]`, id);
  store.prepare(`UPDATE memory_dynamics SET state = 'queued' WHERE seq = ?`).run(memory);
  return getJob(store, id);
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
         updated_at = ?, timeline = timeline || ? WHERE id = ? RETURNING memory`,
    )
    .get(now, now, `,["cancelled",${now}]`, id) as { memory: number | null };
  markFailed(store, row.memory);
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
  store.prepare('DELETE FROM jobs WHERE id = ?').run(id);
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
      .prepare(`SELECT 1 FROM jobs INDEXED BY jobs_due WHERE state IN ('queued', 'failed') AND ${IS_DUE} LIMIT 1`)
      .get({ now }) !== undefined
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

export function countWaiting(store: Store): number {
  return (store.prepare(`SELECT count(*) AS n FROM jobs WHERE state IN ('queued', 'failed')`).get() as { n: number }).n;
}

/** Counted on the three partial indexes, which together hold every job once. */
export function countJobs(store: Store): JobCounts {
  const rows = store
    .prepare(
      `SELECT state, count(*) AS n FROM jobs INDEXED BY jobs_due WHERE state IN ('queued', 'failed') GROUP BY state
       UNION ALL SELECT 'active', count(*) FROM jobs INDEXED BY jobs_leased WHERE state = 'active'
       UNION ALL SELECT state, count(*) FROM jobs INDEXED BY jobs_by_end WHERE finished_at > 0 GROUP BY state`,
    )
    .all() as { state: JobState; n: number }[];
  const counts = Object.fromEntries(JOB_STATES.map((state) => [state, 0])) as Record<JobState, number>;
  for (const row of rows) counts[row.state] += row.n;
  return counts;
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
  readonly memory_id: string | null;
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

const JOB = `SELECT j.seq, j.id, m.id AS memory_id, j.step, j.state, j.priority, j.attempts, j.crashes, j.run_at, j.error_code,
  j.error, j.created_at, j.updated_at, j.finished_at, j.timeline FROM jobs j LEFT JOIN memories m ON m.seq = j.memory`;

/** @throws EngineError `not_found` */
export function getJob(store: Store, id: string): Job {
  const row = store.prepare(`${JOB} WHERE j.id = ?`).get(id) as JobRow | undefined;
  if (row === undefined) throw new EngineError('not_found', 'no job with this id');
  return toJob(row);
}

/** Newest first. */
export function listJobs(
  store: Store,
  { state, limit, offset }: { state?: JobState | undefined; limit: number; offset: number },
): Job[] {
  const rows =
    state === undefined
      ? store.prepare(`${JOB} ORDER BY j.seq DESC LIMIT ? OFFSET ?`).all(limit, offset)
      : store.prepare(`${JOB} WHERE j.state = ? ORDER BY j.seq DESC LIMIT ? OFFSET ?`).all(state, limit, offset);
  return (rows as JobRow[]).map(toJob);
}

function toJob(row: JobRow): Job {
  return {
    id: row.id,
    seq: row.seq,
    kind: 'memory',
    memoryId: row.memory_id,
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
    timeline: (JSON.parse(`[${row.timeline}]`) as [string, number][]).map(([event, at]) => ({ event, at })),
  };
}

function pastTense(step: JobStep): string {
  return step === 'encode' ? 'encoded' : 'linked';
}
