import { joinSomeText } from '../store/word-index/merges.ts';
import { type MaintenanceContext, yieldTurn } from './maintenance-context.ts';

/**
 * Joins the old blocks of the word index of a tenant in PostgreSQL, in short commits; does nothing for a file. Each
 * stores the place that is reached, so the work can be stopped at any time and continues from there, in any process.
 * @throws AbortError if the signal is aborted
 */
export async function joinWords(context: MaintenanceContext): Promise<void> {
  while (joinSomeText(context.open().store)) await yieldTurn(context);
}
