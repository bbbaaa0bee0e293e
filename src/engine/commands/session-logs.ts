import { isDeepStrictEqual } from 'node:util';
import { EngineError } from '../errors.ts';
import type { Store } from '../store/open-store.ts';
import * as logs from '../store/session-logs.ts';
import { putInfo } from '../store/store-info.ts';
import { ensureWriter } from '../store/writers.ts';
import {
  eraseItemsOfWriters as eraseItems,
  type ErasedLogItems,
  type LogProgress,
} from '../store/writers-log-items.ts';
import {
  MAX_LOG_ITEMS,
  MAX_REPLACED_BYTES,
  MAX_REPLACED_ITEMS,
  type ErasureFilter,
  type LogChange,
  type LogItem,
  type LogPlace,
  type LogReceipt,
} from '../types.ts';
import { ERASE_PENDING } from './erase.ts';
import { noteDeletedRows } from './note-deleted-rows.ts';
import { refuseOverQuota, type Quota } from './quota.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Appends items to a log, or replaces its last items with them. A change whose `operationId` was applied before returns
 * the receipt of that time.
 * @throws EngineError `conflict` if the log does not have the expected number of items or the expected last items, or
 *   would have more than 100,000, or if `operationId` stands for another change; `invalid` to replace more than 1,000
 *   items, several of more than 8 MiB, or items beyond the end; `storage_full` over the quota
 */
export function changeLog(
  context: WriteContext,
  {
    place,
    change,
    quota = null,
  }: { readonly place: LogPlace; readonly change: LogChange; readonly quota?: Quota | null },
): LogReceipt {
  const { store, now } = context;
  const { items, replaces, operationId, ifTotal } = change;
  const operation = operationId !== undefined && {
    place,
    operationId,
    content: JSON.stringify([replaces ?? null, items, ifTotal ?? null]),
  };
  const done = operation && logs.findOperation(store, operation);
  if (done) return done;
  let log = logs.findLog(store, place);
  const before = log?.items ?? 0;
  requireTotal(before, ifTotal);
  const first = startOf(store, log, replaces);
  if (first + items.length > MAX_LOG_ITEMS) {
    throw new EngineError('conflict', `the log has ${before} items, at most ${MAX_LOG_ITEMS} are allowed: clear it`);
  }
  // A change without effect makes no log, whose row no delete would free.
  if (items.length === 0 && first === before && !operation) {
    return { first, removed: 0, total: before, replayed: false };
  }
  // Where nothing is removed, the row of an operation takes room as well.
  if (items.length > 0 || log === undefined || first === before) refuseOverQuota(context, quota, 0);

  if (log !== undefined && before - first > 1) requireFewBytes(logs.bytesFrom(store, log, first));
  log ??= logs.insertLog(store, place, now);
  if (first < before) {
    log = logs.cutLog(store, log, first, now);
    noteDeletedRows(context);
  }
  log = logs.appendItems(store, log, items, { writerNo: ensureWriter(store, context.writtenBy), now });
  const receipt = { first, removed: before - first, total: log.items, replayed: false };
  if (operation) logs.putOperation(store, operation, { log, reply: receipt, now });
  return receipt;
}

/**
 * Removes the last item from a log. `popped` is that item, null if the log has none; `total` is the number of items
 * that remain.
 * @throws EngineError `conflict` if the log has another number of items than `ifTotal`
 */
export function popLog(
  context: WriteContext,
  { place, ifTotal }: { readonly place: LogPlace; readonly ifTotal?: number | undefined },
): { readonly popped: LogItem | null; readonly total: number } {
  const { store, now } = context;
  const log = logs.findLog(store, place);
  requireTotal(log?.items ?? 0, ifTotal);
  if (log === undefined || log.items === 0) return { popped: null, total: 0 };
  const [popped = null] = logs.readItems(store, log, log.items - 1, log.items);
  const { items: total } = logs.cutLog(store, log, log.items - 1, now);
  noteDeletedRows(context);
  return { popped, total };
}

