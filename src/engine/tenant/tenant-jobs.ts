import { decodeReceipt } from '../commands/write-receipt.ts';
import { removeUpload } from '../documents/uploads.ts';
import type { Tenant } from '../engine.ts';
import { jobNoRange, unfinishedBetween } from '../store/job-views.ts';
import type { Store } from '../store/open-store.ts';
import type { TenantOptions } from './tenant-options.ts';
import type { Erasure } from './tenant-erasure.ts';
import type { TenantState } from './tenant-state.ts';

type JobMethods = Pick<
  Tenant,
  | 'getJob'
  | 'findJobs'
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
export function createJobMethods(options: TenantOptions, { eraseAbandoned }: Erasure, state: TenantState): JobMethods {
  const { path, metrics, readers, writer, dispatcher } = options;
  const store = () => options.open().store;
  const unfinished = (from: number, to: number, limit: number) =>
    seen((opened) => unfinishedBetween(opened, from, to, limit));
  return {
    getJob: (id) => readers.readFew(path, 'getJob', { id }),
    findJobs: (ids) => readers.read(path, 'findJobs', { ids }),
    listJobs: (filter) => readers.read(path, 'listJobs', filter),
    countJobs: () => readers.readFew(path, 'countJobs', {}),
    countWaitingJobs: () => readers.read(path, 'countWaiting', {}),
    countActiveJobs: () => readers.readFew(path, 'countActive', {}),
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
      const { oldest, newest } = seen(jobNoRange);
      const range = { first: Math.max(first, oldest), last: Math.min(last, newest) };
      return state.waits.wait(unfinished, { ...range, timeoutMs, signal });
    },
  };

  /**
   * Reads the ledger, and makes later reads see a state at least as new: the writes of a write receipt, and their work
   * that has ended. Without this, a read from a standby could miss them.
   */
  function seen<T>(work: (opened: Store) => T): T {
    const opened = store();
    const result = opened.read(() => work(opened));
    readers.see(path, opened.position);
    return result;
  }
}
