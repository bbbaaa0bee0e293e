import type { QueuedStep } from '../jobs.ts';
import { IS_DUE, type ClaimAt, type DocumentClaim, type HeldJob } from './jobs.ts';
import type { Store } from './open-store.ts';

/** Selection of the jobs that a claim takes, with the owner and length of their leases. */
export interface ClaimOptions<Step extends QueuedStep = QueuedStep> {
  readonly step: Step;
  /** Most jobs that are taken. */
  readonly limit: number;
  /** Name of the worker that takes the leases. */
  readonly owner: string;
  /** Length of the leases, ms. */
  readonly leaseMs: number;
  readonly now: number;
  /**
   * Latest due time of bulk work that may be taken, Unix ms, included: see `bulkDueUntil`. By default all due bulk work
   * may be taken.
   */
  readonly bulkUntil?: number | undefined;
}

/** Longest time bulk work waits for documents to be read, ms. */
const BULK_HELD_MS = 30_000;

/** Value of `bulkUntil` that lets all due bulk work run. */
export const ALL_BULK = Number.MAX_SAFE_INTEGER;

/**
 * Says how long bulk work has to have been due to be claimed. While documents of the tenant are read or wait to be
 * read, bulk work waits for its vectors, 30 s at most, since computing them would take the cores from the reading. A
 * document is found by its words once it is read and stored; its vectors add only meaning. Vectors that a provider
 * computes take no cores here and never wait.
 * @param embedsHere whether vectors are computed on this machine
 * @returns the latest due time of bulk work that may be claimed, Unix ms
 */
export function bulkDueUntil(store: Store, { embedsHere, now }: { embedsHere: boolean; now: number }): number {
  if (!embedsHere) return ALL_BULK;
  const isRead = store
    .prepare(`SELECT 1 FROM jobs INDEXED BY jobs_of_documents WHERE kind = 'document' AND state = 'active' LIMIT 1`)
    .get();
  return isRead !== undefined || hasDueJobAt(store, 'ingest', now) ? now - BULK_HELD_MS : ALL_BULK;
}

/** Tells whether a job at any step that workers claim is due, suspects included. Nobody claims the step `settle`. */
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

