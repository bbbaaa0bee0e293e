/**
 * Erases the items of writers from session logs, in slices of bounded work. The items that stay move to the front of
 * their log, each in exchange with one that goes, until all that go stand at the end of the log and are cut off. So
 * after each slice the positions of a log have no gap, and a page is found by its position.
 */

import type { ErasureFilter } from '../types.ts';
import type { Store } from './open-store.ts';
import { abandonWithOperations, cutLog, type LogRow, matchingLogs } from './session-logs.ts';
import { isByOneOf } from './writers.ts';

/** How far the erasure has come in one log: items before `first` stay, and those from there to before `next` go. */
export interface LogProgress {
  readonly logNo: number;
  readonly first: number;
  readonly next: number;
  /** Time of the item before `next`, Unix ms, by which is seen whether the log was cut off before it; 0 without one. */
  readonly lastAt: number;
}

/** Result of one slice of `eraseItemsOfWriters`. */
export interface ErasedLogItems {
  /** Number of items that were erased; 0 as well while items are moved. */
  readonly items: number;
  /** Where the next slice begins; null if it begins with another log. */
  readonly progress: LogProgress | null;
  /** True if no log that matches has an item of the writers. */
  readonly isDone: boolean;
}

/** Most items that one slice looks at, exchanges with others, and erases. One exchange takes some 30 µs. */
const LOOKED_AT = 1_000;
const EXCHANGED = 200;
const ERASED = 500;
/** Most bytes of the items that one slice looks at, exchanges or erases, unless a single item has more. */
const MAX_BYTES = 2 * 1024 * 1024;

interface ItemRow {
  readonly position: number;
  readonly createdAt: number;
  readonly bytes: number;
  /** 1 if one of the writers wrote the item. */
  readonly goes: number;
}

/**
 * Moves or erases some of the items that the writers of a filter wrote into one log that matches the filter. A reader
 * between two slices sees the items that stay in their order, and some of those that go later than they were written.
 * A log without items left is taken from its user. Call inside a write, until `isDone`.
 * @param progress what the slice before returned; null for the first
 */
export function eraseItemsOfWriters(
  store: Store,
  filter: ErasureFilter,
  { progress, now }: { readonly progress: LogProgress | null; readonly now: number },
): ErasedLogItems {
  const known = progress === null ? undefined : findKnown(store, progress);
  const log = known ?? findLogOfWriters(store, filter);
  if (log === undefined) return { items: 0, progress: null, isDone: true };
  const writers = JSON.stringify(filter.writtenBy);
  const from = known === undefined || progress === null ? beginningOf(log) : progress;
  const looked = listItems(store, log, { writers, from: from.next, backwards: false, limit: LOOKED_AT });
  if (looked.length > 0) return { items: 0, progress: moveForward(store, looked, writers, from), isDone: false };
  return { ...cutEnd(store, log, { writers, from, now }), isDone: false };
}

const beginningOf = ({ logNo }: LogRow): LogProgress => ({ logNo, first: 0, next: 0, lastAt: 0 });

/** Finds the log of a slice before; undefined if it was taken from its user, or cut off before `next`. */
function findKnown(store: Store, { logNo, next, lastAt }: LogProgress): LogRow | undefined {
  const log = store
    .prepare('SELECT log_no AS logNo, items FROM session_logs WHERE log_no = ? AND user_id IS NOT NULL')
    .get(logNo) as LogRow | undefined;
  if (log === undefined || next === 0) return log;
  const at = store
    .prepare('SELECT created_at FROM session_log_items WHERE log_no = ? AND position = ?')
    .pluck()
    .get(logNo, next - 1);
  return at === lastAt ? log : undefined;
}

function findLogOfWriters(store: Store, filter: ErasureFilter): LogRow | undefined {
  if (filter.writtenBy === undefined) return undefined;
  const { conditions, values } = matchingLogs(filter);
  return store
    .prepare(
      `SELECT i.log_no AS logNo, l.items FROM session_log_items i JOIN session_logs l ON l.log_no = i.log_no
       WHERE ${isByOneOf('i.writer_no')} AND i.writer_no > 0 AND ${conditions} LIMIT 1`,
    )
    .get(JSON.stringify(filter.writtenBy), ...values) as LogRow | undefined;
}

