import { ERASE_PENDING } from '../commands/erase.ts';
import { deleteInfoIf, findInfo } from '../store/store-info.ts';
import { moveLog } from './checkpoint.ts';
import type { MaintenanceContext } from './maintenance-context.ts';
import { mergeWords } from './merge-words.ts';

/**
 * Removes the last traces of deleted text: merges the word index, whose old segments still contain the deleted words,
 * and empties the log, which still contains the deleted pages. In the file itself `secure_delete` overwrites rows as
 * they are deleted. If a reader still uses an old snapshot, the next call tries again.
 * @returns true if all that was erased before the call was cleaned; false if nothing was erased, or if something is
 *   left for the next call
 */
export async function cleanAfterErase(context: MaintenanceContext): Promise<boolean> {
  const mark = findInfo(context.open().store, ERASE_PENDING);
  if (mark === undefined) return false;
  await mergeWords(context);
  const { store } = context.open();
  if (!moveLog(context, 'TRUNCATE')) return false; // A reader still uses an old snapshot; the next round tries again.
  store.write(() => {
    // Only if nothing was erased meanwhile.
    deleteInfoIf(store, ERASE_PENDING, mark);
  });
  return true;
}
