import { CairnError } from './errors.ts';
import type { Job } from './generated/types.ts';
import type { ReadyOptions } from './reply.ts';
import { pause } from './send.ts';

/** Longest wait for background work unless the caller names one, in milliseconds. */
const TIMEOUT_MS = 600_000;
/** First and longest pause between two questions about a job, in milliseconds. */
const PAUSE_MS = { first: 50, last: 2_000 };

/**
 * Waits until every job that a reply names is done, and returns the reply.
 * @param getJob reads a job
 * @throws CairnError `job_failed` at the first job that ends without success, `timeout`; also what `getJob` throws
 */
export async function waitForJobs(
  reply: unknown,
  { timeoutMs = TIMEOUT_MS, signal }: ReadyOptions,
  getJob: (id: string) => Promise<unknown>,
): Promise<unknown> {
  const until = Date.now() + timeoutMs;
  for (const id of jobsOf(reply)) {
    for (let pauseMs = PAUSE_MS.first; ; pauseMs = Math.min(PAUSE_MS.last, pauseMs * 1.5)) {
      const job = await findJob(id, getJob);
      if (job === undefined || job.state === 'done') break;
      if (job.state === 'dead' || job.state === 'cancelled') throw failed(job);
      if (Date.now() + pauseMs > until) throw new CairnError('timeout', `job ${id} took more than ${timeoutMs} ms`);
      await pause(pauseMs, signal);
    }
  }
  return reply;
}

/** Ids of the jobs that a reply names: its own, or those of its results. */
function jobsOf(reply: unknown): string[] {
  const { job_id: own, results = [] } = (reply ?? {}) as {
    readonly job_id?: string | null;
    readonly results?: readonly { readonly job_id?: string | null }[];
  };
  return [own, ...results.map((result) => result.job_id)].filter((id) => typeof id === 'string');
}

/** A job that is gone was discarded, or belongs to a memory that was erased meanwhile: nothing is left to do. */
async function findJob(id: string, getJob: (id: string) => Promise<unknown>): Promise<Job | undefined> {
  try {
    return (await getJob(id)) as Job;
  } catch (error) {
    if (error instanceof CairnError && error.code === 'not_found') return undefined;
    throw error;
  }
}

function failed({ id, state, error }: Job): CairnError {
  return new CairnError('job_failed', `job ${id} is ${state}${error === null ? '' : `: ${error.message}`}`);
}
