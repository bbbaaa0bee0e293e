/**
 * Stores session logs: the JSON items of a session in their order. It also stores the changes to which callers gave an
 * id, so that a repeated request is recognised.
 */

import { timingSafeEqual } from 'node:crypto';
import { assert, EngineError } from '../errors.ts';
import type { ErasureFilter, Json, LogItem, LogPage, LogPlace, LogReceipt } from '../types.ts';
import { keyedHash } from './keyed-hash.ts';
import { putJson } from './json-text.ts';
import type { Store } from './open-store.ts';
import { parseStored } from './stored-json.ts';
import { findInfo } from './store-info.ts';
import { jsonWeight } from './text-sizes.ts';
import { writerOf } from './writers.ts';

/** The session log of one session of a user: its number in the file, and its length. */
export interface LogRow {
  readonly logNo: number;
  /** Number of items, which is also the position of the next one. */
  readonly items: number;
  /** Number under which the operations of the log (changes with an id) are stored. It stays when the log is cleared. */
  readonly operationsNo: number;
}

/** Columns of a `LogRow`, of a log with the alias `l`. */
export const LOG_ROW = 'l.log_no AS logNo, l.items, coalesce(l.operations_no, l.log_no) AS operationsNo';

/** Greatest weight (`jsonWeight`, in bytes) of the items on one page. A page has at least one item in any case. */
const PAGE_BYTES = 1024 * 1024;
/** Greatest size (bytes) of the items that `eraseLogItems` erases, unless a single one is larger. */
const ERASED_BYTES = 2 * 1024 * 1024;
/** Greatest number of operations whose content `eraseLogItems` deletes; each takes some microseconds. */
const ERASED_OPERATIONS = 1_000;
/**
 * Value in place of a log's number: for an operation whose content was erased, and as `operations_no` of a log that was
 * emptied, after another log has taken over its operations.
 */
const NO_LOG = 0;

/** Finds the log of a session of a user; undefined if the session has none. */
export function findLog(store: Store, { userId, sessionId }: LogPlace): LogRow | undefined {
  return store
    .prepare(`SELECT ${LOG_ROW} FROM session_logs l WHERE user_id = ? AND session_id = ?`)
    .get(userId, sessionId) as LogRow | undefined;
}

/**
 * Adds an empty log for a session that has none, with the time `now` (Unix ms). Call inside a write.
 * @param operationsNo number under which the operations of the log are stored; null for the number of the log itself
 */
export function insertLog(
  store: Store,
  { userId, sessionId }: LogPlace,
  now: number,
  operationsNo: number | null = null,
): LogRow {
  const made = store
    .prepare(
      'INSERT INTO session_logs (user_id, session_id, created_at, updated_at, operations_no) VALUES (?, ?, ?, ?, ?)',
    )
    .run(userId, sessionId, now, now, operationsNo);
  const logNo = Number(made.lastInsertRowid);
  return { logNo, items: 0, operationsNo: operationsNo ?? logNo };
}

/**
 * Appends JSON items to a session log, in their order. Their size and number are not checked here. Call inside a write.
 * @param log the log, as `findLog` or `insertLog` returned it in the same write
 * @param by.writerNo number of the writer, as `ensureWriter` returns it; null if it is not known
 * @param by.now time of the items and of the log, Unix ms
 * @returns the log with its new length
 */
export function appendItems(
  store: Store,
  log: LogRow,
  items: readonly Json[],
  { writerNo, now }: { readonly writerNo: number | null; readonly now: number },
): LogRow {
  const insert = store.prepare(
    'INSERT INTO session_log_items (log_no, position, created_at, item, writer_no) VALUES (?, ?, ?, ?, ?)',
  );
  items.forEach((item, place) => insert.run(log.logNo, log.items + place, now, JSON.stringify(item), writerNo));
  return setLength(store, log, log.items + items.length, now);
}

/**
 * Removes the items of a log from the position `from` (counted from 0) on, and sets its time to `now` (Unix ms). Call
 * inside a write.
 * @returns the log with its new length
 */
export function cutLog(store: Store, log: LogRow, from: number, now: number): LogRow {
  store.prepare('DELETE FROM session_log_items WHERE log_no = ? AND position >= ?').run(log.logNo, from);
  return setLength(store, log, from, now);
}

