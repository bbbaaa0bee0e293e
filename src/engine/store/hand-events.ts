/** Takes events from the change feed and makes deliveries of them for the webhooks that they concern. */

import { type DeliveredEvent, type EventKind, type HandedEvents, STANDING_LIMITS } from '../types.ts';
import { openDeliveryRooms, type StoredRoom } from './delivery-room.ts';
import { erasedNumbers, feedId, hasEvents, newestNo, type NumberedEvent, readNumberedEvents } from './events.ts';
import type { Store } from './open-store.ts';
import { findQueryNos, type NumberedAnswer, readAnswersOf } from './standing.ts';
import { parseStored } from './stored-json.ts';

/**
 * Number of deliveries after which a commit takes no further event. One event makes some two hundred at most: see
 * `STANDING_LIMITS`.
 */
const DELIVERIES_AT_ONCE = 1_000;
/** Number of events for which shares, rooms and answers are read together, in a few statements. */
const READ_AT_ONCE = 100;

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
  const queryNos = readQueryNos(store, events);
  const hooksOf = readHooks(store, events, queryNos);
  const insert = store.prepare(
    'INSERT INTO deliveries (id, hook_no, at, user_id, event, next_at) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const rooms = openDeliveryRooms(store, now);
  let [made, dropped] = [0, 0];
  let handed = last;
  const hand = ({ event, wanted, followers }: Wanted, isForAll: boolean, toldOf: (event: NumberedEvent) => object) => {
    if (!isForAll) for (const hook of followers) rooms.drop(hook);
    const told = wanted.filter((hook) => (isForAll || hook.queryNo !== null) && rooms.take(hook));
    dropped += wanted.length - told.length;
    if (told.length === 0) return;
    const text = JSON.stringify(toldOf(event));
    for (const { hookNo } of told) insert.run(`msg_${newId()}`, hookNo, event.at, event.userId, text, now);
    made += told.length;
  };
  for (let from = 0; from < events.length && made < DELIVERIES_AT_ONCE; from += READ_AT_ONCE) {
    const part = events.slice(from, from + READ_AT_ONCE).flatMap((event) => wantedBy(event, hooksOf(event)));
    const isInShare = readShares(store, part, queryNos);
    const toldOf = createTeller(store, part, queryNos);
    rooms.count(part.flatMap(({ wanted }) => wanted));
    for (const one of part) {
      hand(one, isInShare(one), toldOf);
      if (made < DELIVERIES_AT_ONCE) continue;
      handed = one.event.eventNo;
      break;
    }
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

/** An event with the webhooks that are told of it, if they have room. */
interface Wanted {
  readonly event: NumberedEvent;
  /** The webhooks that are told of the event, each if it has room; at least one. */
  readonly wanted: readonly Hook[];
  /** Those of `wanted` that belong to no standing query. */
  readonly followers: readonly Hook[];
}

function wantedBy(event: NumberedEvent, hooks: readonly Hook[]): Wanted | readonly [] {
  const wanted = hooks.filter(({ since, kinds }) => since < event.eventNo && (kinds === null || kinds.has(event.kind)));
  return wanted.length === 0 ? [] : { event, wanted, followers: wanted.filter(({ queryNo }) => queryNo === null) };
}

/** Reads the numbers of the standing queries that events name, by their ids. */
function readQueryNos(store: Store, events: readonly NumberedEvent[]): ReadonlyMap<string, number> {
  const ids = new Set(events.flatMap(({ standingId }) => standingId ?? []));
  return ids.size === 0 ? new Map() : findQueryNos(store, [...ids]);
}

/**
 * Reads the webhooks that may be told of events: those for all events, those for the events of a user, and those for
 * the answers to a standing query.
 * @returns the function that returns the webhooks of one of these events
 */
function readHooks(
  store: Store,
  events: readonly NumberedEvent[],
  queryNos: ReadonlyMap<string, number>,
): (event: NumberedEvent) => readonly Hook[] {
  const among = (column: string) => `${column} IN (SELECT value FROM json_each(?))`;
  const forAll = listHooks(store, 'query_no IS NULL AND user_id IS NULL');
  const names = [...new Set(events.flatMap(({ userId }) => userId ?? []))];
  const ofUsers =
    names.length === 0 ? [] : listHooks(store, `query_no IS NULL AND ${among('user_id')}`, JSON.stringify(names));
  const byName = Map.groupBy(ofUsers, ({ userId }) => userId!);
  const ofQueries =
    queryNos.size === 0 ? [] : listHooks(store, among('query_no'), JSON.stringify([...queryNos.values()]));
  const byQuery = Map.groupBy(ofQueries, ({ queryNo }) => queryNo!);
  let ofErased: ReadonlyMap<number, readonly Hook[]> | undefined;
  const ofOwner = ({ userId, userNo, kind }: NumberedEvent): readonly Hook[] => {
    if (userId !== null) return byName.get(userId) ?? [];
    if (userNo === null || (kind !== 'memory.deleted' && kind !== 'memory.expired')) return [];
    // The name may have gone with the user's last memory: only a hash of it is kept.
    ofErased ??= hooksOfErasedUsers(store);
    return ofErased.get(userNo) ?? [];
  };
  const ofQuery = ({ standingId }: NumberedEvent): readonly Hook[] => {
    const queryNo = standingId === undefined ? undefined : queryNos.get(standingId);
    return queryNo === undefined ? [] : (byQuery.get(queryNo) ?? []);
  };
  return (event) => [...forAll, ...ofOwner(event), ...ofQuery(event)];
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

/**
 * Makes a function that tells whether an event is handed to its `followers`, the webhooks that belong to no standing
 * query. It is false only for an answer to a standing query: of the answers that one memory gives, those to the oldest
 * queries are handed, as many as make at most `STANDING_LIMITS.answersOfMemory` deliveries.
 */
function readShares(
  store: Store,
  events: readonly Wanted[],
  queryNos: ReadonlyMap<string, number>,
): (event: Wanted) => boolean {
  const firstBeyond = store.prepare(
    `SELECT m.seq AS memoryNo,
       (SELECT query_no FROM standing_answers WHERE memory = m.seq ORDER BY query_no LIMIT 1 OFFSET ?) AS queryNo
     FROM memories m WHERE m.seq IN (SELECT value FROM json_each(?))`,
  );
  const mostOf = ({ followers }: Wanted) => Math.floor(STANDING_LIMITS.answersOfMemory / followers.length);
  const isShared = ({ event: { standingId, memoryNo }, followers }: Wanted) =>
    standingId !== undefined && memoryNo !== null && followers.length > 0;
  const beyond = new Map<string, number>();
  for (const [most, those] of Map.groupBy(events.filter(isShared), mostOf)) {
    const memoryNos = [...new Set(those.map(({ event }) => event.memoryNo))];
    const rows = firstBeyond.all(most, JSON.stringify(memoryNos)) as { memoryNo: number; queryNo: number | null }[];
    for (const { memoryNo, queryNo } of rows) if (queryNo !== null) beyond.set(`${memoryNo} ${most}`, queryNo);
  }
  return (wanted) => {
    if (!isShared(wanted)) return true;
    const { standingId, memoryNo } = wanted.event;
    return (queryNos.get(standingId!) ?? 0) < (beyond.get(`${memoryNo} ${mostOf(wanted)}`) ?? Infinity);
  };
}

/**
 * Makes the function that returns what a webhook is told of one of these events. The answers among them are read
 * together when the first one is told.
 */
function createTeller(
  store: Store,
  events: readonly Wanted[],
  queryNos: ReadonlyMap<string, number>,
): (event: NumberedEvent) => DeliveredEvent {
  const pairOf = ({ standingId, memoryNo }: NumberedEvent): readonly [number, number] | undefined => {
    const queryNo = standingId === undefined ? undefined : queryNos.get(standingId);
    return queryNo === undefined || memoryNo === null ? undefined : [queryNo, memoryNo];
  };
  let answers: ReadonlyMap<string, NumberedAnswer> | undefined;
  const read = () => {
    const pairs = events.map(({ event }) => pairOf(event)).filter((pair) => pair !== undefined);
    const found = readAnswersOf(store, pairs);
    return new Map(found.map((answer) => [`${answer.queryNo} ${answer.memoryNo}`, answer]));
  };
  return (event) => {
    const { kind, subject, standingId, memoryNo } = event;
    const told = { type: kind, id: subject };
    if (standingId === undefined || memoryNo === null) return told;
    const pair = pairOf(event);
    const answer = pair === undefined ? undefined : (answers ??= read()).get(pair.join(' '));
    return {
      ...told,
      standingId,
      documentId: answer?.documentId ?? undefined,
      score: answer?.score ?? undefined,
      supersedes: answer?.supersedes ?? undefined,
    };
  };
}
