/**
 * Memories that a model refused to embed: dead jobs of newly added memories, and of memories that a change of the model
 * was to embed anew.
 */

import { CRASH, UNFINISHED } from './jobs.ts';
import type { Store } from './open-store.ts';
import { IS_CONTROLLER } from './reembed.ts';

/**
 * Deletes at most `limit` dead jobs that were to embed a memory by a new model, since a memory that one model refused
 * may be accepted by another. Jobs that killed their workers are kept. Call inside a write.
 * @returns the number of deleted jobs
 */
export function deleteRefusals(store: Store, limit: number): number {
  return store
    .prepare(
      `DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs
         WHERE kind = 'reembed' AND NOT (${IS_CONTROLLER}) AND state = 'dead' AND error_code <> '${CRASH}' LIMIT ?)`,
    )
    .run(limit).changes;
}

/** Place of a dead job in the order in which jobs died: its end (Unix ms) and its number. */
export interface DeadJobPlace {
  readonly finishedAt: number;
  readonly jobNo: number;
}

/**
 * Looks through the next dead jobs, at most `within`, of those that died before or at `diedBy` (Unix ms), in the order
 * in which they died, from the place `after` on (null: from the first). It lists the ids of those that were to embed a
 * newly added or changed memory and are the newest job of it, unless an unfinished job embeds or links the memory. Jobs
 * that killed their workers are left out.
 * @returns `stale`: numbers of those after which the memory had another job, which says more than they do, also of jobs
 *   that killed their workers. `next`, the place from which to look on; null if no such job is left
 */
export function listRefusedAdds(
  store: Store,
  { after, diedBy, within }: { readonly after: DeadJobPlace | null; readonly diedBy: number; readonly within: number },
): { readonly ids: readonly string[]; readonly stale: readonly number[]; readonly next: DeadJobPlace | null } {
  const looked = store
    .prepare(
      `SELECT j.seq AS jobNo, j.finished_at AS finishedAt, j.id,
         CASE WHEN j.kind NOT IN ('memory', 'import') OR j.step <> 'encode' OR j.memory IS NULL THEN 'other'
           WHEN EXISTS (SELECT 1 FROM jobs o
             WHERE o.memory = j.memory AND o.seq > j.seq AND o.kind IN ('memory', 'import')) THEN 'stale'
           WHEN j.error_code = '${CRASH}' THEN 'crashed'
           WHEN EXISTS (SELECT 1 FROM jobs o
             WHERE o.memory = j.memory AND o.kind <> 'contradictions' AND o.state IN ${UNFINISHED}) THEN 'seen to'
           ELSE 'refused' END AS what
       FROM (SELECT seq, id, finished_at, kind, step, memory, error_code FROM jobs INDEXED BY jobs_by_end
             WHERE state = 'dead' AND finished_at > 0 AND finished_at <= ? AND (finished_at, seq) > (?, ?)
             ORDER BY finished_at, seq LIMIT ?) AS j
       ORDER BY j.finished_at, j.seq`,
    )
    .all(diedBy, after?.finishedAt ?? 0, after?.jobNo ?? 0, within) as (DeadJobPlace & {
    readonly id: string;
    readonly what: 'other' | 'stale' | 'crashed' | 'seen to' | 'refused';
  })[];
  const last = looked.length < within ? undefined : looked.at(-1);
  return {
    ids: looked.filter(({ what }) => what === 'refused').map(({ id }) => id),
    stale: looked.filter(({ what }) => what === 'stale').map(({ jobNo }) => jobNo),
    next: last === undefined ? null : { finishedAt: last.finishedAt, jobNo: last.jobNo },
  };
}

/** Deletes jobs by number. Call inside a write. */
export function deleteJobs(store: Store, jobNos: readonly number[]): void {
  store.prepare('DELETE FROM jobs WHERE seq IN (SELECT value FROM json_each(?))').run(JSON.stringify(jobNos));
}

/**
 * Counts the memories with a dead job at the step `encode`: all of them (`givenUp`), and those whose job did not die
 * because it killed its workers (`refused`).
 */
export function countGivenUp(store: Store): { readonly givenUp: number; readonly refused: number } {
  return store
    .prepare(
      `SELECT count(DISTINCT memory) AS givenUp,
         count(DISTINCT memory) FILTER (WHERE error_code <> '${CRASH}') AS refused
       FROM jobs INDEXED BY jobs_by_end WHERE state = 'dead' AND finished_at > 0 AND step = 'encode' AND memory > 0`,
    )
    .get() as { givenUp: number; refused: number };
}
