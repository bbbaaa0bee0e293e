import { CairnError } from './errors.ts';
import type { Job } from './generated/types.ts';
import type { ReadyOptions } from './reply.ts';
import { pause, waitForReturn } from './send.ts';

/** Longest wait for background work unless the caller gives another (ms). */
const TIMEOUT_MS = 600_000;
/** First and longest pause between two requests for the state of a job (ms); each pause is 1.5 times the one before. */
const PAUSE_MS = { first: 50, last: 2_000 };

/**
 * Waits until every job that a reply names is done, one after the other, and returns the reply; it returns at once if
 * the reply names no job. A job that no longer exists counts as done. While the server is unreachable or busy, as in a
 * restart, requests are repeated for about a minute (`AWAY_MS`).
 * @param getJob reads a job; rejects with the reason of the signal once that aborts
 * @throws CairnError `job_failed` at the first job that ends without success, `timeout` after `timeoutMs`; the reason
 *   of the signal; what `getJob` throws, except for `not_found`
 */
export async function waitForJobs(
  reply: unknown,
  { timeoutMs = TIMEOUT_MS, signal }: ReadyOptions,
  getJob: (id: string, signal: AbortSignal) => Promise<unknown>,
): Promise<unknown> {
  const limit = new AbortController();
  const end = () => limit.abort(new CairnError('timeout', `the work took more than ${timeoutMs} ms`));
  const timer = setTimeout(end, Math.min(timeoutMs, 2 ** 31 - 1));
  const either = AbortSignal.any(signal === undefined ? [limit.signal] : [limit.signal, signal]);
  try {
    for (const id of jobsOf(reply)) await waitForJob(() => getJob(id, either), either);
  } finally {
    clearTimeout(timer);
  }
  return reply;
}

async function waitForJob(getJob: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
  let awaySince: number | undefined;
  for (let pauseMs = PAUSE_MS.first; ; pauseMs = Math.min(PAUSE_MS.last, pauseMs * 1.5)) {
    let askAgainMs = pauseMs;
    try {
      const job = (await getJob()) as Job;
      if (job.state === 'done') return;
      if (job.state === 'dead' || job.state === 'cancelled') throw failed(job);
      awaySince = undefined;
    } catch (error) {
      // A job that is gone was discarded, belongs to a memory that was erased meanwhile, or is a reflection that is
      // done, for a key that is bound to a user: nothing is left to do.
      if (error instanceof CairnError && error.code === 'not_found') return;
      awaySince ??= Date.now();
      askAgainMs = waitForReturn(error, awaySince, pauseMs);
    }
    await pause(askAgainMs, signal);
  }
}

/** Returns the ids of the jobs that a reply names: in its own field `job_id`, and in those of its `results`. */
function jobsOf(reply: unknown): string[] {
  const { job_id: own, results = [] } = (reply ?? {}) as {
    readonly job_id?: string | null;
    readonly results?: readonly { readonly job_id?: string | null }[];
  };
  return [own, ...results.map((result) => result.job_id)].filter((id) => typeof id === 'string');
}

function failed({ id, state, error }: Job): CairnError {
  return new CairnError('job_failed', `job ${id} is ${state}${error === null ? '' : `: ${error.message}`}`);
}
