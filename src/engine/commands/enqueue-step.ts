import { setState } from '../store/dynamics.ts';
import { forgetEndedJobs, insertJob, restartJob } from '../store/jobs.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Adds work on a memory to the ledger: a step, and the steps that follow it. They are added to the memory's unfinished
 * job if it has one, else to a new job. A job that still waits for `encode` is not moved to `link`, since it links
 * afterwards anyway. Of the memory's ended jobs the newest 100 are kept. Call it inside a write transaction.
 */
export function enqueueStep(
  context: Pick<WriteContext, 'store' | 'now' | 'newId' | 'trace'>,
  memoryNo: number,
  step: 'encode' | 'link',
): void {
  const { store, now, trace } = context;
  if (restartJob(store, memoryNo, step, { now, trace }) === undefined) {
    forgetEndedJobs(store, memoryNo);
    insertJob(store, { id: context.newId(), memory: memoryNo, step, bulk: false, trace, now });
  }
  if (step === 'encode') setState(store, memoryNo, 'queued');
}
