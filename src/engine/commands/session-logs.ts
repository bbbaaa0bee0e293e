import { isDeepStrictEqual } from 'node:util';
import { EngineError } from '../errors.ts';
import type { Store } from '../store/open-store.ts';
import * as logs from '../store/session-logs.ts';
import { putInfo } from '../store/store-info.ts';
import { ensureWriter } from '../store/writers.ts';
import {
  MAX_LOG_ITEMS,
  MAX_REPLACED_ITEMS,
  type ErasureFilter,
  type LogChange,
  type LogItem,
  type LogPlace,
  type LogReceipt,
} from '../types.ts';
import { ERASE_PENDING } from './erase.ts';
import { refuseOverQuota, type Quota } from './quota.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Writes items to the end of a log, in place of those at its end that the change replaces.
 * @throws EngineError as `SessionLogs.changeLog`
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
  if (items.length > 0) refuseOverQuota(context, quota, 0);

  log ??= logs.insertLog(store, place, now);
  if (first < before) log = logs.cutLog(store, log, first, now);
  log = logs.appendItems(store, log, items, { writerNo: ensureWriter(store, context.writtenBy), now });
  const receipt = { first, removed: before - first, total: log.items, replayed: false };
  if (operation) logs.putOperation(store, operation, { logNo: log.logNo, reply: receipt, now });
  return receipt;
}

/** Takes the newest item off a log. @throws EngineError `conflict` for another `ifTotal` */
export function popLog(
  { store, now }: WriteContext,
  { place, ifTotal }: { readonly place: LogPlace; readonly ifTotal?: number | undefined },
): { readonly popped: LogItem | null; readonly total: number } {
  const log = logs.findLog(store, place);
  requireTotal(log?.items ?? 0, ifTotal);
  if (log === undefined || log.items === 0) return { popped: null, total: 0 };
  const [popped = null] = logs.readItems(store, log, log.items - 1, log.items);
  const { items: total } = logs.cutLog(store, log, log.items - 1, now);
  return { popped, total };
}

/** Empties a log for every reader; `eraseLogItems` erases the items. @returns the number of items that it had */
export function clearLog({ store, now }: WriteContext, { place }: { readonly place: LogPlace }): number {
  const log = logs.findLog(store, place);
  if (log === undefined || log.items === 0) return 0;
  logs.replaceLog(store, place, log, now);
  return log.items;
}

/** Takes at most `limit` logs that match a filter from their users; `eraseLogItems` erases the items. */
export function abandonLogs(
  { store }: WriteContext,
  { filter, limit }: { readonly filter: ErasureFilter; readonly limit: number },
): number {
  return logs.abandonLogs(store, filter, limit);
}

/**
 * Erases what the writers of a filter wrote into one log that matches it.
 * @returns the number of items; 0 if no log that matches has any
 */
export function eraseItemsOfWriters(
  { store, now }: WriteContext,
  { filter }: { readonly filter: ErasureFilter },
): number {
  const erased = logs.eraseItemsOfWriters(store, filter, now);
  if (erased > 0) putInfo(store, ERASE_PENDING, String(now));
  return erased;
}

/** Erases one slice of the items of logs that nobody sees any more. */
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

/** Returns the position at which the items of a change begin. */
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
  const there = log === undefined || from < 0 ? [] : logs.readItems(store, log, from, total);
  const isAsExpected =
    there.length === replaces.expected.length &&
    there.every(({ item }, index) => isDeepStrictEqual(item, replaces.expected[index]));
  if (!isAsExpected) throw new EngineError('conflict', 'the log does not end in the expected items');
  return from;
}