/**
 * Empties a log at once; `eraseLogItems` erases the items later.
 * @returns the number of items that it had
 */
export function clearLog({ store, now }: WriteContext, { place }: { readonly place: LogPlace }): number {
  const log = logs.findLog(store, place);
  if (log === undefined || log.items === 0) return 0;
  logs.replaceLog(store, place, log, now);
  return log.items;
}

/**
 * Makes at most `limit` logs that match a filter unreadable; `eraseLogItems` erases their items later.
 * @returns their number
 */
export function abandonLogs(
  { store }: WriteContext,
  { filter, limit }: { readonly filter: ErasureFilter; readonly limit: number },
): number {
  return logs.abandonLogs(store, filter, limit);
}

/**
 * Takes one step towards erasing the items that the writers of a filter wrote into session logs that match the filter:
 * it erases some of them, or first exchanges their places with items that stay. The caller repeats the call, with
 * `progress` of the step before, until `isDone` is true.
 * @param progress null for the first step
 */
export function eraseItemsOfWriters(
  { store, now }: WriteContext,
  { filter, progress }: { readonly filter: ErasureFilter; readonly progress: LogProgress | null },
): ErasedLogItems {
  const slice = eraseItems(store, filter, { progress, now });
  if (slice.items > 0) putInfo(store, ERASE_PENDING, String(now));
  return slice;
}

/**
 * Erases some of the items, at most `limit`, of logs that can no longer be read. `isDone` is true if there was no such
 * log.
 */
export function eraseLogItems(
  { store, now }: WriteContext,
  { limit }: { readonly limit: number },
): { readonly items: number; readonly isDone: boolean } {
  const slice = logs.eraseLogItems(store, limit);
  if (!slice.isDone) putInfo(store, ERASE_PENDING, String(now));
  return slice;
}

function requireTotal(total: number, wanted: number | undefined): void {
  if (wanted === undefined || wanted === total) return;
  throw new EngineError('conflict', `the log has ${total} items, not ${wanted}`);
}

/**
 * Checks that the items which one change replaces have at most 8 MiB (`MAX_REPLACED_BYTES`) together.
 * @throws EngineError `invalid` if they have more
 */
function requireFewBytes(bytes: number): void {
  if (bytes <= MAX_REPLACED_BYTES) return;
  throw new EngineError('invalid', `${bytes} bytes of items would be replaced, at most ${MAX_REPLACED_BYTES} can be`);
}

/**
 * Returns the position at which a change begins: that of the first item to replace, or the end of the log.
 * @throws EngineError `invalid` for more items than may be replaced, and for a position after the end; `conflict` if
 *   the log does not end in the expected items
 */
function startOf(store: Store, log: logs.LogRow | undefined, replaces: LogChange['replaces']): number {
  const total = log?.items ?? 0;
  if (replaces === undefined) return total;
  const from = 'from' in replaces ? replaces.from : total - replaces.expected.length;
  if (total - from > MAX_REPLACED_ITEMS) {
    throw new EngineError('invalid', `${total - from} items would be replaced, at most ${MAX_REPLACED_ITEMS} can be`);
  }
  if ('from' in replaces) {
    if (from > total) throw new EngineError('invalid', `from: the log has ${total} items, expected 0..${total}`);
    return from;
  }
  // Items that are much larger than the expected ones are not read: they are others.
  const bytes = Buffer.byteLength(JSON.stringify(replaces.expected));
  const isThere = log !== undefined && from >= 0 && logs.bytesFrom(store, log, from) <= 2 * bytes;
  const there = isThere ? logs.readItems(store, log, from, total) : [];
  const isAsExpected =
    there.length === replaces.expected.length &&
    there.every(({ item }, index) => isDeepStrictEqual(item, replaces.expected[index]));
  if (!isAsExpected) throw new EngineError('conflict', 'the log does not end in the expected items');
  return from;
}
