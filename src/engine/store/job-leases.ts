import { MAX_JOB_IDS } from '../jobs.ts';
import type { JobKind } from '../types.ts';
import { failDocument } from './documents.ts';
import { noteEvents } from './job-timeline.ts';
import { type HeldJob, PARTS, CRASH, CRASH_BUDGET, markFailed } from './jobs.ts';
import type { Store } from './open-store.ts';

/**
 * SQL that reads the state of a job unless it was claimed again; its parameters are the number of the job and the epoch
 * of the claim (a number that rises with each claim). The state is no condition, since PostgreSQL would then look among
 * all active jobs.
 */
export const SELECT_CLAIMED_STATE = 'SELECT state FROM jobs WHERE seq = ? AND lease_epoch = ?';

/**
 * Tells whether a claim still holds its job. It is false if the lease was taken back or another worker has claimed the
 * job since, and if the job has ended or was cancelled. Every write that commits a step must call this inside its
 * transaction.
 */
export function holdsLease(store: Store, held: HeldJob): boolean {
  return claimedState(store, held) === 'active';
}

/** Tells whether a job was done under this claim: false if it was handed back or the lease was lost. */
export function wasDoneUnder(store: Store, held: HeldJob): boolean {
  return claimedState(store, held) === 'done';
}

function claimedState(store: Store, held: HeldJob): string | undefined {
  const claimed = store.prepare(SELECT_CLAIMED_STATE).get(held.jobNo, held.epoch) as { state: string } | undefined;
  return claimed?.state;
}

/** Sets the end of the leases of all jobs that the worker `owner` holds to `until` (Unix ms). Call inside a write. */
export function renewLeases(store: Store, owner: string, until: number): void {
  store.prepare(`UPDATE jobs SET lease_until = ? WHERE state = 'active' AND lease_owner = ?`).run(until, owner);
}

/** The present time, and the length of a lease, by which expired leases are recognised. */
export interface LeaseTimes {
  /** Present time, Unix ms. */
  readonly now: number;
  /** Length of a lease, ms: `OM_LEASE_MS`. */
  readonly leaseMs: number;
}

/**
 * SQL condition that a lease has expired; the caller binds `:now` (Unix ms) and `:leaseMs`. A live worker renews its
 * leases every second. So a lease that ends more than two lengths ahead was written before the clock was set back, and
 * counts as expired, too.
 */
const HAS_LAPSED = '(lease_until <= :now OR lease_until > :now + 2 * :leaseMs)';

/**
 * Tells whether the lease of an active job has run out, so that `recoverLeases` has something to do. It only reads, so
 * it takes no write lock.
 */
export function hasLapsedLease(store: Store, times: LeaseTimes): boolean {
  return (
    store
      .prepare(`SELECT 1 FROM jobs INDEXED BY jobs_leased WHERE state = 'active' AND ${HAS_LAPSED} LIMIT 1`)
      .get(times) !== undefined
  );
}

/** Tells whether a worker has claimed any job, so that a lease may run out. */
export function hasActiveJob(store: Store): boolean {
  return store.prepare(`SELECT 1 FROM jobs INDEXED BY jobs_leased WHERE state = 'active' LIMIT 1`).get() !== undefined;
}

/**
 * Numbers of jobs that were taken back from workers: `requeued` to run again, `dead` because they killed too many
 * workers.
 */
export interface Recovery {
  readonly requeued: number;
  readonly dead: number;
}

/**
 * Pause before a job that ran alone when its worker died runs again (ms), multiplied by its crashes so far: 10 s, then
 * 20 s.
 */
const CRASH_PAUSE_MS = 10_000;

/**
 * Takes jobs back from workers that died: the active jobs whose leases have expired, or with `everyOwner` all active
 * jobs. They become suspects and are queued again. If a job ran alone, the crash counts against it; with its third such
 * crash (CRASH_BUDGET) the job is dead. The memory of a dead `memory` or `import` job, and the document of a job that
 * reads one, become `failed`; `ready` if the memory has a vector, or if queries find an earlier reading of the
 * document. Call inside a write.
 */
export function recoverLeases(
  store: Store,
  { now, leaseMs, everyOwner }: LeaseTimes & { readonly everyOwner: boolean },
): Recovery {
  const condition = everyOwner ? `state = 'active'` : `state = 'active' AND ${HAS_LAPSED}`;
  const wasAlone = 'iif(lease_alone = 1, 1, 0)';
  const charge = `crashes = crashes + ${wasAlone}`;
  const together = `CASE lease_alone WHEN 0 THEN ${MAX_JOB_IDS} ELSE (lease_alone + ${PARTS - 1}) / ${PARTS} END`;
  const common = `suspect = ${together}, lease_owner = NULL, lease_until = NULL, lease_epoch = lease_epoch + 1,
         updated_at = :now`;
  const dead = store
    .prepare(
      `UPDATE jobs SET ${charge}, ${common}, state = 'dead', finished_at = :now, error_code = '${CRASH}',
         error = 'its worker died ${CRASH_BUDGET} times while it ran alone', ${noteEvents(['crashed', 'dead'], ':now')}
       WHERE ${condition} AND crashes + ${wasAlone} >= ${CRASH_BUDGET}
       RETURNING kind, memory, document, error_code AS code, error AS message`,
    )
    .all({ now, leaseMs }) as DeadJob[];
  const requeued = store
    .prepare(
      `UPDATE jobs SET ${charge}, ${common}, state = 'queued',
         run_at = :now + ${wasAlone} * (crashes + 1) * ${CRASH_PAUSE_MS},
         ${noteEvents(['crashed'], ':now')} WHERE ${condition}`,
    )
    .run({ now, leaseMs }).changes;
  for (const { kind, memory, document, code, message } of dead) {
    if (kind === 'memory' || kind === 'import') markFailed(store, memory);
    else if (document !== null) failDocument(store, document, { code, message, now });
  }
  return { requeued, dead: dead.length };
}

interface DeadJob {
  readonly kind: JobKind | 'import';
  readonly memory: number | null;
  readonly document: number | null;
  readonly code: string;
  readonly message: string;
}
