import { setState } from '../store/dynamics.ts';
import { insertJob, restartJob } from '../store/jobs.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Puts a step of a memory, and the steps after it, into the ledger: in its unfinished job if it has one, else in a new
 * one. A job that still waits for its encode links afterwards anyway and stays there. Call it inside a write.
 */
export function oweStep(
  context: Pick<WriteContext, 'store' | 'now' | 'newId' | 'trace'>,
  memoryNo: number,
  step: 'encode' | 'link',
): void {
  const { store, now, trace } = context;
  if (restartJob(store, memoryNo, step, { now, trace }) === undefined) {
    insertJob(store, { id: context.newId(), memory: memoryNo, step, bulk: false, trace, now });
  }
  if (step === 'encode') setState(store, memoryNo, 'queued');
}
