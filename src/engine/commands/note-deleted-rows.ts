import { putInfo } from '../store/store-info.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Key of the entry in `store_info` that is set when rows with texts were deleted that are in no word index. Until the
 * write-ahead log is moved and emptied, their former pages are still in the log and in the file. `cleanAfterErase` does
 * that.
 */
export const LOG_PENDING = 'log_pending';

/** Sets `LOG_PENDING`, except in PostgreSQL, whose log is its own. Call inside a write. */
export function noteDeletedRows({ store, now }: Pick<WriteContext, 'store' | 'now'>): void {
  if (store.words === null) putInfo(store, LOG_PENDING, String(now));
}
