import { setState } from '../store/dynamics.ts';
import { forgetEndedJobs, insertJob, restartJobs } from '../store/jobs.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Adds work on memories to the ledger: a step, and the steps that follow it. They are added to a memory's unfinished
 * job if it has one, else to a new job. A job that still waits for `encode` is not moved to `link`, since it links
 * afterwards anyway. Where it adds a job, it deletes at most 100 of the memory's ended jobs beyond the newest 100. With
 * `encode` the memory's state becomes `queued`. Call it inside a write transaction.
 */
export function enqueueSteps(
  context: Pick<WriteContext, 'store' | 'now' | 'newId' | 'trace'>,
  memoryNos: readonly number[],
  step: 'encode' | 'link',
): void {
  const { store, now, trace } = context;
  const restarted = restartJobs(store, memoryNos, step, { now, trace });
  for (const memoryNo of memoryNos) {
    if (!restarted.has(memoryNo)) {
      forgetEndedJobs(store, memoryNo);
      insertJob(store, { id: context.newId(), memory: memoryNo, step, bulk: false, trace, now });
    }
    if (step === 'encode') setState(store, memoryNo, 'queued');
  }
}

/** Adds work on one memory as `enqueueSteps` does. */
export function enqueueStep(context: Parameters<typeof enqueueSteps>[0], memoryNo: number, step: 'encode' | 'link') {
  enqueueSteps(context, [memoryNo], step);
}
