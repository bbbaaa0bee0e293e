import { countJobsOfKind, listJobs, summariseJobs } from '../store/job-views.ts';
import type { Job, JobFilter, JobSummary } from '../types.ts';
import type { ReadContext } from './read-context.ts';

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
