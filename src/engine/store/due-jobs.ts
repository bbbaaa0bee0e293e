/**
 * SQL that finds due jobs by ranges of the index `jobs_due`. A search for `IS_DUE` alone would read on through all jobs
 * that are not due yet, which may be a million, while it looks for one that is.
 */

import type { QueuedStep } from '../jobs.ts';
import { IS_DUE } from './jobs.ts';

const FROM_WAITING = `FROM jobs INDEXED BY jobs_due WHERE state IN ('queued', 'failed')`;

/**
 * A part of the due jobs: those of one priority with due times in one range. `IS_DUE` says why there are two ranges.
 */
interface DueRange {
  readonly priority: 0 | 1;
  /** SQL condition on `run_at`. */
  readonly sql: string;
}

/** Due jobs of each priority; the caller binds `:now` (Unix ms). */
export const DUE: readonly DueRange[] = ([0, 1] as const).flatMap((priority) => [
  { priority, sql: 'run_at <= :now' },
  { priority, sql: 'run_at > :now + 120000' },
]);

/**
 * Returns the ranges of the due jobs of one priority that became due at `:until` at the latest (Unix ms). The caller
 * binds `:now`, `:until` and `:untilNow`, the lower one of both.
 */
export function dueUntil(priority: 0 | 1): readonly DueRange[] {
  return [
    { priority, sql: 'run_at <= :untilNow' },
    { priority, sql: 'run_at > :now + 120000 AND run_at <= :until' },
  ];
}

/**
 * Returns a SELECT of due jobs at the step `:step`, from each range at most `:limit`, those first that have been due
 * longest. The caller sorts what the ranges give, and limits it.
 * @param columns SQL list of the columns that are selected
 * @param options.suspect SQL value that the column `suspect` must equal: 0, unless suspects are wanted
 * @param options.and further SQL condition, such as ` AND dispatched_until = 0`
 */
export function selectDue(
  columns: string,
  { ranges = DUE, suspect = '0', and = '' }: { ranges?: readonly DueRange[]; suspect?: string; and?: string } = {},
): string {
  return ranges
    .map(
      ({ priority, sql }) =>
        `SELECT * FROM (SELECT ${columns} ${FROM_WAITING} AND step = :step AND suspect = ${suspect}
           AND priority = ${priority} AND ${sql}${and} ORDER BY run_at, seq LIMIT :limit)`,
    )
    .join(' UNION ALL ');
}

/**
 * Returns a SELECT of one row if a job at one of the steps is due, even a suspect (a job that was active when its
 * worker died); of none otherwise. Few jobs are suspects, so these are searched one by one.
 * @param options.priority the priority of the jobs; any if left out
 * @param options.and further SQL condition, such as ` AND dispatched_until = 0`
 */
export function selectWhetherDue(
  steps: readonly QueuedStep[],
  { priority: only, and = '' }: { readonly priority?: 0 | 1; readonly and?: string } = {},
): string {
  const list = steps.map((step) => `'${step}'`).join(', ');
  const one = `SELECT 1 ${FROM_WAITING} AND step IN (${list})`;
  const ranges = DUE.filter(({ priority }) => only === undefined || priority === only).map(
    ({ priority, sql }) => `${one} AND suspect = 0 AND priority = ${priority} AND ${sql}${and}`,
  );
  const ofPriority = only === undefined ? '' : ` AND priority = ${only}`;
  return `${[...ranges, `${one} AND suspect > 0${ofPriority} AND ${IS_DUE}${and}`].join(' UNION ALL ')} LIMIT 1`;
}