/** Tells whether a job at this step is due, suspects included. */
export function hasDueJobAt(store: Store, step: QueuedStep, now: number): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM jobs INDEXED BY jobs_due
         WHERE step = :step AND state IN ('queued', 'failed') AND ${IS_DUE} LIMIT 1`,
      )
      .get({ step, now }) !== undefined
  );
}

/**
 * Takes at most `limit` due jobs of a step: interactive before bulk, then those due longest. Suspects are left to
 * `claimSuspects`. Call inside a write.
 * @returns the claims in order of job number; none if no job is due
 */
export function claimJobs<Step extends QueuedStep>(store: Store, options: ClaimOptions<Step>): ClaimAt<Step>[] {
  return claim(store, options, 0, options.limit);
}

/**
 * Takes a group of due suspects, from the largest group size first, since most suspects wait there. The caller must run
 * no other job until all of them have ended. Call inside a write.
 * @returns the claims in order of job number, at most `limit` and the group's size; none if no suspect is due
 */
export function claimSuspects<Step extends QueuedStep>(store: Store, options: ClaimOptions<Step>): ClaimAt<Step>[] {
  const together = largestGroup(store, options);
  return together === 0 ? [] : claim(store, options, together, Math.min(together, options.limit));
}

/** Largest number of due suspects that may run together; 0 if no suspect is due. */
function largestGroup(store: Store, { step, now }: Pick<ClaimOptions, 'step' | 'now'>): number {
  const row = store
    .prepare(
      `SELECT max(suspect) AS together FROM jobs INDEXED BY jobs_due
       WHERE step = :step AND suspect > 0 AND state IN ('queued', 'failed') AND ${IS_DUE}`,
    )
    .get({ step, now }) as { together: number | null };
  return row.together ?? 0;
}

/**
 * Head of a claim's statement. NOT INDEXED makes SQLite look jobs up by `seq`; it would otherwise search all rows of a
 * step, which takes 54 ms for 64 jobs of a million, under the write lock.
 */
const CLAIM = `UPDATE jobs NOT INDEXED SET state = 'active', lease_owner = :owner, lease_until = :until,
  lease_epoch = lease_epoch + 1, lease_alone = 0, dispatched_until = 0, updated_at = :now`;

const CLAIMED = `seq AS jobNo, id, kind, memory AS memoryNo, document AS documentNo, step, lease_epoch AS epoch,
  attempts, created_at AS createdAt, priority AS isBulk, trace_context AS trace`;

/**
 * Takes one due job that reads a document; with `alone`, a suspect, beside which the caller must run no other job. Call
 * inside a write.
 * @returns undefined if there is none
 */
export function claimDocument(
  store: Store,
  { alone, ...options }: Omit<ClaimOptions, 'limit' | 'step'> & { readonly alone: boolean },
): DocumentClaim | undefined {
  const single = { ...options, step: 'ingest', limit: 1 } as const;
  const [claimed] = alone ? claimSuspects(store, single) : claimJobs(store, single);
  return claimed;
}

/**
 * Takes those of the named jobs that are still due at this step; a job that a queue carried may be done or changed by
 * now. Call inside a write.
 * @param alone true to take only suspects whose allowed group (`suspect`) is at least as large as `jobNos`, while the
 *   caller runs nothing else; false to take no suspects
 * @returns the claims in order of job number
 */
export function claimThese<Step extends QueuedStep>(
  store: Store,
  {
    jobNos,
    alone,
    ...options
  }: Omit<ClaimOptions<Step>, 'limit'> & { readonly jobNos: readonly number[]; readonly alone: boolean },
): ClaimAt<Step>[] {
  const rows = store
    .prepare(
      `${CLAIM}
       WHERE seq IN (SELECT value FROM json_each(:jobNos)) AND step = :step
         AND ${alone ? 'suspect >= :together' : 'suspect = 0'}
         AND state IN ('queued', 'failed') AND ${IS_DUE}
       RETURNING ${CLAIMED}`,
    )
    .all({
      ...options,
      until: options.now + options.leaseMs,
      together: jobNos.length,
      jobNos: JSON.stringify(jobNos),
    }) as ClaimAt<Step>[];
  return noteAlone(store, rows, alone);
}

function claim<Step extends QueuedStep>(
  store: Store,
  options: ClaimOptions<Step>,
  suspect: number,
  limit: number,
): ClaimAt<Step>[] {
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
    .all({ ...options, bulkUntil, until: now + leaseMs, suspect, limit }) as ClaimAt<Step>[];
  return noteAlone(store, rows, suspect > 0);
}

/**
 * Notes how many suspects run together with no other job, since a crash is judged by that.
 * @returns the claims in order of arrival
 */
function noteAlone<Held extends HeldJob>(store: Store, claims: readonly Held[], alone: boolean): Held[] {
  if (alone) {
    store
      .prepare('UPDATE jobs SET lease_alone = ? WHERE seq IN (SELECT value FROM json_each(?))')
      .run(claims.length, JSON.stringify(claims.map(({ jobNo }) => jobNo)));
  }
  return claims.toSorted((a, b) => a.jobNo - b.jobNo);
}

/**
 * Postpones those of the jobs that are waiting suspects, because they cannot run alone now: they are not due before
 * `runAt` (Unix ms), and count as known to no queue. Other jobs stay as they are.
 */
export function postponeSuspects(store: Store, jobNos: readonly number[], runAt: number): void {
  store
    .prepare(
      `UPDATE jobs SET run_at = max(run_at, ?), dispatched_until = 0
       WHERE seq IN (SELECT value FROM json_each(?)) AND suspect > 0 AND state IN ('queued', 'failed')`,
    )
    .run(runAt, JSON.stringify(jobNos));
}

/** Tells whether a suspect at this step is due. */
export function hasDueSuspect(store: Store, step: QueuedStep, now: number): boolean {
  return largestGroup(store, { step, now }) > 0;
}

/**
 * Tells whether a job of this step has yet to run among suspects only. A suspect that failed and waits for its next
 * attempt does not count.
 */
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
