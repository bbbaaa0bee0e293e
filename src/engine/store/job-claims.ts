import { QUEUED_STEPS, type QueuedStep } from '../jobs.ts';
import { DUE, dueUntil, selectDue, selectWhetherDue } from './due-jobs.ts';
import { IS_DUE, type ClaimAt, type DocumentClaim, type HeldJob } from './jobs.ts';
import type { Store } from './open-store.ts';

/** Selects the jobs that a worker claims, with owner and length of their leases. `now` is in Unix ms. */
export interface ClaimOptions<Step extends QueuedStep = QueuedStep> {
  readonly step: Step;
  /** Greatest number of jobs that are claimed. */
  readonly limit: number;
  /** Name of the worker that owns the leases. */
  readonly owner: string;
  /** Length of the leases, in ms. */
  readonly leaseMs: number;
  readonly now: number;
}

/** Selects the due jobs that `claimJobs` claims: `ClaimOptions`, with a bound for bulk jobs. */
interface DueClaimOptions<Step extends QueuedStep> extends ClaimOptions<Step> {
  /**
   * Latest due time of bulk jobs that may be taken, Unix ms, included: the result of `bulkDueUntil`. All due bulk jobs
   * if left out.
   */
  readonly bulkUntil?: number | undefined;
}

/** Longest time for which bulk jobs that embed wait while documents are read (ms). */
export const BULK_HELD_MS = 30_000;

/** Value of `bulkUntil` with which all due bulk jobs are taken. */
export const ALL_BULK = Number.MAX_SAFE_INTEGER;

/**
 * Returns the latest due time of bulk jobs that may be claimed to embed memories, Unix ms. While a document is being
 * read or is due to be read, it is 30 seconds ago; otherwise all due bulk jobs may be claimed (ALL_BULK). The reason:
 * computing vectors would take processor time from reading. Once read, a document is found by its words, and vectors
 * only improve the search. If a provider computes the vectors, all due bulk jobs may always be claimed.
 * @param embedsHere whether vectors are computed on this machine
 */
export function bulkDueUntil(store: Store, { embedsHere, now }: { embedsHere: boolean; now: number }): number {
  if (!embedsHere) return ALL_BULK;
  const isRead = store
    .prepare(`SELECT 1 FROM jobs INDEXED BY jobs_of_documents WHERE kind = 'document' AND state = 'active' LIMIT 1`)
    .get();
  return isRead !== undefined || hasDueJobAt(store, 'ingest', now) ? now - BULK_HELD_MS : ALL_BULK;
}

/**
 * Tells whether a job that workers can claim is due, even a suspect (a job that was active when its worker died). Jobs
 * at the step `settle` do not count, since no worker claims them.
 */
export function hasDueJob(store: Store, now: number): boolean {
  return store.prepare(HAS_DUE).get({ now }) !== undefined;
}

// Made once, as every look into a ledger uses them.
const HAS_DUE = selectWhetherDue(QUEUED_STEPS);
const HAS_DUE_AT = Object.fromEntries(QUEUED_STEPS.map((step) => [step, selectWhetherDue([step])])) as Readonly<
  Record<QueuedStep, string>
>;

/** Tells whether a job at this step is due, even a suspect (a job that was active when its worker died). */
export function hasDueJobAt(store: Store, step: QueuedStep, now: number): boolean {
  return store.prepare(HAS_DUE_AT[step]).get({ now }) !== undefined;
}

/**
 * Claims at most `limit` due jobs of a step: interactive ones before bulk ones, then those that have been due longest.
 * It leaves out suspects, jobs that were active when their worker died; `claimSuspects` claims those. Call inside a
 * write.
 * @returns the claims by ascending `jobNo`; empty if no job is due
 */
export function claimJobs<Step extends QueuedStep>(store: Store, options: DueClaimOptions<Step>): ClaimAt<Step>[] {
  return claim(store, options, 0, options.limit);
}

/**
 * Claims a group of due suspects, jobs that were active when their worker died. Each suspect has a limit on the size of
 * its group; those with the largest limit are claimed first, since most suspects have it. The caller must run no other
 * job until all of them have ended. Call inside a write.
 * @returns the claims by ascending `jobNo`, at most `limit` and as many as may run together; empty if no suspect is due
 */
