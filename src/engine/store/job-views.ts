import { EngineError } from '../errors.ts';
import {
  type Job,
  type JobState,
  type JobKind,
  type JobStep,
  type JobCounts,
  type JobSummary,
  JOB_STATES,
  JOB_STEPS,
  type StepBacklog,
} from '../types.ts';
import { readEvents } from './job-timeline.ts';
import { UUID, UNFINISHED } from './jobs.ts';
import type { Store } from './open-store.ts';

/**
 * Reads a job as callers see it.
 * @throws EngineError `not_found`, also for another spelling of the UUID than the ledger's
 */
export function getJob(store: Store, id: string): Job {
  const row = store.prepare(`${JOB} WHERE j.uuid = ${UUID}`).get(id) as JobRow | undefined;
  // `unhex` accepts several spellings of a UUID; only the one that the ledger gave out names a job.
  if (row?.id !== id) throw new EngineError('not_found', 'no job with this id');
  return toJob(row);
}

/** Returns those of the jobs that exist, in no certain order, in one statement. @param ids as the ledger spells them */
export function findJobs(store: Store, ids: readonly string[]): Job[] {
  if (ids.length === 0) return [];
  const rows = store
    .prepare(
      `${JOB_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN jobs j ON j.uuid = unhex(wanted.value, '-')
      ${JOB_NAMES}`,
    )
    .all(JSON.stringify(ids)) as JobRow[];
  return rows.map(toJob);
}

/**
 * Lists a page of jobs, the last added first; `state` and `kind` keep only jobs that have them. Jobs of imported
 * memories count as `memory`.
 */
export function listJobs(
  store: Store,
  {
    state,
    kind,
    limit,
    offset,
  }: { state?: JobState | undefined; kind?: JobKind | undefined; limit: number; offset: number },
): Job[] {
  // The kind stands in the text, because a bound one would keep SQLite from using the partial index of its jobs.
  const ofKind =
    kind === undefined ? '' : kind === 'memory' ? `AND j.kind IN ('memory', 'import')` : `AND j.kind = '${kind}'`;
  const ofState = state === undefined ? '' : 'AND j.state = ?';
  const rows = store
    .prepare(`${JOB} WHERE true ${ofKind} ${ofState} ORDER BY j.seq DESC LIMIT ? OFFSET ?`)
    .all(...(state === undefined ? [] : [state]), limit, offset);
  return (rows as JobRow[]).map(toJob);
}

interface JobRow {
  readonly jobNo: number;
  readonly id: string;
  readonly kind: JobKind | 'import';
  readonly memory_id: string | null;
  readonly document_id: string | null;
  readonly user_id: string | null;
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

const JOB_COLUMNS = `SELECT j.seq AS jobNo, j.id, j.kind, m.id AS memory_id, o.id AS document_id, u.user_id, j.step,
  j.state, j.priority, j.attempts, j.crashes, j.run_at, j.error_code, j.error,
  j.created_at, j.updated_at, j.finished_at, j.timeline`;
/** Joins of the memory, the document and the user that a job is about, for their ids. */
const JOB_NAMES = `LEFT JOIN memories m ON m.seq = j.memory
  LEFT JOIN documents o ON o.document_no = j.document
  LEFT JOIN reflections f ON f.job = j.seq
  LEFT JOIN consolidation_runs c ON c.job = j.seq
  LEFT JOIN users u ON u.user_no = coalesce(f.user_no, c.user_no)`;
const JOB = `${JOB_COLUMNS} FROM jobs j ${JOB_NAMES}`;

function toJob(row: JobRow): Job {
  return {
    id: row.id,
    jobNo: row.jobNo,
    // To callers the job of a memory that came by an import is as any memory's.
    kind: row.kind === 'import' ? 'memory' : row.kind,
    memoryId: row.memory_id,
    documentId: row.document_id,
    userId: row.user_id,
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

/** Counts all jobs in the table `jobs` by state. */
export function countJobs(store: Store): JobCounts {
  return summariseJobs(store).counts;
}

/**
 * Counts the jobs of one kind, in one state or (`state` left out) in all states.
 * @param counts the result of `countJobs` on the same snapshot, from which the number of `memory` jobs is derived
 */
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

/** Name of the partial index that holds exactly the jobs of a kind. Jobs of the kind `memory` have no such index. */
const INDEX_OF_KIND = {
  document: 'jobs_of_documents',
  reembed: 'jobs_of_reembed',
  contradictions: 'jobs_of_contradictions',
  reflection: 'jobs_of_reflections',
  consolidation: 'jobs_of_consolidations',
} as const satisfies Record<Exclude<JobKind, 'memory'>, string>;

/**
 * Counts all jobs by state. Unfinished jobs are also counted by the step that they are at, with the time at which the
 * oldest of them was added (`oldestAt`), even if it came to this step later. It reads three partial indexes that
 * together hold every job once.
 */
export function summariseJobs(store: Store): JobSummary {
  const rows = store
    .prepare(
      `SELECT state, step, count(*) AS n, min(seq) AS first FROM jobs INDEXED BY jobs_due
         WHERE state IN ('queued', 'failed') GROUP BY step, state
       UNION ALL SELECT 'active', step, count(*), min(seq) FROM jobs INDEXED BY jobs_leased
         WHERE state = 'active' GROUP BY step
       UNION ALL SELECT state, NULL, count(*), NULL FROM jobs INDEXED BY jobs_by_end
         WHERE finished_at > 0 GROUP BY state`,
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

/** Counts the `active` jobs, those whose leases have run out included. */
export function countActive(store: Store): number {
  return store
    .prepare(`SELECT count(*) FROM jobs INDEXED BY jobs_leased WHERE state = 'active'`)
    .pluck()
    .get() as number;
}

/**
 * Counts the `queued` and `failed` jobs: those that wait for a worker, for their next attempt, or at the step `settle`
 * for the chunks of their document.
 */
export function countWaiting(store: Store): number {
  return (store.prepare(`SELECT count(*) AS n FROM jobs WHERE state IN ('queued', 'failed')`).get() as { n: number }).n;
}

/** Returns the time at which the oldest unfinished job was added, Unix ms; null if no job is unfinished. */
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

/**
 * Lists the numbers of at most `limit` unfinished jobs from `first` to `last`, both included, ascending. It examines
 * every row up to the last that it lists, so callers should ask about a bounded number of rows.
 */
export function unfinishedBetween(store: Store, first: number, last: number, limit: number): number[] {
  return store
    .prepare(`SELECT seq FROM jobs WHERE seq BETWEEN ? AND ? AND state IN ${UNFINISHED} ORDER BY seq LIMIT ?`)
    .pluck()
    .all(first, last, limit) as number[];
}

/**
 * Returns the lowest and the highest number of a job that is in the table `jobs`; both 0 if there is none. Jobs with
 * lower numbers have ended and were purged.
 */
export function jobNoRange(store: Store): { readonly oldest: number; readonly newest: number } {
  return store
    .prepare(
      `SELECT coalesce((SELECT min(seq) FROM jobs), 0) AS oldest, coalesce((SELECT max(seq) FROM jobs), 0) AS newest`,
    )
    .get() as { oldest: number; newest: number };
}

/**
 * Tells whether a job with a number above `after` checks a memory for contradictions and is neither dead nor cancelled.
 */
export function hasLaterCheck(store: Store, memoryNo: number, after: number): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM jobs
         WHERE memory = ? AND kind = 'contradictions' AND seq > ? AND state NOT IN ('dead', 'cancelled')`,
      )
      .get(memoryNo, after) !== undefined
  );
}