function setLength(store: Store, log: LogRow, items: number, now: number): LogRow {
  store.prepare('UPDATE session_logs SET items = ?, updated_at = ? WHERE log_no = ?').run(items, now, log.logNo);
  return { ...log, items };
}

/** Returns the size of the items of a log from the position `from` (counted from 0) on, in bytes. */
export function bytesFrom(store: Store, { logNo }: LogRow, from: number): number {
  return store
    .prepare('SELECT coalesce(sum(octet_length(item)), 0) FROM session_log_items WHERE log_no = ? AND position >= ?')
    .pluck()
    .get(logNo, from) as number;
}

/**
 * Reads the items of a log from the position `from` (counted from 0) to before `to`, whatever their size. A long JSON
 * value is parsed when it is first read.
 */
export function readItems(store: Store, { logNo }: LogRow, from: number, to: number): LogItem[] {
  const rows = store
    .prepare(
      `SELECT position, created_at AS createdAt, item, ${writerOf('session_log_items.writer_no')} AS writtenBy
       FROM session_log_items WHERE log_no = ? AND position >= ? AND position < ? ORDER BY position`,
    )
    .all(logNo, from, to) as (Omit<LogItem, 'item'> & { readonly item: string })[];
  return rows.map((row) => {
    const read: LogItem = { ...row };
    putJson(read, 'item', row.item);
    return read;
  });
}

/**
 * Reads a page of the log of a session, in the order of the log: its newest items, or with `before` the newest ones
 * before this position. A page has at most `limit` items (1 or more) of 1 MiB weight together (`jsonWeight`: bytes, and
 * more for small lists and objects), but at least one item. A session without a log has an empty page.
 */
export function readLogPage(
  store: Store,
  place: LogPlace,
  { limit, before = Number.MAX_SAFE_INTEGER }: { readonly limit: number; readonly before?: number | undefined },
): LogPage {
  const log = findLog(store, place);
  if (log === undefined) return { items: [], total: 0, next: null };
  const end = Math.min(before, log.items);
  const sizes = store
    .prepare(
      `SELECT octet_length(item) FROM session_log_items
       WHERE log_no = ? AND position < ? ORDER BY position DESC LIMIT ?`,
    )
    .pluck()
    .all(log.logNo, end, limit) as number[];
  // Items are looked into only if they are few enough to be on the page at all.
  const weights = store
    .prepare(
      `SELECT ${jsonWeight('item')} FROM session_log_items
       WHERE log_no = ? AND position < ? ORDER BY position DESC LIMIT ?`,
    )
    .pluck()
    .all(log.logNo, end, fitting(sizes, PAGE_BYTES)) as number[];
  const from = end - fitting(weights, PAGE_BYTES);
  return { items: readItems(store, log, from, end), total: log.items, next: from > 0 ? from : null };
}

/** Returns how many of the first items have at most `most` bytes by these sizes: at least one, if there is one. */
function fitting(sizes: readonly number[], most: number): number {
  let bytes = 0;
  const beyond = sizes.findIndex((size, index) => (bytes += size) > most && index > 0);
  return beyond === -1 ? sizes.length : beyond;
}

/** An item with the log that holds it. */
interface PlacedItem extends Pick<LogItem, 'position' | 'item'> {
  readonly logNo: number;
  readonly place: LogPlace;
}

/**
 * Lists at most `limit` items of the logs of all users, or of one user, ordered by log and position. The list begins
 * after the position `after`, at which there need not be an item; [0, -1] is before the first item. Items of logs that
 * are being erased are left out.
 */
export function listLogItemsAfter(
  store: Store,
  {
    userId = null,
    after,
    limit,
  }: {
    readonly userId: string | undefined | null;
    readonly after: readonly [logNo: number, position: number];
    readonly limit: number;
  },
): PlacedItem[] {
  const rows = store
    .prepare(
      `SELECT i.log_no AS logNo, i.position, i.item, l.user_id AS userId, l.session_id AS sessionId
       FROM session_log_items i JOIN session_logs l ON l.log_no = i.log_no
       WHERE (i.log_no, i.position) > (?, ?) AND l.user_id = coalesce(?, l.user_id)
       ORDER BY i.log_no, i.position LIMIT ?`,
    )
    .all(...after, userId, limit) as (LogPlace & { logNo: number; position: number; item: string })[];
  return rows.map(({ logNo, position, item, ...place }) => ({
    ...{ logNo, position, place },
    item: parseStored(item) as Json,
  }));
}

