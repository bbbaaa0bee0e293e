import fs from 'node:fs';
import { resolveName } from '../entities/extract.ts';
import { foldName } from '../entities/modes.ts';
import { EngineError } from '../errors.ts';
import { countWaypoints } from '../store/edges.ts';
import { findEntity } from '../store/entity-lists.ts';
import { walBytes } from '../store/file-on-disk.ts';
import { compileFilter } from '../store/filter.ts';
import { countJobs, countJobsOfKind, listJobs, summariseJobs } from '../store/job-views.ts';
import { countByState } from '../store/memory-counts.ts';
import { countVectors } from '../store/vectors.ts';
import { createWorkBudget, runWithin } from '../store/work-budget.ts';
import type { EntityDetails, Job, JobSummary, TenantStats, JobFilter } from '../types.ts';
import type { ReadContext } from './read-context.ts';
import { workLimits } from './work-limits.ts';

/**
 * Counts the memories, vectors, waypoints and jobs of all states, and measures the file. `databaseBytes` is 0 on
 * PostgreSQL, whose tables hold all tenants together.
 */
export function readStats({ open }: ReadContext): TenantStats {
  const { store } = open();
  return store.read(() => {
    const byState = countByState(store);
    return {
      memories: byState.queued + byState.ready + byState.failed,
      byState,
      vectors: countVectors(store),
      waypoints: countWaypoints(store),
      jobs: countJobs(store),
      // The tables of PostgreSQL hold all tenants together.
      databaseBytes: store.words === null ? fs.statSync(store.path).size : 0,
      walBytes: walBytes(store.path),
    };
  });
}

/**
 * Lists the jobs that match a filter, newest first. `total` is the number of jobs of the filter's state and kind; the
 * summary (`JobSummary`) is about all jobs.
 */
export function readJobs(
  { open }: ReadContext,
  filter: JobFilter,
): JobSummary & { readonly items: Job[]; readonly total: number } {
  const { store } = open();
  const { state, kind } = filter;
  const summary = summariseJobs(store);
  const { counts } = summary;
  const all = state === undefined ? Object.values(counts).reduce((sum, n) => sum + n, 0) : counts[state];
  const total = kind === undefined ? all : countJobsOfKind(store, counts, kind, state);
  return { items: listJobs(store, filter), total, ...summary };
}

/**
 * Reads what memories say about a name.
 * @throws EngineError `not_found` if no memory that a query could find mentions the name, or none is found within the
 *   work budget of one request
 */
export function readEntity(
  { open, clock, config }: ReadContext,
  {
    name,
    userId,
    tags,
  }: {
    readonly name: string;
    readonly userId: string | undefined;
    readonly tags?: readonly string[] | undefined;
  },
): EntityDetails {
  const { store } = open();
  const filter = compileFilter({ userIds: userId === undefined ? undefined : [userId], tags }, clock.now());
  // The name may be an alias: `k8s` is counted as `kubernetes`.
  const entity = runWithin(createWorkBudget(workLimits(config)), () =>
    [...new Set([foldName(name), resolveName(name)])]
      .map((folded) => store.read(() => findEntity(store, folded, { userId, filter })))
      .find((details) => details !== undefined),
  );
  if (entity === undefined) throw new EngineError('not_found', 'no memory mentions this name');
  return entity;
}
