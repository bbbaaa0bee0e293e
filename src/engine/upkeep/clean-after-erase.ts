import { ERASE_PENDING } from '../commands/erase.ts';
import { LOG_PENDING } from '../commands/note-deleted-rows.ts';
import { deleteInfoIf, findInfos, hasInfo } from '../store/store-info.ts';
import { reindexWaiting, WAITING_CONTEXTS } from '../store/word-index/waiting-contexts.ts';
import { moveLog } from './checkpoint.ts';
import { type MaintenanceContext, yieldTurn } from './maintenance-context.ts';
import { mergeWords } from './merge-words.ts';

/**
 * Removes the last traces of deleted text: writes the words of memories anew that wait for it, since their former
 * contexts may contain deleted words; merges the word index, whose old segments still contain them; and empties the
 * log, which still contains the deleted pages. If only rows were deleted that are in no word index (`LOG_PENDING`), it
 * only empties the log. In the file itself `secure_delete` overwrites rows as they are deleted.
 * In PostgreSQL only the words are written anew. If a reader still uses an old snapshot, the next call tries again.
 * @returns true if all that was erased before the call was cleaned; false if nothing was erased, or if something is
 *   left for the next call
 */
export async function cleanAfterErase(context: MaintenanceContext): Promise<boolean> {
  const marks = findInfos(context.open().store, [ERASE_PENDING, LOG_PENDING]);
  if (marks.size === 0) return false;
  if (marks.has(ERASE_PENDING)) {
    await reindexAllWaiting(context);
    await mergeWords(context);
  }
  const { store } = context.open();
  if (!moveLog(context, 'TRUNCATE')) return false; // A reader still uses an old snapshot; the next round tries again.
  store.write(() => {
    // Only if nothing was erased meanwhile.
    for (const [key, mark] of marks) deleteInfoIf(store, key, mark);
  });
  return true;
}

async function reindexAllWaiting(context: MaintenanceContext): Promise<void> {
  for (;;) {
    const { store } = context.open();
    if (!hasInfo(store, WAITING_CONTEXTS) || !store.write(() => reindexWaiting(store))) return;
    await yieldTurn(context);
  }
}
