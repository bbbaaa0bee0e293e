import { mergeText } from '../store/word-index/merges.ts';
import { type MaintenanceContext, yieldTurn } from './maintenance-context.ts';

/** Number of pages of the word index after which one commit of a merge ends; it may exceed this to finish a term. */
const MERGE_PAGES = 64;

/**
 * Merges the segments of the word index into one, in short commits, because queries read every segment. In PostgreSQL,
 * whose word index has no segments, it does nothing.
 */
export async function mergeWords(context: MaintenanceContext): Promise<void> {
  for (let start = true; ; start = false) {
    const { store } = context.open();
    if (!store.write(() => mergeText(store, { start, pages: MERGE_PAGES }))) return;
    await yieldTurn(context);
  }
}
