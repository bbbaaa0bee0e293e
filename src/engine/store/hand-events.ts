/** Takes events from the change feed and makes deliveries of them for the webhooks that they concern. */

import { type DeliveredEvent, type EventKind, type HandedEvents, STANDING_LIMITS } from '../types.ts';
import { openDeliveryRooms, type StoredRoom } from './delivery-room.ts';
import { erasedNumbers, feedId, hasEvents, newestNo, type NumberedEvent, readNumberedEvents } from './events.ts';
import type { Store } from './open-store.ts';
import { findStandingAnswer } from './standing.ts';
import { parseStored } from './stored-json.ts';

/**
 * Number of deliveries after which a commit takes no further event. One event makes some two hundred at most: see
 * `STANDING_LIMITS`.
 */
const DELIVERIES_AT_ONCE = 1_000;

/** Tells whether there are webhooks, and events in the feed for which no deliveries were made yet. */
export function hasEventsToHand(store: Store): boolean {
  if (!hasEvents(store) || store.prepare('SELECT 1 FROM webhooks LIMIT 1').get() === undefined) return false;
  return cursorOf(store) < newestNo(store);
}

/**
 * Makes deliveries of the next events: examines at most `limit` events, adds a delivery for each webhook that an event
 * concerns and that has room for it, and moves the cursor of the webhooks on. After 1,000 deliveries it takes no
 * further event. Call inside a write.
 * @returns the numbers of deliveries that were made, and of those that were dropped over the bounds of
 *   `STANDING_LIMITS`
 */
