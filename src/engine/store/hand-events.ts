/** Takes events from the change feed and makes deliveries of them for the webhooks that they concern. */

import type { DeliveredEvent, EventKind } from '../types.ts';
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
 * concerns, and moves the cursor of the webhooks on. After 1,000 deliveries it takes no further event. Call inside a
 * write.
 * @returns the number of deliveries that were made
 */
export function handEvents(
  store: Store,
  { limit, now, newId }: { readonly limit: number; readonly now: number; readonly newId: () => string },
): number {
  if (!hasEventsToHand(store)) return 0;
  const feed = feedId(store);
  const { events, last } = readNumberedEvents(store, cursorOf(store), limit);
  const forAll = listHooks(store, 'query_no IS NULL AND user_id IS NULL');
  const hooksOfOwner = ownersHooks(store);
  const insert = store.prepare(
    'INSERT INTO deliveries (id, hook_no, at, user_id, event, next_at) VALUES (?, ?, ?, ?, ?, ?)',
  );
  let made = 0;
  let handed = last;
  for (const event of events) {
    const hooks = [...forAll, ...hooksOfOwner(event), ...hooksOfQuery(store, event)];
    const wanted = hooks.filter(
      ({ since, kinds }) => since < event.eventNo && (kinds === null || kinds.has(event.kind)),
    );
    if (wanted.length === 0) continue;
    const told = JSON.stringify(toldOf(store, event));
    for (const { hookNo } of wanted) insert.run(`msg_${newId()}`, hookNo, event.at, event.userId, told, now);
    made += wanted.length;
    if (made < DELIVERIES_AT_ONCE) continue;
    handed = event.eventNo;
    break;
  }
  store.prepare('UPDATE webhook_cursor SET feed_id = ?, event_no = ?').run(feed, handed);
  return made;
}

/** Returns the number of the last event for which deliveries were made; 0 in a feed that was begun anew since. */
function cursorOf(store: Store): number {
  const { feed_id: feed, event_no: eventNo } = store.prepare('SELECT * FROM webhook_cursor').get() as {
    feed_id: string;
    event_no: number;
  };
  return feed === feedId(store) ? eventNo : 0;
}

interface Hook {
  readonly hookNo: number;
  readonly userId: string | null;
  /** Number of the last event before the webhook was stored; the webhook gets only later ones. */
  readonly since: number;
  /** Kinds of events that are sent to the webhook; null for all kinds. */
  readonly kinds: ReadonlySet<EventKind> | null;
}

function listHooks(store: Store, condition: string, ...values: readonly (string | number)[]): Hook[] {
  const rows = store
    .prepare(
      `SELECT hook_no AS hookNo, user_id AS userId, kinds,
         iif((SELECT feed_id FROM webhook_cursor) = (SELECT feed_id FROM event_feed), since_no, 0) AS since
       FROM webhooks WHERE ${condition}`,
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
