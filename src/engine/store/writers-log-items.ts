/**
 * Erases the items that some writers (keys) wrote into session logs, in slices of bounded work. Within a log, items
 * that are kept swap places with items that are erased, until all items to erase are at the end of the log and can be
 * cut off. So after each slice the positions in a log have no gap, and a page is found by its position.
 */

import type { ErasureFilter } from '../types.ts';
import type { Store } from './open-store.ts';
import { abandonLog, cutLog, LOG_ROW, type LogRow, matchingLogs } from './session-logs.ts';
import { isByOneOf } from './writers.ts';

/**
 * Progress of the erasure in one log, as positions of items from 0: items before `first` are kept, those from `first`
 * to before `next` are to be erased, and those from `next` on were not examined yet. If `next` is 0, the next slice
 * looks for a log with items of the writers, from `walk` on.
 */
export interface LogProgress {
  readonly walk: LogWalk;
  readonly logNo: number;
  readonly first: number;
  readonly next: number;
  /**
   * Time of the item just before `next`, Unix ms; 0 if there is none. A changed value shows that the log was changed
   * meanwhile.
   */
  readonly lastAt: number;
}

/**
 * How far the logs that match a filter with users or sessions were looked through for items of the writers: those of
 * one name after the other, either users or sessions.
 */
interface LogWalk {
  /** Index, in the filter, of the name whose logs are looked through at present, from 0. */
  readonly name: number;
  /** The session of this user, or the user of this session, with which the next slice begins. */
  readonly from: string;
  /**
   * Whether this walk has met items of the writers. If so, another walk follows, since the writers may have written
   * items meanwhile.
   */
  readonly hasMet: boolean;
}

/** Result of one slice of `eraseItemsOfWriters`. */
export interface ErasedLogItems {
  /** Number of items that this slice erased; 0 if it only moved items. */
  readonly items: number;
  /** Progress with which the next slice continues; null if no log is left. */
  readonly progress: LogProgress | null;
  /** Whether no matching log has an item of the writers any more. */
  readonly isDone: boolean;
}

/** Greatest number of items that one slice examines. */
const LOOKED_AT = 1_000;
/** Greatest number of kept items that one slice swaps with others; one swap takes some 30 µs. */
const EXCHANGED = 200;
/** Greatest number of items that one slice erases. */
const ERASED = 500;
/** Greatest number of logs among which one slice looks for one with items of the writers; each takes some 2 µs. */
const LOOKED_LOGS = 1_000;
/** Greatest total size of the items that one slice examines, swaps or erases, in bytes; a single item may be larger. */
const MAX_BYTES = 2 * 1024 * 1024;

interface ItemRow {
  readonly position: number;
  readonly createdAt: number;
  readonly bytes: number;
  /** 1 if one of the writers wrote the item, so that it must be erased; else 0. */
  readonly goes: number;
}

/**
 * Runs one slice of the erasure: moves or erases some of the items that the writers of a filter wrote into one log that
 * matches the filter. Between two slices a reader sees the kept items in their order; items that are still to be erased
 * may be farther back than before. A log without items left is hidden from its user. Call inside a write, until
 * `isDone`.
 * @param progress `progress` of the slice before; null for the first
 */
export function eraseItemsOfWriters(
  store: Store,
  filter: ErasureFilter,
  { progress, now }: { readonly progress: LogProgress | null; readonly now: number },
): ErasedLogItems {
  const known = progress === null ? undefined : findKnown(store, progress);
  const found = known ?? findLogOfWriters(store, filter, progress?.walk ?? BEGINNING);
  if (found === undefined) return { items: 0, progress: null, isDone: true };
  if (isWalk(found)) return { items: 0, progress: { walk: found, ...NO_ITEMS, logNo: 0 }, isDone: false };
  const { log, walk } = found;
  const writers = JSON.stringify(filter.writtenBy);
  const from = known === undefined || progress === null ? beginningOf(found) : progress;
  const looked = listItems(store, log, { writers, from: from.next, backwards: false, limit: LOOKED_AT });
  if (looked.length > 0) return { items: 0, progress: moveForward(store, looked, writers, from), isDone: false };
  return { ...cutEnd(store, { log, walk }, { writers, from, now }), isDone: false };
}

/** A log with items of the writers, and where it was met. */
interface MetLog {
  readonly log: LogRow;
  readonly walk: LogWalk;
}

const BEGINNING: LogWalk = { name: 0, from: '', hasMet: false };
const NO_ITEMS = { first: 0, next: 0, lastAt: 0 };
const isWalk = (found: MetLog | LogWalk): found is LogWalk => !('log' in found);
const beginningOf = ({ log, walk }: { readonly log: Pick<LogRow, 'logNo'>; readonly walk: LogWalk }): LogProgress => ({
  walk,
  logNo: log.logNo,
  ...NO_ITEMS,
});

/**
 * Finds the log of the previous slice; undefined if that was done with it, or if it was hidden from its user, or
 * changed before `next`.
 */
function findKnown(store: Store, { walk, logNo, next, lastAt }: LogProgress): MetLog | undefined {
  if (next === 0) return undefined;
  const log = store
    .prepare(`SELECT ${LOG_ROW} FROM session_logs l WHERE log_no = ? AND user_id IS NOT NULL`)
    .get(logNo) as LogRow | undefined;
  if (log === undefined) return undefined;
  const at = store
    .prepare('SELECT created_at FROM session_log_items WHERE log_no = ? AND position = ?')
    .pluck()
    .get(logNo, next - 1);
  return at === lastAt ? { log, walk } : undefined;
}

