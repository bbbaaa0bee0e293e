import type { WriteCommandName } from './commands.ts';

/**
 * Writes that Cairn makes on its own account, and after which no caller expects to read something new. A read from a
 * standby need not wait for them: each query makes a write of this kind, and a standby would count as behind whenever a
 * tenant is asked often.
 */
const UPKEEP_WRITES: ReadonlySet<WriteCommandName> = new Set<WriteCommandName>([
  'applyRecalls',
  'logRecalls',
  'renewItems',
  'recordAction',
  'appendEmbedLog',
  'appendEvalRun',
  'takeDispatchBatch',
  'returnDispatchBatch',
  'forgetDispatchMarks',
  'recoverLeases',
  'claimRun',
  'renewRun',
  'releaseRun',
  'claimDue',
  'noteAnswers',
  'handEvents',
  'claimDeliveries',
  'storeDeliveryOutcomes',
  'putStandingVectors',
  'open',
]);

/**
 * Tells whether reads that begin after a write was answered must see it: false for the writes in `UPKEEP_WRITES`, true
 * for all others.
 */
export function mustBeSeen(name: WriteCommandName): boolean {
  return !UPKEEP_WRITES.has(name);
}