/** Replaces the item at a position of a log; does nothing if there is none. Call inside a write. */
export function putLogItem(
  store: Store,
  { logNo, position, item }: Pick<PlacedItem, 'logNo' | 'position' | 'item'>,
): void {
  store
    .prepare('UPDATE session_log_items SET item = ? WHERE log_no = ? AND position = ?')
    .run(JSON.stringify(item), logNo, position);
}

// ── Removal ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Empties a log for every reader at once: a new log takes over the session and the stored operations (changes with an
 * id), whose rows stay as they are. `eraseLogItems` erases the old items later. Call inside a write.
 */
export function replaceLog(store: Store, place: LogPlace, log: LogRow, now: number): void {
  store
    .prepare('UPDATE session_logs SET user_id = NULL, session_id = NULL, operations_no = ? WHERE log_no = ?')
    .run(NO_LOG, log.logNo);
  insertLog(store, place, now, log.operationsNo);
}

/**
 * Hides at most `limit` logs that match a filter from every reader, as `abandonLog` does. A filter with writers, or
 * with neither users nor sessions, matches no log. Call inside a write.
 * @returns the number of logs
 */
export function abandonLogs(store: Store, filter: ErasureFilter, limit: number): number {
  const { conditions, values } = matchingLogs(filter);
  if (filter.writtenBy !== undefined || values.length === 0) return 0;
  const logNos = store
    .prepare(`SELECT log_no FROM session_logs l WHERE ${conditions} LIMIT ?`)
    .pluck()
    .all(...values, limit) as number[];
  for (const logNo of logNos) abandonLog(store, logNo);
  return logNos.length;
}

/**
 * Returns the SQL conditions that a log, with the alias `l`, matches a filter. Logs have no tags and no files, so a
 * filter with these matches none.
 */
export function matchingLogs(filter: ErasureFilter): {
  readonly conditions: string;
  readonly values: readonly string[];
} {
  const { userIds, sessionIds, tags = [], withinTags = [], files } = filter;
  const conditions = ['l.user_id IS NOT NULL'];
  const values: string[] = [];
  if (tags.length + withinTags.length > 0 || files !== undefined) conditions.push('FALSE');
  for (const [column, names] of [
    ['user_id', userIds],
    ['session_id', sessionIds],
  ] as const) {
    if (names === undefined) continue;
    conditions.push(`l.${column} IN (SELECT value FROM json_each(?))`);
    values.push(JSON.stringify(names));
  }
  return { conditions: conditions.join(' AND '), values };
}

/**
 * Hides a log from every reader for good, by removing its user and session. `eraseLogItems` erases its items and the
 * content of its operations (changes with an id) later. Call inside a write.
 */
export function abandonLog(store: Store, logNo: number): void {
  store.prepare('UPDATE session_logs SET user_id = NULL, session_id = NULL WHERE log_no = ?').run(logNo);
}

/**
 * Erases a slice of one log that was taken from its user: the content of at most 1,000 operations (changes with an id),
 * and after the last of them at most `limit` items and 2 MiB, but at least one item, and the log once it has no items.
 * The operations of a log that was cleared stay. Call inside a write.
 * @returns the number of erased items; `isDone` is true if there was no such log
 */
export function eraseLogItems(store: Store, limit: number): { readonly items: number; readonly isDone: boolean } {
  const log = store.prepare(`SELECT ${LOG_ROW} FROM session_logs l WHERE user_id IS NULL LIMIT 1`).get() as
    LogRow | undefined;
  if (log === undefined) return { items: 0, isDone: true };
  if (!eraseOperations(store, log)) return { items: 0, isDone: false };
  const { logNo } = log;
  const first = store
    .prepare(
      `SELECT position, octet_length(item) AS bytes FROM session_log_items WHERE log_no = ?
       ORDER BY position LIMIT ?`,
    )
    .all(logNo, limit) as { readonly position: number; readonly bytes: number }[];
  const sizes = first.map(({ bytes }) => bytes);
  const items = fitting(sizes, ERASED_BYTES);
  const last = first[items - 1];
  if (last !== undefined)
    store.prepare('DELETE FROM session_log_items WHERE log_no = ? AND position <= ?').run(logNo, last.position);
  if (items === first.length && items < limit) store.prepare('DELETE FROM session_logs WHERE log_no = ?').run(logNo);
  return { items, isDone: false };
}

