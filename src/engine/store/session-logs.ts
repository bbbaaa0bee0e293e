/** Session logs: the JSON items of a session in their order, and the changes that their callers named. */
import { timingSafeEqual } from 'node:crypto';
import { assert, EngineError } from '../errors.ts';
import type { ErasureFilter, Json, LogItem, LogPage, LogPlace, LogReceipt } from '../types.ts';
import { keyedHash } from './keyed-hash.ts';
import type { Store } from './open-store.ts';
import { parseStored } from './stored-json.ts';
import { findInfo } from './store-info.ts';
import { isByOneOf, writerOf } from './writers.ts';

/** The session log of one session of a user: its number in the file, and its length. */
export interface LogRow {
  readonly logNo: number;
  /** Number of items, which is the position of the next one. */
  readonly items: number;
}

/** Most bytes of items on one page; it has at least one item. */
const PAGE_BYTES = 1024 * 1024;

/** Finds the log of a session of a user; undefined for a session that never had one. */
export function findLog(store: Store, { userId, sessionId }: LogPlace): LogRow | undefined {
  return store
    .prepare('SELECT log_no AS logNo, items FROM session_logs WHERE user_id = ? AND session_id = ?')
    .get(userId, sessionId) as LogRow | undefined;
}

/** Adds an empty log for a session that has none, at the time `now` (Unix ms). Call inside a write. */
export function insertLog(store: Store, { userId, sessionId }: LogPlace, now: number): LogRow {
  const made = store
    .prepare('INSERT INTO session_logs (user_id, session_id, created_at, updated_at) VALUES (?, ?, ?, ?)')
    .run(userId, sessionId, now, now);
  return { logNo: Number(made.lastInsertRowid), items: 0 };
}

/**
 * Adds JSON items to the end of a session log, in their order. Their size and number are not checked here. Call inside
 * a write.
 * @param log         the log as `findLog` or `insertLog` returned it in the same write
 * @param by.writerNo number of the key that wrote the items, as `ensureWriter` returns it; null for nobody
 * @param by.now      time that the items and the log get, Unix ms
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
 * Removes the items of a log from the position `from` on, counted from 0, and sets its time to `now` (Unix ms). Call
 * inside a write.
 * @returns the log with its new length
 */
export function cutLog(store: Store, log: LogRow, from: number, now: number): LogRow {
  store.prepare('DELETE FROM session_log_items WHERE log_no = ? AND position >= ?').run(log.logNo, from);
  return setLength(store, log, from, now);
}

function setLength(store: Store, { logNo }: LogRow, items: number, now: number): LogRow {
  store.prepare('UPDATE session_logs SET items = ?, updated_at = ? WHERE log_no = ?').run(items, now, logNo);
  return { logNo, items };
}

/** Reads the items of a log from position `from` (counted from 0) up to and without `to`, whatever their size. */
export function readItems(store: Store, { logNo }: LogRow, from: number, to: number): LogItem[] {
  const rows = store
    .prepare(
      `SELECT position, created_at AS createdAt, item, ${writerOf('session_log_items.writer_no')} AS writtenBy
       FROM session_log_items WHERE log_no = ? AND position >= ? AND position < ? ORDER BY position`,
    )
    .all(logNo, from, to) as (Omit<LogItem, 'item'> & { readonly item: string })[];
  return rows.map((row) => ({ ...row, item: parseStored(row.item) as Json }));
}

/**
 * Reads a page of the log of a session: its newest items, or the newest before the position `before`, in the order of
 * the log. A page has at least one item, at most `limit` (1 or more), and about 1 MiB. A session without a log gives an
 * empty page.
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
  let bytes = 0;
  const beyond = sizes.findIndex((size, index) => (bytes += size) > PAGE_BYTES && index > 0);
  const from = end - (beyond === -1 ? sizes.length : beyond);
  return { items: readItems(store, log, from, end), total: log.items, next: from > 0 ? from : null };
}

/** An item with the log that holds it. */
interface PlacedItem extends Pick<LogItem, 'position' | 'item'> {
  readonly logNo: number;
  readonly place: LogPlace;
}

/**
 * Lists at most `limit` items of the logs of all users, or of one (`userId`), ordered by log and position. The list
 * begins behind the item at `after`, which need not exist; [0, -1] stands before the first.
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

/** Replaces the item at a position of a log; does nothing where there is none. Call inside a write. */
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
 * Empties a log at once for every reader: a new log takes its place and the operations of its callers, and the items
 * are left to `eraseLogItems`. Call inside a write.
 */
export function replaceLog(store: Store, place: LogPlace, log: LogRow, now: number): void {
  abandon(store, log.logNo);
  const next = insertLog(store, place, now);
  store.prepare('UPDATE session_log_operations SET log_no = ? WHERE log_no = ?').run(next.logNo, log.logNo);
}

/**
 * Takes at most `limit` logs that match a filter from their users, with all that names the user. Their items are left
 * to `eraseLogItems`. A filter that names a writer matches no log as a whole. Call inside a write.
 * @returns the number of logs
 */
export function abandonLogs(store: Store, filter: ErasureFilter, limit: number): number {
  const { conditions, values } = matchingLogs(filter);
  if (filter.writtenBy !== undefined || values.length === 0) return 0;
  const logNos = store
    .prepare(`SELECT log_no FROM session_logs l WHERE ${conditions} LIMIT ?`)
    .pluck()
    .all(...values, limit) as number[];
  for (const logNo of logNos) abandonWithOperations(store, logNo);
  return logNos.length;
}