/**
 * Finds a matching log with an item of the writers; undefined for none. With users or sessions in the filter only logs
 * of these are looked at, 1,000 at most, each by one entry of the index of writers: a key may have written far more
 * into the logs of others. If none of the 1,000 has such an item, the result says where the next slice begins.
 */
function findLogOfWriters(store: Store, filter: ErasureFilter, walk: LogWalk): MetLog | LogWalk | undefined {
  if (filter.writtenBy === undefined) return undefined;
  const writers = JSON.stringify(filter.writtenBy);
  const { userIds, sessionIds } = filter;
  const names = userIds ?? sessionIds;
  if (names === undefined) {
    const log = findLogOfAnyone(store, filter, writers);
    return log && { log, walk };
  }
  const name = names[walk.name];
  if (name === undefined) return walk.hasMet ? BEGINNING : undefined;
  const [column, key] = userIds === undefined ? ['session_id', 'user_id'] : ['user_id', 'session_id'];
  const { conditions, values } = matchingLogs({
    ...filter,
    [userIds === undefined ? 'sessionIds' : 'userIds']: undefined,
  });
  const logs = `SELECT l.log_no, l.items, l.operations_no, l.${key} AS place FROM session_logs l
    WHERE l.${column} = ? AND l.${key} >= ? AND ${conditions} ORDER BY l.${key}`;
  const asked = [name, walk.from, ...values];
  // A scalar query keeps PostgreSQL from beginning with the items.
  const met = store
    .prepare(
      `SELECT ${LOG_ROW}, l.place FROM (${logs} LIMIT ${LOOKED_LOGS}) AS l
       WHERE (SELECT 1 FROM writers w CROSS JOIN session_log_items i
              WHERE w.key_id IN (SELECT value FROM json_each(?)) AND i.writer_no = w.writer_no
                AND i.log_no = l.log_no AND i.writer_no > 0 LIMIT 1) IS NOT NULL
       ORDER BY l.place LIMIT 1`,
    )
    .get(...asked, writers) as (LogRow & { readonly place: string }) | undefined;
  if (met !== undefined) {
    const { place, ...log } = met;
    return { log, walk: { ...walk, from: place, hasMet: true } };
  }
  const next = store
    .prepare(`SELECT place FROM (${logs} LIMIT 1 OFFSET ${LOOKED_LOGS}) AS l`)
    .pluck()
    .get(...asked);
  return next === undefined ? { ...walk, name: walk.name + 1, from: '' } : { ...walk, from: next as string };
}

/** Finds any log with an item of the writers; undefined for none. */
function findLogOfAnyone(store: Store, filter: ErasureFilter, writers: string): LogRow | undefined {
  return store
    .prepare(
      `SELECT ${LOG_ROW} FROM session_log_items i JOIN session_logs l ON l.log_no = i.log_no
       WHERE ${isByOneOf('i.writer_no')} AND i.writer_no > 0 AND ${matchingLogs(filter).conditions} LIMIT 1`,
    )
    .get(writers) as LogRow | undefined;
}

/**
 * Reads properties of the items of a log, in order from the position `from`, or backwards from the last item to `from`.
 * Their number depends on their sizes: the column with the writer is stored after the item's text, so SQLite has to
 * read through the text.
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

/**
 * Returns how many items from the beginning of a list have at most `MAX_BYTES` together; at least one, if there is one.
 */
function fitting(sizes: readonly number[]): number {
  let left = MAX_BYTES;
  const beyond = sizes.findIndex((size, index) => (left -= size) < 0 && index > 0);
  return beyond === -1 ? sizes.length : beyond;
}

/**
 * Swaps the next items that are kept with the first items that are to be erased.
 * @returns the new progress; from the start of the log if another erasure has changed it meanwhile
 */
function moveForward(
  store: Store,
  looked: readonly ItemRow[],
  writers: string,
  { walk, logNo, ...before }: LogProgress,
): LogProgress {
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
      if (!hole.goes) return beginningOf({ log: { logNo }, walk });
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
  return { walk, logNo, first, next, lastAt };
}

/**
 * Erases the newest items of a log, at most 500, down to the last one that is kept. From `from.first` on, all items are
 * to be erased.
 */
function cutEnd(
  store: Store,
  { log, walk }: MetLog,
  { writers, from, now }: { readonly writers: string; readonly from: LogProgress; readonly now: number },
): Pick<ErasedLogItems, 'items' | 'progress'> {
  const newest = listItems(store, log, { writers, from: from.first, backwards: true, limit: ERASED });
  const staying = newest.findIndex(({ goes }) => !goes);
  const items = staying === -1 ? newest.length : staying;
  const left = items === 0 ? log : cutLog(store, log, log.items - items, now);
  if (left.items === 0) abandonLog(store, log.logNo);
  if (staying !== -1 || left.items <= from.first) return { items, progress: beginningOf({ log, walk }) };
  const next = left.items;
  const lastAt = store
    .prepare('SELECT created_at FROM session_log_items WHERE log_no = ? AND position = ?')
    .pluck()
    .get(log.logNo, next - 1) as number;
  return { items, progress: { walk, logNo: log.logNo, first: from.first, next, lastAt } };
}