/** Deletes the content of some operations of a log. @returns whether none is left */
function eraseOperations(store: Store, { logNo, operationsNo }: LogRow): boolean {
  if (operationsNo === NO_LOG) return true;
  const { changes } = store
    .prepare(
      `UPDATE session_log_operations SET content_hash = NULL, reply = NULL, log_no = ${NO_LOG} WHERE operation_hash IN
         (SELECT operation_hash FROM session_log_operations WHERE log_no = ? LIMIT ?)`,
    )
    .run(operationsNo, ERASED_OPERATIONS);
  if (changes === ERASED_OPERATIONS) return false;
  store.prepare('UPDATE session_logs SET operations_no = ? WHERE log_no = ?').run(NO_LOG, logNo);
  return true;
}

/** Tells whether `eraseLogItems` has anything to do. */
export function hasAbandonedLogs(store: Store): boolean {
  return store.prepare('SELECT 1 FROM session_logs WHERE user_id IS NULL LIMIT 1').get() !== undefined;
}

// ── Operations ───────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * A change of a session log to which its caller gave an id, so that a repeated request is recognised and changes
 * nothing.
 */
export interface LogOperation {
  readonly place: LogPlace;
  readonly operationId: string;
  /** JSON of everything that the change requests, by which it is compared with a repeated request. */
  readonly content: string;
}

/**
 * Finds the reply to an earlier change with this id, marked as `replayed`; undefined if there was none.
 * @throws EngineError `conflict` if the earlier change asked for something else, or if its log was erased
 */
export function findOperation(store: Store, operation: LogOperation): LogReceipt | undefined {
  const { operationHash, contentHash } = hashesOf(store, operation);
  const row = store
    .prepare('SELECT content_hash, reply FROM session_log_operations WHERE operation_hash = ?')
    .get(operationHash) as { content_hash: Buffer | null; reply: string | null } | undefined;
  if (row === undefined) return undefined;
  if (row.content_hash === null || row.reply === null) {
    throw new EngineError('conflict', 'the log that this operation_id changed was erased; use a new one');
  }
  if (!timingSafeEqual(row.content_hash, contentHash)) {
    throw new EngineError('conflict', 'this operation_id stands for another change of the log; use a new one');
  }
  return { ...(parseStored(row.reply) as LogReceipt), replayed: true };
}

/**
 * Stores the reply to a change, so that `findOperation` returns it if the request is repeated. Call inside the write
 * that makes the change, with its time `now` (Unix ms).
 */
export function putOperation(
  store: Store,
  operation: LogOperation,
  { log, reply, now }: { readonly log: LogRow; readonly reply: LogReceipt; readonly now: number },
): void {
  const { operationHash, contentHash } = hashesOf(store, operation);
  store
    .prepare(
      `INSERT INTO session_log_operations (operation_hash, log_no, content_hash, reply, created_at)
       VALUES (?, ?, ?, ?, ?)`,
    )
    .run(operationHash, log.operationsNo, contentHash, JSON.stringify(reply), now);
}

function hashesOf(store: Store, { place, operationId, content }: LogOperation) {
  const secret = findInfo(store, 'idempotency_secret');
  assert(secret !== undefined, 'a migration made the secret of the stored replies');
  const name = JSON.stringify([place.userId, place.sessionId, operationId]);
  return { operationHash: keyedHash(secret, name), contentHash: keyedHash(secret, content) };
}

/**
 * Deletes at most `limit` stored operations (changes with an id) older than `before` (Unix ms, excluded), oldest first.
 * Call inside a write.
 * @returns the number of deleted operations
 */
export function purgeLogOperations(store: Store, before: number, limit: number): number {
  return store
    .prepare(
      `DELETE FROM session_log_operations WHERE operation_hash IN
         (SELECT operation_hash FROM session_log_operations WHERE created_at < ? ORDER BY created_at LIMIT ?)`,
    )
    .run(before, limit).changes;
}
