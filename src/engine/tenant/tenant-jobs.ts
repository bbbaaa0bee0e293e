import { setImmediate as yieldTurn, setTimeout as pause } from 'node:timers/promises';
import { decodeReceipt } from '../commands/write-receipt.ts';
import { removeUpload } from '../documents/uploads.ts';
import type { Tenant } from '../engine.ts';
import { countActive, countJobs, firstUnfinishedBetween, getJob, newestJobNo } from '../store/job-views.ts';
import type { Store } from '../store/open-store.ts';
import type { TenantOptions } from './tenant-options.ts';
import type { Erasure } from './tenant-erasure.ts';

/**
 * First and longest pause between two checks of the jobs that `waitFor` waits for (ms); each pause is half as long
 * again as the one before it.
 */
const POLL_MIN_MS = 4;
const POLL_MAX_MS = 50;
/**
 * Greatest number of jobs that `waitFor` checks before it yields the thread: a receipt may name more jobs than one add
 * makes.
 */
const JOBS_AT_ONCE = 1_000;

type JobMethods = Pick<
  Tenant,
  | 'getJob'
  | 'listJobs'
  | 'countJobs'
  | 'countWaitingJobs'
  | 'countActiveJobs'
  | 'oldestWaitingJobAt'
  | 'retryJob'
  | 'cancelJob'
  | 'discardJob'
  | 'waitFor'
>;

/**
 * Makes the methods by which a tenant returns its jobs, waits for them, and lets operators retry, cancel or discard
 * them.
 */
export function createJobMethods(options: TenantOptions, { eraseAbandoned }: Erasure): JobMethods {
  const { path, metrics, readers, writer, dispatcher } = options;
  const store = () => options.open().store;
  return {
    getJob: async (id) => getJob(store(), id),
    listJobs: (filter) => readers.read(path, 'listJobs', filter),
    countJobs: async () => countJobs(store()),
    countWaitingJobs: () => readers.read(path, 'countWaiting', {}),
    countActiveJobs: async () => countActive(store()),
    oldestWaitingJobAt: () => readers.read(path, 'oldestWaitingAt', {}),

    async retryJob(id) {
      const job = await writer.write(path, 'retryJob', { id });
      dispatcher.dispatch(path, job.step);
      return job;
    },
    async cancelJob(id) {
      const job = await writer.write(path, 'cancelJob', { id });
      if (job.kind === 'document') await eraseAbandoned();
      metrics.finishedJobs.inc({ state: 'cancelled' });
      return job;
    },
    async discardJob(id) {
      const upload = await writer.write(path, 'discardJob', { id });
      removeUpload(path, upload);
    },

    async waitFor(token, timeoutMs, signal) {
      const { first, last } = decodeReceipt(token, options.open().storeId);
      const deadline = performance.now() + timeoutMs;
      const end = Math.min(last, seen(newestJobNo));
      // What has ended is not looked at again.
      let next: number | undefined = first;
      for (let pollMs = POLL_MIN_MS; ; pollMs = Math.min(POLL_MAX_MS, pollMs * 1.5)) {
        next = await unfinishedFrom(next, end, signal);
        if (next === undefined) return true;
        const leftMs = deadline - performance.now();
        if (leftMs <= 0 || signal?.aborted) return false;
        await pause(Math.min(pollMs, leftMs), undefined, signal ? { signal } : {}).catch(() => {});
      }
    },
  };

  /**
   * Reads the ledger, and lets later reads see what this one saw: the writes of a token, and their work that has ended.
   */
  function seen<T>(work: (opened: Store) => T): T {
    const opened = store();
    const result = opened.read(() => work(opened));
    readers.see(path, opened.position);
    return result;
  }

  /**
   * Finds the first job from `first` to `last` that has not ended; undefined if all have. On abort it returns the job
   * that it would check next.
   */
  async function unfinishedFrom(first: number, last: number, signal?: AbortSignal): Promise<number | undefined> {
    for (let from = first; from <= last; from += JOBS_AT_ONCE) {
      if (signal?.aborted) return from;
      const to = Math.min(last, from + JOBS_AT_ONCE - 1);
      const found = seen((opened) => firstUnfinishedBetween(opened, from, to));
      if (found !== undefined) return found;
      if (from + JOBS_AT_ONCE <= last) await yieldTurn();
    }
    return undefined;
  }
}
