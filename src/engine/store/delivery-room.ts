/** Bounds how many deliveries wait: for each webhook, for the webhooks of each user together, and for the tenant. */

import { STANDING_LIMITS } from '../types.ts';
import type { Store } from './open-store.ts';

/** Time (ms) for which a webhook, a user or a tenant that was found full counts as full, and is not counted again. */
const FULL_MS = 1_000;

/** Room for further deliveries. */
interface Room {
  /**
   * Number of deliveries that may be added before those that wait are counted again. There may be room for more, since
   * deliveries that ended after the count are not seen.
   */
  left: number;
  /** Time of the last count, Unix ms. */
  countedAt: number;
}

/**
 * What is stored with a webhook: its `room` (number of deliveries that may be added before those that wait are counted
 * again), the time of the last count, the number of events that were dropped for it, and the time of the last of these
 * (null if none was). Times are Unix ms.
 */
export interface StoredRoom {
  readonly room: number;
  readonly countedAt: number;
  readonly dropped: number;
  readonly droppedAt: number | null;
}

/** Room of a webhook, with the events that found none. */
interface HookRoom extends Room {
  dropped: number;
  droppedAt: number | null;
}

interface RoomyHook extends StoredRoom {
  readonly hookNo: number;
  readonly userId: string | null;
}

/** Room for the deliveries that one commit adds. */
export interface DeliveryRooms {
  /**
   * Counts the deliveries that wait for webhooks, and for their users, whose room is not known. Call it before `take`,
   * which would count those of one webhook after the other, by a statement for each.
   */
  count(hooks: Iterable<RoomyHook>): void;
  /**
   * Takes room for one delivery and returns true. If there is no room, it counts a dropped event of the webhook and
   * returns false.
   */
  take(hook: RoomyHook): boolean;
  /** Counts an event as dropped for a webhook to which it is not handed, although there may be room. */
  drop(hook: RoomyHook): void;
  /** Stores what was taken and dropped. Call it once, at the end of the write. */
  store(): void;
}

/** Makes the rooms for the deliveries of a commit at `now` (Unix ms). Call inside a write. */
export function openDeliveryRooms(store: Store, now: number): DeliveryRooms {
  const { pendingOfTenant, pendingOfWebhook, pendingOfUser } = STANDING_LIMITS;
  const cursor = store.prepare('SELECT room, counted_at AS countedAt FROM webhook_cursor').get() as {
    room: number;
    countedAt: number;
  };
  const tenant: Room = { left: cursor.room, countedAt: cursor.countedAt };
  const users = new Map<string, Room>();
  const hooks = new Map<number, HookRoom>();

  function hasRoom(room: Room, bound: number, count: (limit: number) => number): boolean {
    if (!isKnown(room, now)) setRoom(room, bound - count(bound), now);
    return room.left > 0;
  }

  const roomOf = ({ hookNo, room, countedAt, dropped, droppedAt }: RoomyHook) => {
    const known = hooks.get(hookNo) ?? { left: room, countedAt, dropped, droppedAt };
    hooks.set(hookNo, known);
    return known;
  };
  const roomOfUser = (userId: string) => {
    const known = users.get(userId) ?? { left: 0, countedAt: -Infinity };
    users.set(userId, known);
    return known;
  };

  function drop(hook: RoomyHook): void {
    const room = roomOf(hook);
    room.dropped += 1;
    room.droppedAt = now;
  }

  function count(wanted: Iterable<RoomyHook>): void {
    const asked = [...wanted];
    const unknown = asked.filter((hook) => !isKnown(roomOf(hook), now)).map(({ hookNo }) => hookNo);
    for (const [hookNo, waiting] of countsOfHooks(store, [...new Set(unknown)], pendingOfWebhook))
      setRoom(hooks.get(hookNo)!, pendingOfWebhook - waiting, now);
    const names = new Set(asked.flatMap(({ userId }) => userId ?? []));
    const unknownNames = [...names].filter((userId) => !isKnown(roomOfUser(userId), now));
    for (const [userId, waiting] of countsOfUsers(store, unknownNames, pendingOfUser))
      setRoom(users.get(userId)!, pendingOfUser - waiting, now);
  }

  return {
    count,
    drop,
    take(hook) {
      const { hookNo, userId } = hook;
      const own = roomOf(hook);
      const ofUser = userId === null ? undefined : roomOfUser(userId);
      const isRoomy =
        hasRoom(own, pendingOfWebhook, (limit) => countOfHook(store, hookNo, limit)) &&
        (ofUser === undefined || hasRoom(ofUser, pendingOfUser, (limit) => countOfUser(store, userId!, limit))) &&
        hasRoom(tenant, pendingOfTenant, (limit) => countOfTenant(store, limit));
      if (!isRoomy) {
        drop(hook);
        return false;
      }
      for (const room of [own, ofUser, tenant]) if (room !== undefined) room.left -= 1;
      return true;
    },
    store: () => storeRooms(store, hooks, tenant),
  };
}

