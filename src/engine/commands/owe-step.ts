import { setState } from '../store/dynamics.ts';
import { insertJob, restartJob } from '../store/jobs.ts';
import type { WriteContext } from './write-context.ts';

/** Puts a memory's step (and what follows it) into the ledger, by way of its unfinished job if it has one. */
export function oweStep(
  context: Pick<WriteContext, 'store' | 'now' | 'newId' | 'trace'>,
  memory: number,
  step: 'encode' | 'link',
): void {
  const { store, now, trace } = context;
  if (restartJob(store, memory, step, { now, trace }) === undefined) {
    insertJob(store, { id: context.newId(), memory, step, bulk: false, trace, now });
  }
  if (step === 'encode') setState(store, memory, 'queued');
}