/**
 * Takes what the writers of a filter wrote out of one log that matches it. The items behind move up, so that positions
 * have no gap; in a log of 100,000 items this took 1.4 s on a busy machine. A log that is left without items goes from
 * its user. Call inside a write.
 * @returns the number of items; 0 if no log that matches has any
 */
export function eraseItemsOfWriters(store: Store, filter: ErasureFilter, now: number): number {
  if (filter.writtenBy === undefined) return 0;
  const { conditions, values } = matchingLogs(filter);
  const writtenBy = JSON.stringify(filter.writtenBy);
  const found = store
    .prepare(
      `SELECT i.log_no AS logNo, l.items FROM session_log_items i JOIN session_logs l ON l.log_no = i.log_no
       WHERE ${isByOneOf('i.writer_no')} AND i.writer_no > 0 AND ${conditions} LIMIT 1`,
    )
    .get(writtenBy, ...values) as LogRow | undefined;
  if (found === undefined) return 0;
  const { logNo } = found;
  const erased = store
    .prepare(`DELETE FROM session_log_items WHERE log_no = ? AND ${isByOneOf('writer_no')} RETURNING position`)
    .pluck()
    .all(logNo, writtenBy) as number[];
  closeGaps(store, logNo, Math.min(...erased));
  const { items } = setLength(store, found, found.items - erased.length, now);
  if (items === 0) abandonWithOperations(store, logNo);
  return erased.length;
}

/** Gives the items behind a position the positions from there on, in their order. */
function closeGaps(store: Store, logNo: number, from: number): void {
  const behind = store
    .prepare('SELECT position FROM session_log_items WHERE log_no = ? AND position > ? ORDER BY position')
    .pluck()
    .all(logNo, from) as number[];
  const move = store.prepare('UPDATE session_log_items SET position = ? WHERE log_no = ? AND position = ?');
  behind.forEach((position, index) => move.run(from + index, logNo, position));
}

/** Makes the SQL conditions on logs, as `l`, that match a filter. No log has tags or files. */
function matchingLogs(filter: ErasureFilter): { readonly conditions: string; readonly values: readonly string[] } {
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

function abandon(store: Store, logNo: number): void {
  store.prepare('UPDATE session_logs SET user_id = NULL, session_id = NULL WHERE log_no = ?').run(logNo);
}

/** Takes a log from its user for good, and leaves tombstones of its operations. */
function abandonWithOperations(store: Store, logNo: number): void {
  abandon(store, logNo);
  store.prepare('UPDATE session_log_operations SET content_hash = NULL, reply = NULL WHERE log_no = ?').run(logNo);
}

/**
 * Erases at most `limit` items of logs that nobody sees any more, and such logs without items. Call inside a write.
 * @returns the number of items, and whether nothing is left to erase
 */
export function eraseLogItems(store: Store, limit: number): { readonly items: number; readonly isDone: boolean } {
  const logNo = store.prepare('SELECT log_no FROM session_logs WHERE user_id IS NULL LIMIT 1').pluck().get() as
    number | undefined;
  if (logNo === undefined) return { items: 0, isDone: true };
  const items = store
    .prepare(
      `DELETE FROM session_log_items WHERE log_no = ? AND position IN
         (SELECT position FROM session_log_items WHERE log_no = ? LIMIT ?)`,
    )
    .run(logNo, logNo, limit).changes;
  if (items < limit) store.prepare('DELETE FROM session_logs WHERE log_no = ?').run(logNo);
  return { items, isDone: false };
}

/** Tells whether `eraseLogItems` has anything to do. */
export function hasAbandonedLogs(store: Store): boolean {
  return store.prepare('SELECT 1 FROM session_logs WHERE user_id IS NULL LIMIT 1').get() !== undefined;
}

// ── Operations ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** A change of a session log to which its caller gave an id, so that a repeated request changes nothing. */
export interface LogOperation {
  readonly place: LogPlace;
  readonly operationId: string;
  /** JSON of all that the change asks for. */
  readonly content: string;
}

/**
 * Finds the reply to an earlier change with this name; undefined if there was none.
 * @throws EngineError `conflict` if that one asked for something else, or if its log was erased
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
 * Stores the reply to a change, so that `findOperation` returns it when the same request comes again. Call it in the
 * write that makes the change, with its time `now` (Unix ms).
 */
export function putOperation(
  store: Store,
  operation: LogOperation,
  { logNo, reply, now }: { readonly logNo: number; readonly reply: LogReceipt; readonly now: number },
): void {
  const { operationHash, contentHash } = hashesOf(store, operation);
  store
    .prepare(
      `INSERT INTO session_log_operations (operation_hash, log_no, content_hash, reply, created_at)
       VALUES (?, ?, ?, ?, ?)`,
    )
    .run(operationHash, logNo, contentHash, JSON.stringify(reply), now);
}

function hashesOf(store: Store, { place, operationId, content }: LogOperation) {
  const secret = findInfo(store, 'idempotency_secret');
  assert(secret !== undefined, 'a migration made the secret of the stored replies');
  const name = JSON.stringify([place.userId, place.sessionId, operationId]);
  return { operationHash: keyedHash(secret, name), contentHash: keyedHash(secret, content) };
}

/** Deletes at most `limit` operations from before a time (Unix ms, excluded). @returns the number deleted */
export function purgeLogOperations(store: Store, before: number, limit: number): number {
  return store
    .prepare(
      `DELETE FROM session_log_operations WHERE operation_hash IN
         (SELECT operation_hash FROM session_log_operations WHERE created_at < ? ORDER BY created_at LIMIT ?)`,
    )
    .run(before, limit).changes;
}
