/**
 * The change feed: one row (event) for each change, written in the transaction of the change by whichever process makes
 * it. Triggers write most rows (migrations/0006-logs-and-events.sql); functions of this file append the others.
 */

import { randomBytes } from 'node:crypto';
import { assert, EngineError } from '../errors.ts';
import { EVENT_KINDS, type EventKind, type EventPage, type EventQuery, type FeedEvent } from '../types.ts';
import { type EventRow, readSubjects, type Subject, uuidOf } from './event-subjects.ts';
import { keyedHash } from './keyed-hash.ts';
import type { Store } from './open-store.ts';
import { findInfo } from './store-info.ts';
import { findUserNo } from './users.ts';

/** Greatest number of rows that one read examines. If few events pass a filter, several reads are needed. */
const LOOKED_AT_ONCE = 5_000;
/** Number of rows whose subjects are read together: a page is often full after a few hundred. */
const SUBJECTS_AT_ONCE = 500;
const INSERT_STORED = `INSERT INTO events (at, kind, memory) VALUES (?, ${EVENT_KINDS.indexOf('memory.stored')}, ?)`;
/** SQL that selects whether the change feed is on. */
export const SELECT_FEED = 'SELECT is_on FROM event_feed';
/** SQL for the present time, Unix ms. Triggers use the same expression, since they have no parameters. */
const NOW = `CAST(round(unixepoch('subsec') * 1000) AS INTEGER)`;

// ── The feed as a whole ──────────────────────────────────────────────────────────────────────────────────────────────

/**
 * For each connection, whether the change feed was on in its latest transaction. It is cached because every add needs
 * it.
 */
const found = new WeakMap<Store, { readonly transactionNo: number; readonly isOn: boolean }>();

/** Tells whether the change feed is on, so that changes of this file are recorded as events (`OM_EVENTS`). */
export function hasEvents(store: Store): boolean {
  const { transactionNo } = store;
  const known = found.get(store);
  if (transactionNo !== undefined && known?.transactionNo === transactionNo) return known.isOn;
  const isOn = store.prepare(SELECT_FEED).pluck().get() === 1;
  if (transactionNo !== undefined) found.set(store, { transactionNo, isOn });
  return isOn;
}

/**
 * Switches the change feed on or off, and deletes all its events and the numbers that `keepUserNo` kept. Cursors from
 * before become invalid, since changes in between have no events. Call inside a write.
 */
export function switchEvents(store: Store, isOn: boolean): void {
  found.delete(store);
  store.prepare('DELETE FROM events').run();
  store.prepare('DELETE FROM erased_users').run();
  store.prepare('UPDATE event_feed SET feed_id = ?, is_on = ?').run(randomBytes(4).toString('hex'), isOn ? 1 : 0);
}

/**
 * Makes all cursors invalid and deletes all events, as `switchEvents` does, after a backup was restored: the events
 * since the backup are lost, and their numbers will be given to other events. The feed stays on or off. Call inside a
 * write.
 */
export function renewFeed(store: Store): void {
  switchEvents(store, hasEvents(store));
}

/**
 * Appends the event `memory.stored` with the time `at` (Unix ms); does nothing while the change feed is off. Call
 * inside the write that stores the memory.
 */
export function appendStored(store: Store, memoryNo: number, at: number): void {
  if (hasEvents(store)) store.prepare(INSERT_STORED).run(at, memoryNo);
}

/**
 * Appends the event `standing.answered` (a memory answers a standing query); does nothing while the change feed is off.
 * Call inside the write that stores the answer.
 */
export function appendAnswered(store: Store, memoryNo: number, standingId: string): void {
  if (!hasEvents(store)) return;
  store
    .prepare(`INSERT INTO events (at, kind, memory, subject) VALUES (${NOW}, ?, ?, unhex(replace(?, '-', '')))`)
    .run(EVENT_KINDS.indexOf('standing.answered'), memoryNo, standingId);
}

/**
 * Appends an event about the whole tenant; does nothing while the change feed is off. Call inside the write of the
 * change.
 */
export function appendEvent(store: Store, kind: EventKind): void {
  if (!hasEvents(store)) return;
  store.prepare(`INSERT INTO events (at, kind) VALUES (${NOW}, ?)`).run(EVENT_KINDS.indexOf(kind));
}

/**
 * Deletes at most `limit` of the oldest events: those up to the last one that is older than `before` (Unix ms) or is
 * not among the newest `rows` events. The newest event stays, so that no number is given twice. Events also stay until
 * their deliveries to webhooks were made. Numbers that `keepUserNo` kept are deleted, too, once the oldest event is
 * later than the erasure of their user, and none of the events has the number. Call inside a write.
 * @returns the number of deleted events
 */
