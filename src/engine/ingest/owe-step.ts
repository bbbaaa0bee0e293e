import { insertJob, restartJob } from '../store/jobs.ts';
import { setState } from '../store/dynamics.ts';
import type { WriteContext } from '../writer/write-context.ts';

/** Puts a memory's step (and what follows it) into the ledger, by way of its unfinished job if it has one. */
export function oweStep(
  context: Pick<WriteContext, 'store' | 'now' | 'newId'>,
  memory: number,
  step: 'encode' | 'link',
): void {
  const { store, now } = context;
  if (restartJob(store, memory, step, now) === undefined) {
    insertJob(store, { id: context.newId(), memory, step, bulk: false, now });
  }
  if (step === 'encode') setState(store, memory, 'queued');
}
