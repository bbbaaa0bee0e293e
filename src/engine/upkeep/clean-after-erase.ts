import { ERASE_PENDING } from '../commands/erase.ts';
import { deleteInfoIf, findInfo, hasInfo } from '../store/store-info.ts';
import { reindexWaiting, WAITING_CONTEXTS } from '../store/word-index/waiting-contexts.ts';
import { moveLog } from './checkpoint.ts';
import { type MaintenanceContext, yieldTurn } from './maintenance-context.ts';
import { mergeWords } from './merge-words.ts';

/**
 * Removes the last traces of deleted text: writes the words of memories anew that wait for it, since their former
 * contexts may contain deleted words; merges the word index, whose old segments still contain them; and empties the
 * log, which still contains the deleted pages. In the file itself `secure_delete` overwrites rows as they are deleted.
 * In PostgreSQL only the words are written anew. If a reader still uses an old snapshot, the next call tries again.
 * @returns true if all that was erased before the call was cleaned; false if nothing was erased, or if something is
 *   left for the next call
 */
export async function cleanAfterErase(context: MaintenanceContext): Promise<boolean> {
  const mark = findInfo(context.open().store, ERASE_PENDING);
  if (mark === undefined) return false;
  await reindexAllWaiting(context);
  await mergeWords(context);
  const { store } = context.open();
  if (!moveLog(context, 'TRUNCATE')) return false; // A reader still uses an old snapshot; the next round tries again.
  store.write(() => {
    // Only if nothing was erased meanwhile.
    deleteInfoIf(store, ERASE_PENDING, mark);
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