export function purgeEvents(
  store: Store,
  { before, rows, limit }: { readonly before: number; readonly rows: number; readonly limit: number },
): number {
  const newest = newestNo(store);
  const { changes } = store
    .prepare(
      `DELETE FROM events WHERE event_no < ? AND event_no <= (
         SELECT max(event_no) FROM (
           SELECT event_no, at FROM events ORDER BY event_no LIMIT ?) WHERE at < ? OR event_no <= ?)`,
    )
    .run(Math.min(newest, 1 + handedOut(store)), limit, before, newest - rows);
  // A user without events needs no number any more. The times alone do not tell, as a clock may have been set back; the
  // events are gone through only if there is such a user.
  store
    .prepare(
      `DELETE FROM erased_users WHERE erased_at < (SELECT at FROM events ORDER BY event_no LIMIT 1)
         AND user_no NOT IN (SELECT user_no FROM events WHERE user_no IS NOT NULL)`,
    )
    .run();
  return changes;
}

/**
 * Returns the number of the last event for which deliveries to webhooks were made, 0 if there is none in this feed; a
 * number above all events if there is no webhook.
 */
function handedOut(store: Store): number {
  const isAny = store.prepare('SELECT 1 FROM webhooks LIMIT 1').get() !== undefined;
  if (!isAny) return Number.MAX_SAFE_INTEGER - 1;
  const inFeed = store
    .prepare('SELECT event_no FROM webhook_cursor WHERE feed_id = (SELECT feed_id FROM event_feed)')
    .pluck()
    .get() as number | undefined;
  return inFeed ?? 0;
}

// ── Users ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Keeps the number of a user whose last memory was erased, as long as the feed has events of the user. The user's name
 * is replaced by a keyed hash of it. Does nothing while the change feed is off. Call inside the write that deletes the
 * name.
 */
export function keepUserNo(store: Store, userNo: number, userId: string): void {
  if (!hasEvents(store)) return;
  store
    .prepare(`INSERT OR REPLACE INTO erased_users (user_no, user_hash, erased_at) VALUES (?, ?, ${NOW})`)
    .run(userNo, hashOfUser(store, userId));
}

/**
 * Returns a number for a user who has none in the file. It is the user's earlier number if `keepUserNo` kept it, else a
 * number that no kept event refers to. Call inside the write that adds the user.
 */
export function takeUserNo(store: Store, userId: string): number {
  const known = findErasedUserNo(store, userId);
  if (known !== undefined) {
    store.prepare('DELETE FROM erased_users WHERE user_no = ?').run(known);
    return known;
  }
  return store
    .prepare(`SELECT 1 + max((SELECT max(user_no) FROM users), (SELECT coalesce(max(user_no), 0) FROM erased_users))`)
    .pluck()
    .get() as number;
}

/** Returns by the user's name the numbers that `keepUserNo` has kept of these users; users without one are left out. */
export function erasedNumbers(store: Store, userIds: ReadonlySet<string>): ReadonlyMap<string, number> {
  const numbers = new Map<string, number>();
  const isAny = store.prepare('SELECT 1 FROM erased_users LIMIT 1').get() !== undefined;
  if (!isAny || userIds.size === 0) return numbers;
  const hashOf = userHashes(store);
  const named = new Map([...userIds].map((userId) => [hashOf(userId).toString('hex').toUpperCase(), userId]));
  const rows = store
    .prepare(
      `SELECT e.user_no AS userNo, hex(e.user_hash) AS hash FROM json_each(?) AS w
       CROSS JOIN erased_users e ON e.user_hash = unhex(w.value)`,
    )
    .all(JSON.stringify([...named.keys()])) as { readonly userNo: number; readonly hash: string }[];
  for (const { userNo, hash } of rows) numbers.set(named.get(hash)!, userNo);
  return numbers;
}

const findErasedUserNo = (store: Store, userId: string) => erasedNumbers(store, new Set([userId])).get(userId);

const hashOfUser = (store: Store, userId: string) => userHashes(store)(userId);

/** Makes the function that hashes the names of users with a key of the file. */
function userHashes(store: Store): (userId: string) => Buffer {
  const secret = findInfo(store, 'idempotency_secret');
  assert(secret !== undefined, 'a migration made the secret of the stored replies');
  return (userId) => keyedHash(secret, `user ${userId}`);
}

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Returns the cursor after the newest event. @throws EngineError `conflict` while the change feed is off */
export function newestCursor(store: Store): string {
  return cursorAt(feedId(store), newestNo(store));
}

/**
 * Reads at most `limit` events that pass a filter: those after a cursor, or without one from the oldest kept event on.
 * One call examines at most 5,000 events. Events of a memory that was erased since are left out, except for the event
 * of its erasure.
 * @returns the events; `cursor`: the position after the last examined event, even if no event passed; `hasMore`:
 *   whether later events exist, which need not pass
 * @throws EngineError `invalid` for a text that is no cursor; `conflict` if events after it are no longer kept, and
 *   while the change feed is off
 */
