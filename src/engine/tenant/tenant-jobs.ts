import { setTimeout as pause } from 'node:timers/promises';
import { decodeReceipt } from '../commands/write-receipt.ts';
import { removeUpload } from '../documents/uploads.ts';
import type { Tenant } from '../engine.ts';
import {
  countActive,
  countJobs,
  countWaiting,
  getJob,
  hasUnfinishedBetween,
  oldestWaitingAt,
} from '../store/job-views.ts';
import type { TenantOptions } from './tenant-options.ts';
import type { Erasure } from './tenant-erasure.ts';

/**
 * First and longest pause between two looks at jobs that `waitFor` waits for (ms); each pause is half as long again as
 * the one before it.
 */
const POLL_MIN_MS = 4;
const POLL_MAX_MS = 50;

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

/** Makes the methods by which a tenant shows its jobs, waits for them, and lets operators decide about them. */
export function createJobMethods(options: TenantOptions, { eraseAbandoned }: Erasure): JobMethods {
  const { path, metrics, readers, writer, dispatcher } = options;
  const store = () => options.open().store;
  return {
    getJob: async (id) => getJob(store(), id),
    listJobs: (filter) => readers.read(path, 'listJobs', filter),
    countJobs: async () => countJobs(store()),
    countWaitingJobs: async () => countWaiting(store()),
    countActiveJobs: async () => countActive(store()),
    oldestWaitingJobAt: async () => oldestWaitingAt(store()),

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
      for (let pollMs = POLL_MIN_MS; ; pollMs = Math.min(POLL_MAX_MS, pollMs * 1.5)) {
        if (!hasUnfinishedBetween(store(), first, last)) return true;
        const leftMs = deadline - performance.now();
        if (leftMs <= 0 || signal?.aborted) return false;
        await pause(Math.min(pollMs, leftMs), undefined, signal ? { signal } : {}).catch(() => {});
      }
    },
  };
}