/**
 * Tells whether a room may be used at `now` (Unix ms) without counting what waits: some of it is left, or the last
 * count, which found it full, is less than a second old. Counting may take long, since many deliveries may wait.
 */
const isKnown = ({ left, countedAt }: Room, now: number) => left > 0 || (countedAt <= now && now - countedAt < FULL_MS);

function setRoom(room: Room, left: number, now: number): void {
  room.left = left;
  room.countedAt = now;
}

function storeRooms(store: Store, hooks: ReadonlyMap<number, HookRoom>, tenant: Room): void {
  const update = store.prepare(
    'UPDATE webhooks SET room = ?, counted_at = ?, dropped = ?, dropped_at = ? WHERE hook_no = ?',
  );
  for (const [hookNo, { left, countedAt, dropped, droppedAt }] of hooks)
    update.run(left, countedAt, dropped, droppedAt, hookNo);
  store.prepare('UPDATE webhook_cursor SET room = ?, counted_at = ?').run(tenant.left, tenant.countedAt);
}

/**
 * Forgets the room of a webhook and that of the tenant, so that the next addition of a delivery counts what waits
 * first. Call it inside a write that made deliveries of the webhook pending again.
 */
export function countRoomAnew(store: Store, hookNo: number): void {
  store.prepare('UPDATE webhooks SET room = 0, counted_at = 0 WHERE hook_no = ?').run(hookNo);
  store.prepare('UPDATE webhook_cursor SET room = 0, counted_at = 0').run();
}

const countOfHook = (store: Store, hookNo: number, limit: number) =>
  countsOfHooks(store, [hookNo], limit).get(hookNo) ?? 0;

/** Counts the waiting deliveries of these webhooks, of each webhook at most `limit`, by its number. */
function countsOfHooks(store: Store, hookNos: readonly number[], limit: number): ReadonlyMap<number, number> {
  if (hookNos.length === 0) return new Map();
  const rows = store
    .prepare(
      `SELECT h.hook_no AS hookNo, (SELECT count(*) FROM (SELECT 1 FROM deliveries d
           WHERE d.hook_no = h.hook_no AND d.state = 'pending' LIMIT ?) AS waiting) AS waiting
       FROM webhooks h WHERE h.hook_no IN (SELECT value FROM json_each(?))`,
    )
    .all(limit, JSON.stringify(hookNos)) as { readonly hookNo: number; readonly waiting: number }[];
  return new Map(rows.map(({ hookNo, waiting }) => [hookNo, waiting]));
}

const countOfUser = (store: Store, userId: string, limit: number) =>
  countsOfUsers(store, [userId], limit).get(userId) ?? 0;

/**
 * Counts the waiting deliveries to the webhooks of these users, for each user at most `limit`, by `userId`. A user
 * without webhooks is left out.
 */
function countsOfUsers(store: Store, userIds: readonly string[], limit: number): ReadonlyMap<string, number> {
  if (userIds.length === 0) return new Map();
  const rows = store
    .prepare(
      `SELECT u.user_id AS userId, (SELECT count(*) FROM (
           SELECT 1 FROM webhooks h CROSS JOIN deliveries d ON d.hook_no = h.hook_no AND d.state = 'pending'
           WHERE h.user_id = u.user_id LIMIT ?) AS waiting) AS waiting
       FROM (SELECT DISTINCT user_id FROM webhooks WHERE user_id IN (SELECT value FROM json_each(?))) AS u`,
    )
    .all(limit, JSON.stringify(userIds)) as { readonly userId: string; readonly waiting: number }[];
  return new Map(rows.map(({ userId, waiting }) => [userId, waiting]));
}

/**
 * Counts the deliveries of the tenant that wait, at most `limit`. The condition on `next_at` holds for every delivery;
 * it makes SQLite read the index of those that wait.
 */
function countOfTenant(store: Store, limit: number): number {
  return store
    .prepare(
      `SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE state = 'pending' AND next_at >= 0 LIMIT ?) AS waiting`,
    )
    .pluck()
    .get(limit) as number;
}