export function claimSuspects<Step extends QueuedStep>(store: Store, options: ClaimOptions<Step>): ClaimAt<Step>[] {
  const together = largestGroup(store, options);
  return together === 0 ? [] : claim(store, options, together, Math.min(together, options.limit));
}

/** Returns how many due suspects of a step may run together at most; 0 if none is due. */
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
 * Head of a claim's statement. NOT INDEXED makes SQLite look jobs up by `seq`. It would otherwise search all rows of a
 * step, which takes 54 ms for 64 jobs of a million, while it holds the write lock.
 */
const CLAIM = `UPDATE jobs NOT INDEXED SET state = 'active', lease_owner = :owner, lease_until = :leaseUntil,
  lease_epoch = lease_epoch + 1, lease_alone = 0, dispatched_until = 0, updated_at = :now`;

const CLAIMED = `seq AS jobNo, id, kind, memory AS memoryNo, document AS documentNo, step, lease_epoch AS epoch,
  attempts, created_at AS createdAt, priority AS isBulk, trace_context AS trace`;

/**
 * Claims one due job that reads a document. With `alone` it claims a suspect (a job that was active when its worker
 * died), and the caller must run no other job meanwhile. Call inside a write.
 * @returns undefined if none is due
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
 * Claims those of the given jobs that are still due at this step; a job that a queue delivered may be done or changed
 * by now. Call inside a write.
 * @param alone true to claim only suspects that may run in a group of `jobNos.length`, while the caller runs no other
 *   job; false to claim only jobs that are no suspects
 * @returns the claims by ascending `jobNo`
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
      leaseUntil: options.now + options.leaseMs,
      together: jobNos.length,
      jobNos: JSON.stringify(jobNos),
    }) as ClaimAt<Step>[];
  return noteAlone(store, rows, alone);
}

/**
 * SQL that selects the due jobs which `claim` may take, interactive ones and then bulk ones, whose column `suspect`
 * equals `:suspect` (0: no suspects).
 */
const DUE_BY_SUSPECT = selectDue('seq, priority, run_at', {
  ranges: [...DUE.filter(({ priority }) => priority === 0), ...dueUntil(1)],
  suspect: ':suspect',
});

function claim<Step extends QueuedStep>(
  store: Store,
  options: DueClaimOptions<Step>,
  suspect: number,
  limit: number,
): ClaimAt<Step>[] {
  const { now, leaseMs, bulkUntil = ALL_BULK } = options;
  const rows = store
    .prepare(
      `${CLAIM}
       WHERE seq IN (
         SELECT seq FROM (${DUE_BY_SUSPECT}) ORDER BY priority, run_at, seq LIMIT :limit)
       RETURNING ${CLAIMED}`,
    )
    .all({
      ...options,
      until: bulkUntil,
      untilNow: Math.min(now, bulkUntil),
      leaseUntil: now + leaseMs,
      suspect,
      limit,
    }) as ClaimAt<Step>[];
  return noteAlone(store, rows, suspect > 0);
}

/**
 * Stores with each claimed suspect how many of them run together while nothing else runs. If the worker dies, this
 * decides whether the crash counts against the job.
 * @param alone whether the claims are of suspects; if false, nothing is stored
 * @returns the claims by ascending `jobNo`
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
 * Postpones those of the jobs that are waiting suspects, because they cannot run alone now: they become due at `runAt`
 * (Unix ms) at the earliest, and lose the mark that a queue has them. Other jobs stay as they are. Call inside a write.
 */
export function postponeSuspects(store: Store, jobNos: readonly number[], runAt: number): void {
  store
    .prepare(
      `UPDATE jobs SET run_at = max(run_at, ?), dispatched_until = 0
       WHERE seq IN (SELECT value FROM json_each(?)) AND suspect > 0 AND state IN ('queued', 'failed')`,
    )
    .run(runAt, JSON.stringify(jobNos));
}

/** Tells whether a suspect (a job that was active when its worker died) of this step is due. */
export function hasDueSuspect(store: Store, step: QueuedStep, now: number): boolean {
  return largestGroup(store, { step, now }) > 0;
}

/**
 * Tells whether a suspect (a job that was active when its worker died) of this step is `queued`, due or not. A suspect
 * that failed and waits for its next attempt does not count.
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