export function readEvents(store: Store, { cursor, limit, kinds, userId }: EventQuery): EventPage {
  const feed = feedId(store);
  const after = cursor === undefined ? 0 : placeOf(store, cursor, feed);
  const rows = readRows(store, after, LOOKED_AT_ONCE);
  const wanted = kinds && new Set(kinds.map((kind) => EVENT_KINDS.indexOf(kind)));
  const isOwn = userId === undefined ? () => true : ownersNamed(store, userId);
  const events: FeedEvent[] = [];
  let last = after;
  const isWanted = ({ kind }: EventRow) => wanted === undefined || wanted.has(kind);
  let subjectOf: ReturnType<typeof readSubjects> = () => undefined;
  for (const [place, row] of rows.entries()) {
    if (events.length === limit) break;
    if (place % SUBJECTS_AT_ONCE === 0)
      subjectOf = readSubjects(store, rows.slice(place, place + SUBJECTS_AT_ONCE).filter(isWanted));
    last = row.event_no;
    if (!isWanted(row)) continue;
    const subject = subjectOf(row);
    if (subject === undefined || !isOwn(subject)) continue;
    events.push({ cursor: cursorAt(feed, row.event_no), ...tellOf(row, subject) });
  }
  return { events, cursor: cursorAt(feed, last), hasMore: last < newestNo(store) };
}

/** An event with its number, from which deliveries to webhooks are made. */
export interface NumberedEvent extends Omit<FeedEvent, 'cursor'> {
  readonly eventNo: number;
  /** Number of the memory that the event is about; null if it is about none, or for its erasure. */
  readonly memoryNo: number | null;
  /** Number of the user whom the event is about, which stays if the name was erased since; null if it is not known. */
  readonly userNo: number | null;
}

/**
 * Reads events with numbers above `after`, examining `limit` rows. Events of memories that were erased since are left
 * out, except for the events of their erasure.
 * @returns the events, and the number of the last row that was examined (`after` if there was none)
 */
export function readNumberedEvents(
  store: Store,
  after: number,
  limit: number,
): { readonly events: readonly NumberedEvent[]; readonly last: number } {
  const rows = readRows(store, after, limit);
  const subjectOf = readSubjects(store, rows);
  const events = rows.flatMap((row) => {
    const subject = subjectOf(row);
    if (subject === undefined) return [];
    return { eventNo: row.event_no, memoryNo: row.memory, userNo: subject.userNo, ...tellOf(row, subject) };
  });
  return { events, last: rows.at(-1)?.event_no ?? after };
}

function readRows(store: Store, after: number, limit: number): EventRow[] {
  return store
    .prepare('SELECT * FROM events WHERE event_no > ? ORDER BY event_no LIMIT ?')
    .all(after, limit) as EventRow[];
}

function tellOf({ kind, at, memory, subject }: EventRow, { id, userId }: Subject): Omit<FeedEvent, 'cursor'> {
  const standing = memory === null || subject === null ? {} : { standingId: uuidOf(subject) ?? undefined };
  return { kind: EVENT_KINDS[kind]!, at, subject: id, userId, ...standing };
}

/**
 * Makes a function that tells whether the subject of an event belongs to a user, even if the user's name was erased.
 */
function ownersNamed(store: Store, userId: string): (subject: Subject) => boolean {
  const known = findUserNo(store, userId);
  const wanted = known ?? findErasedUserNo(store, userId);
  return ({ userNo, userId: name }) => (userNo === null ? name === userId : userNo === wanted);
}

/** Returns the number of the newest event; 0 if there is none. */
export function newestNo(store: Store): number {
  return store.prepare('SELECT coalesce(max(event_no), 0) FROM events').pluck().get() as number;
}

/**
 * Returns the id of the present feed: 8 hexadecimal digits, which change whenever the feed is switched on or off, and
 * when a backup was restored.
 * @throws EngineError `conflict` while the change feed is off
 */
export function feedId(store: Store): string {
  const feed = store.prepare('SELECT feed_id, is_on FROM event_feed').get() as { feed_id: string; is_on: number };
  if (feed.is_on !== 1) throw new EngineError('conflict', 'no events are kept: OM_EVENTS is false');
  return feed.feed_id;
}

const cursorAt = (feed: string, eventNo: number) => `${feed}.${eventNo.toString(36)}`;

/**
 * Decodes a cursor: returns the number of the event that it stands after.
 * @throws EngineError `invalid` for a text that is no cursor; `conflict` for a cursor of another feed or beyond the
 *   newest event, or if events after it are no longer kept
 */
function placeOf(store: Store, cursor: string, feed: string): number {
  const [, ofFeed, digits = ''] = /^([0-9a-f]{8})\.([0-9a-z]{1,11})$/.exec(cursor) ?? [];
  const eventNo = parseInt(digits, 36);
  if (ofFeed === undefined || !Number.isSafeInteger(eventNo)) {
    throw new EngineError('invalid', 'cursor: not one that this feed gave out');
  }
  const oldest = store.prepare('SELECT min(event_no) FROM events').pluck().get() as number | null;
  if (ofFeed === feed && eventNo >= (oldest ?? 1) - 1 && eventNo <= newestNo(store)) return eventNo;
  throw new EngineError(
    'conflict',
    'events behind this cursor are no longer kept: take the cursor `latest`, list what there is, and follow from there',
  );
}