/**
 * Reads what is known of the items of a log from a position on, in their order, or backwards from the last one to that
 * position. Whose an item is stands after its text, which SQLite then has to walk through, so there are few long ones.
 */
function listItems(
  store: Store,
  { logNo }: LogRow,
  { writers, from, backwards, limit }: { writers: string; from: number; backwards: boolean; limit: number },
): ItemRow[] {
  const part = `FROM session_log_items WHERE log_no = ? AND position >= ?
    ORDER BY position ${backwards ? 'DESC' : 'ASC'} LIMIT ?`;
  const sizes = store.prepare(`SELECT octet_length(item) ${part}`).pluck().all(logNo, from, limit) as number[];
  return store
    .prepare(
      `SELECT position, created_at AS createdAt, octet_length(item) AS bytes,
         ${isByOneOf('writer_no')} AND writer_no IS NOT NULL AS goes ${part}`,
    )
    .all(writers, logNo, from, fitting(sizes)) as ItemRow[];
}

/** Returns how many of the first items have at most `MAX_BYTES` together; at least one, if there is one. */
function fitting(sizes: readonly number[]): number {
  let left = MAX_BYTES;
  const beyond = sizes.findIndex((size, index) => (left -= size) < 0 && index > 0);
  return beyond === -1 ? sizes.length : beyond;
}

/** Exchanges the next items that stay with the first ones that go. @returns null if the log is not as it was */
function moveForward(
  store: Store,
  looked: readonly ItemRow[],
  writers: string,
  { logNo, ...before }: LogProgress,
): LogProgress | null {
  const read = store.prepare(
    `SELECT created_at AS createdAt, octet_length(item) AS bytes,
       ${isByOneOf('writer_no')} AND writer_no IS NOT NULL AS goes
     FROM session_log_items WHERE log_no = ? AND position = ?`,
  );
  const move = store.prepare('UPDATE session_log_items SET position = ? WHERE log_no = ? AND position = ?');
  let { first, next, lastAt } = before;
  let exchanged = 0;
  let left = MAX_BYTES;
  for (const { position, createdAt, bytes, goes } of looked) {
    let at = createdAt;
    if (!goes && first < position) {
      const hole = read.get(writers, logNo, first) as Omit<ItemRow, 'position'>;
      // Another erasure moves items of this log, too.
      if (!hole.goes) return null;
      left -= bytes + hole.bytes;
      if (exchanged === EXCHANGED || (left < 0 && exchanged > 0)) break;
      move.run(-1, logNo, first);
      move.run(first, logNo, position);
      move.run(position, logNo, -1);
      exchanged += 1;
      at = hole.createdAt;
    }
    if (!goes) first += 1;
    next = position + 1;
    lastAt = at;
  }
  return { logNo, first, next, lastAt };
}

/** Erases the newest items of a log, all of which go from `from.first` on. */
function cutEnd(
  store: Store,
  log: LogRow,
  { writers, from, now }: { readonly writers: string; readonly from: LogProgress; readonly now: number },
): Pick<ErasedLogItems, 'items' | 'progress'> {
  const newest = listItems(store, log, { writers, from: from.first, backwards: true, limit: ERASED });
  const staying = newest.findIndex(({ goes }) => !goes);
  const items = staying === -1 ? newest.length : staying;
  const left = items === 0 ? log : cutLog(store, log, log.items - items, now);
  if (left.items === 0) abandonWithOperations(store, log.logNo);
  if (staying !== -1 || left.items <= from.first) return { items, progress: null };
  const next = left.items;
  const lastAt = store
    .prepare('SELECT created_at FROM session_log_items WHERE log_no = ? AND position = ?')
    .pluck()
    .get(log.logNo, next - 1) as number;
  return { items, progress: { logNo: log.logNo, first: from.first, next, lastAt } };
}