export function handEvents(
  store: Store,
  { limit, now, newId }: { readonly limit: number; readonly now: number; readonly newId: () => string },
): HandedEvents {
  if (!hasEventsToHand(store)) return { made: 0, dropped: 0 };
  const feed = feedId(store);
  const { events, last } = readNumberedEvents(store, cursorOf(store), limit);
  const forAll = listHooks(store, 'query_no IS NULL AND user_id IS NULL');
  const hooksOfOwner = ownersHooks(store);
  const insert = store.prepare(
    'INSERT INTO deliveries (id, hook_no, at, user_id, event, next_at) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const rooms = openDeliveryRooms(store, now);
  const isInShare = sharesOfMemories(store);
  let [made, dropped] = [0, 0];
  let handed = last;
  for (const event of events) {
    const hooks = [...forAll, ...hooksOfOwner(event), ...hooksOfQuery(store, event)];
    const wanted = hooks.filter(
      ({ since, kinds }) => since < event.eventNo && (kinds === null || kinds.has(event.kind)),
    );
    if (wanted.length === 0) continue;
    const followers = wanted.filter(({ queryNo }) => queryNo === null);
    const isForAll = isInShare(event, followers.length);
    if (!isForAll) for (const hook of followers) rooms.drop(hook);
    const told = wanted.filter((hook) => (isForAll || hook.queryNo !== null) && rooms.take(hook));
    dropped += wanted.length - told.length;
    if (told.length === 0) continue;
    const text = JSON.stringify(toldOf(store, event));
    for (const { hookNo } of told) insert.run(`msg_${newId()}`, hookNo, event.at, event.userId, text, now);
    made += told.length;
    if (made < DELIVERIES_AT_ONCE) continue;
    handed = event.eventNo;
    break;
  }
  store.prepare('UPDATE webhook_cursor SET feed_id = ?, event_no = ?').run(feed, handed);
  rooms.store();
  return { made, dropped };
}

/** Returns the number of the last event for which deliveries were made; 0 in a feed that was begun anew since. */
function cursorOf(store: Store): number {
  const { feed_id: feed, event_no: eventNo } = store.prepare('SELECT * FROM webhook_cursor').get() as {
    feed_id: string;
    event_no: number;
  };
  return feed === feedId(store) ? eventNo : 0;
}

interface Hook extends StoredRoom {
  readonly hookNo: number;
  readonly userId: string | null;
  /** Number of the standing query whose answers alone the webhook gets; null for one that follows events. */
  readonly queryNo: number | null;
  /** Number of the last event before the webhook was stored; the webhook gets only later ones. */
  readonly since: number;
  /** Kinds of events that are sent to the webhook; null for all kinds. */
  readonly kinds: ReadonlySet<EventKind> | null;
}

function listHooks(store: Store, condition: string, ...values: readonly (string | number)[]): Hook[] {
  const rows = store
    .prepare(
      `SELECT hook_no AS hookNo, user_id AS userId, query_no AS queryNo, kinds, room,
         counted_at AS countedAt, dropped, dropped_at AS droppedAt,
         iif((SELECT feed_id FROM webhook_cursor) = (SELECT feed_id FROM event_feed), since_no, 0) AS since
       FROM webhooks WHERE ${condition} ORDER BY hook_no`,
    )
    .all(...values) as (Omit<Hook, 'kinds'> & { kinds: string })[];
  return rows.map((row) => {
    const kinds = parseStored(row.kinds) as EventKind[];
    return { ...row, kinds: kinds.length === 0 ? null : new Set(kinds) };
  });
}

/**
 * Makes a function that finds the webhooks for the events of the user whom an event is about. It reads the webhooks of
 * each user once.
 */
function ownersHooks(store: Store): (event: NumberedEvent) => readonly Hook[] {
  const byName = new Map<string, readonly Hook[]>();
  let ofErased: ReadonlyMap<number, readonly Hook[]> | undefined;
  return ({ userId, userNo, kind }) => {
    if (userId !== null) {
      const hooks = byName.get(userId) ?? listHooks(store, 'query_no IS NULL AND user_id = ?', userId);
      byName.set(userId, hooks);
      return hooks;
    }
    if (userNo === null || (kind !== 'memory.deleted' && kind !== 'memory.expired')) return [];
    // The name may have gone with the user's last memory: only a hash of it is kept.
    ofErased ??= hooksOfErasedUsers(store);
    return ofErased.get(userNo) ?? [];
  };
}

/** Finds the webhooks of users whose names are erased, by the numbers that the users had. */
function hooksOfErasedUsers(store: Store): ReadonlyMap<number, readonly Hook[]> {
  const hooks = listHooks(store, 'query_no IS NULL AND user_id IS NOT NULL');
  const numbers = erasedNumbers(store, new Set(hooks.map(({ userId }) => userId!)));
  const found = new Map<number, Hook[]>();
  for (const hook of hooks) {
    const userNo = numbers.get(hook.userId!);
    if (userNo !== undefined) found.set(userNo, [...(found.get(userNo) ?? []), hook]);
  }
  return found;
}

function hooksOfQuery(store: Store, { standingId }: NumberedEvent): Hook[] {
  if (standingId === undefined) return [];
  return listHooks(store, 'query_no = (SELECT query_no FROM standing_queries WHERE id = ?)', standingId);
}

/**
 * Makes a function that tells whether an event is handed to the `followers` of its kind, the webhooks that are no
 * standing query's. Of the answers that one memory gives, it is so only for those to the oldest queries: as many as
 * make at most `STANDING_LIMITS.answersOfMemory` deliveries.
 */
function sharesOfMemories(store: Store): (event: NumberedEvent, followers: number) => boolean {
  const queryNoOf = store.prepare('SELECT query_no FROM standing_queries WHERE id = ?').pluck();
  const firstBeyond = store
    .prepare('SELECT query_no FROM standing_answers WHERE memory = ? ORDER BY query_no LIMIT 1 OFFSET ?')
    .pluck();
  const known = new Map<string, number>();
  return ({ standingId, memoryNo }, followers) => {
    if (standingId === undefined || memoryNo === null || followers === 0) return true;
    const most = Math.floor(STANDING_LIMITS.answersOfMemory / followers);
    const key = `${memoryNo} ${most}`;
    const beyond = known.get(key) ?? (firstBeyond.get(memoryNo, most) as number | undefined) ?? Infinity;
    known.set(key, beyond);
    return ((queryNoOf.get(standingId) as number | undefined) ?? 0) < beyond;
  };
}

function toldOf(store: Store, { kind, subject, standingId, memoryNo }: NumberedEvent): DeliveredEvent {
  const told = { type: kind, id: subject };
  if (standingId === undefined || memoryNo === null) return told;
  const answer = findStandingAnswer(store, standingId, memoryNo);
  return {
    ...told,
    standingId,
    documentId: answer?.documentId ?? undefined,
    score: answer?.score ?? undefined,
    supersedes: answer?.supersedes ?? undefined,
  };
}
