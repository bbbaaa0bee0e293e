/** Stores webhooks and their deliveries: one row for each webhook and event, which `hand-events.ts` adds. */

import { randomBytes } from 'node:crypto';
import { EngineError } from '../errors.ts';
import {
  type ClaimedDelivery,
  type CreatedWebhook,
  type DeliveredEvent,
  type Delivery,
  type DeliveryOutcome,
  type DeliveryState,
  type EventKind,
  type Listed,
  type NewWebhook,
  STANDING_LIMITS,
  type StandingPage,
  type StandingPart,
  type Webhook,
} from '../types.ts';
import { countRoomAnew } from './delivery-room.ts';
import { feedId, newestNo } from './events.ts';
import type { Store } from './open-store.ts';
import { parseStored } from './stored-json.ts';
import { writerOf } from './writers.ts';

interface HookRow {
  readonly hookNo: number;
  readonly id: string;
  readonly url: string;
  readonly kinds: string;
  readonly userId: string | null;
  readonly standingId: string | null;
  readonly createdAt: number;
  readonly writtenBy: string | null;
  readonly dropped: number;
  readonly lastDroppedAt: number | null;
}

const HOOKS = `SELECT h.hook_no AS hookNo, h.id, h.url, h.kinds, h.user_id AS userId, q.id AS standingId,
  h.created_at AS createdAt, ${writerOf('h.writer_no')} AS writtenBy, h.dropped,
  h.dropped_at AS lastDroppedAt FROM webhooks h LEFT JOIN standing_queries q ON q.query_no = h.query_no`;
/** Number of random bytes of a webhook's secret, as Standard Webhooks recommends. */
const SECRET_BYTES = 24;

// ── Webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Stores a webhook, which gets the events that follow. If the file has no webhook now, it first moves the cursor that
 * all webhooks share to the newest event. The returned secret cannot be read again. Call inside a write.
 * @param owned.queryNo number of the standing query whose answers alone it gets; null for a webhook that also gets
 *   other events
 * @param owned.writerNo number of the key that asked for it; null if no caller did
 * @throws EngineError `conflict` if a limit of `STANDING_LIMITS` is reached, and while the change feed is off
 *   (`OM_EVENTS`)
 */
export function insertWebhook(
  store: Store,
  { url, kinds, userId }: NewWebhook,
  owned: {
    readonly id: string;
    readonly queryNo: number | null;
    readonly writerNo: number | null;
    readonly now: number;
  },
): CreatedWebhook {
  const { id, queryNo, writerNo, now } = owned;
  const feed = feedId(store);
  const count = store.prepare('SELECT count(*) FROM webhooks').pluck().get() as number;
  if (count >= STANDING_LIMITS.webhooks)
    throw new EngineError('conflict', `a tenant has at most ${STANDING_LIMITS.webhooks} webhooks: delete one first`);
  if (queryNo === null) requireRoomForOneMore(store, userId);
  const newest = newestNo(store);
  // Without webhooks nobody moved the cursor on.
  if (count === 0) store.prepare('UPDATE webhook_cursor SET feed_id = ?, event_no = ?').run(feed, newest);
  const secret = `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
  store
    .prepare(
      `INSERT INTO webhooks (id, query_no, user_id, url, kinds, secret, since_no, created_at, writer_no)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(id, queryNo, userId ?? null, url, JSON.stringify(kinds), secret, newest, now, writerNo);
  return { ...getWebhook(store, id), secret };
}

/**
 * Checks that there may be one more webhook for the events of a user, or of all users if `userId` is undefined: each
 * webhook gets a delivery of each of these events.
 * @throws EngineError `conflict` if there may not
 */
function requireRoomForOneMore(store: Store, userId: string | undefined): void {
  const count = (condition: string, ...values: string[]) =>
    store
      .prepare(`SELECT count(*) FROM webhooks WHERE query_no IS NULL${condition}`)
      .pluck()
      .get(...values) as number;
  const { ofEvents, ofSameEvents } = STANDING_LIMITS;
  if (count('') >= ofEvents)
    throw new EngineError('conflict', `at most ${ofEvents} webhooks are no standing query's: delete one first`);
  const isAll = userId === undefined;
  const same = isAll ? count(' AND user_id IS NULL') : count(' AND user_id = ?', userId);
  if (same < ofSameEvents) return;
  const events = isAll ? 'the events of all users' : 'the events of one user';
  throw new EngineError('conflict', `at most ${ofSameEvents} webhooks are told of ${events}: delete one first`);
}

/** Lists a page of webhooks, newest first; `total` counts all pages. With `userId`, both are of this user only. */
export function listWebhooks(store: Store, { limit, offset, userId }: StandingPage): Listed<Webhook> {
  const [where, of] = userId === undefined ? ['', []] : ['WHERE h.user_id = ?', [userId]];
  const rows = store
    .prepare(`${HOOKS} ${where} ORDER BY h.hook_no DESC LIMIT ? OFFSET ?`)
    .all(...of, limit, offset) as HookRow[];
  const total = store
    .prepare(`SELECT count(*) FROM webhooks h ${where}`)
    .pluck()
    .get(...of) as number;
  return { items: rows.map((row) => hookOf(store, row)), total };
}

/** Returns the webhook with this id. @throws EngineError `not_found` */
export function getWebhook(store: Store, id: string): Webhook {
  return hookOf(store, getRow(store, id));
}

/** Deletes a webhook with its deliveries. Call inside a write. @throws EngineError `not_found` */
export function deleteWebhook(store: Store, id: string): void {
  store.prepare('DELETE FROM webhooks WHERE hook_no = ?').run(getRow(store, id).hookNo);
}

function getRow(store: Store, id: string): HookRow {
  const row = store.prepare(`${HOOKS} WHERE h.id = ?`).get(id) as HookRow | undefined;
  if (row === undefined) throw new EngineError('not_found', 'no webhook with this id');
  return row;
}

function hookOf(store: Store, { hookNo, kinds, ...row }: HookRow): Webhook {
  const counts = store
    .prepare('SELECT state, count(*) AS n FROM deliveries WHERE hook_no = ? GROUP BY state')
    .all(hookNo) as { state: DeliveryState; n: number }[];
  const deliveries = { pending: 0, delivered: 0, dead: 0 };
  for (const { state, n } of counts) deliveries[state] = n;
  return { ...row, kinds: parseStored(kinds) as EventKind[], deliveries };
}

// ── Deliveries ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** Greatest number of deliveries of one webhook in one claim, so that a slow receiver does not block other webhooks. */
const EACH = 4;
/** Greatest number of webhooks whose deliveries one claim looks at. */
const HOOKS_AT_ONCE = 256;

/**
 * Longest time for which a delivery may wait for its next attempt (ms); none is put off by more than 12 hours. If its
 * time is further ahead, the clock was set back since, and it is due at once.
 */
const WAIT_MOST_MS = 13 * 3_600_000;

/** Tells whether a pending delivery is due at `now` (Unix ms). */
export function hasDueDeliveries(store: Store, now: number): boolean {
  const due = store.prepare(
    `SELECT 1 FROM deliveries WHERE state = 'pending' AND next_at <= ?
     UNION ALL SELECT 1 FROM deliveries WHERE state = 'pending' AND next_at > ? LIMIT 1`,
  );
  return due.get(now, now + WAIT_MOST_MS) !== undefined;
}

/** Returns the time at which the next pending delivery is due (Unix ms); Infinity if none is pending. */
export function nextDeliveryAt(store: Store): number {
  const next = store.prepare(`SELECT min(next_at) FROM deliveries WHERE state = 'pending'`).pluck().get();
  return (next as number | null) ?? Infinity;
}

/** Which deliveries are to be claimed. */
export interface WantedDeliveries {
  readonly limit: number;
  /** Greatest number of deliveries to the webhooks of one user that are sent at the same time. */
  readonly ofUser: number;
  /**
   * Greatest number of deliveries that are sent at the same time to all those webhooks together which are told of the
   * events of all users.
   */
  readonly ofAll: number;
  /** Deliveries that are being sent already. No more deliveries of their webhooks are claimed. */
  readonly underWay: readonly Pick<ClaimedDelivery, 'hookNo' | 'hookUserId'>[];
  /** Number of a webhook; only those with higher numbers are looked at. 0 begins with the first webhook. */
  readonly after: number;
}

/** Deliveries that were claimed. */
export interface ClaimedDeliveries {
  readonly claimed: readonly ClaimedDelivery[];
  /** The next claim's `after`; 0 if there were no further webhooks with pending deliveries. */
  readonly next: number;
}

/**
 * Claims at most `limit` due deliveries of the next 256 webhooks, at most 4 of each, for an attempt that must end
 * within `leaseMs` (ms); after that they are due again. Users take turns, so that the webhooks of one that do not
 * answer leave room for those of others. The attempt is counted here. Call inside a write.
 */
export function claimDeliveries(
  store: Store,
  { now, leaseMs, after, ...wanted }: WantedDeliveries & { readonly now: number; readonly leaseMs: number },
): ClaimedDeliveries {
  const hooks = hooksWithPending(store, after);
  const next = hooks.length === HOOKS_AT_ONCE ? hooks.at(-1)! : 0;
  const busy = new Set(wanted.underWay.map(({ hookNo }) => hookNo));
  const free = withoutFull(
    store,
    hooks.filter((hookNo) => !busy.has(hookNo)),
    wanted,
  );
  const due = store
    .prepare(
      `SELECT d.delivery_no AS deliveryNo, h.user_id AS hookUserId
       FROM json_each(?) AS hooks CROSS JOIN json_each((
           SELECT json_group_array(delivery_no) FROM (
             SELECT delivery_no FROM (${pendingOf('hooks.value', 'next_at <= ?')}) AS reached
             UNION ALL SELECT delivery_no FROM (${pendingOf('hooks.value', 'next_at > ?')}) AS ahead LIMIT ${EACH}
           ) AS due)) AS due CROSS JOIN deliveries d ON d.delivery_no = CAST(due.value AS INTEGER)
         CROSS JOIN webhooks h ON h.hook_no = d.hook_no
       ORDER BY d.next_at, d.delivery_no`,
    )
    .all(JSON.stringify(free), now, now + WAIT_MOST_MS) as DueDelivery[];
  const chosen = chooseInTurn(due, wanted);
  if (chosen.length === 0) return { claimed: [], next };
  const rows = store
    .prepare(
      `SELECT d.delivery_no AS deliveryNo, d.hook_no AS hookNo, h.user_id AS hookUserId, d.id, d.at,
         d.user_id AS userId, d.event, d.attempts + 1 AS attempts, h.url, h.secret
       FROM json_each(?) AS chosen CROSS JOIN deliveries d ON d.delivery_no = chosen.value
         CROSS JOIN webhooks h ON h.hook_no = d.hook_no ORDER BY d.next_at, d.delivery_no`,
    )
    .all(JSON.stringify(chosen)) as (Omit<ClaimedDelivery, 'event'> & { event: string })[];
  const claim = store.prepare('UPDATE deliveries SET attempts = ?, next_at = ? WHERE delivery_no = ?');
  for (const { deliveryNo, attempts } of rows) claim.run(attempts, now + leaseMs, deliveryNo);
  return { claimed: rows.map((row) => ({ ...row, event: parseStored(row.event) as DeliveredEvent })), next };
}

const pendingOf = (hookNo: string, isDue: string) =>
  `SELECT delivery_no FROM deliveries WHERE hook_no = ${hookNo} AND state = 'pending' AND ${isDue}
   ORDER BY next_at LIMIT ${EACH}`;

type DueDelivery = Pick<ClaimedDelivery, 'deliveryNo' | 'hookUserId'>;

/**
 * Chooses at most `limit` deliveries: those of the users of whom fewest are under way or chosen come first, and at most
 * `ofUser` of a user are under way. Webhooks that are told of all users count as one user, with a bound of its own.
 * @param due in the order in which those of one user are chosen
 * @returns the numbers of the deliveries
 */
function chooseInTurn(
  due: readonly DueDelivery[],
  { limit, underWay, ...most }: Pick<WantedDeliveries, 'limit' | 'underWay' | keyof Most>,
): number[] {
  const counts = new Map<string | null, number>();
  const countOf = (userId: string | null) => {
    const count = (counts.get(userId) ?? 0) + 1;
    counts.set(userId, count);
    return count;
  };
  for (const { hookUserId } of underWay) countOf(hookUserId);
  return due
    .map(({ deliveryNo, hookUserId }) => ({ deliveryNo, hookUserId, turn: countOf(hookUserId) }))
    .filter(({ hookUserId, turn }) => turn <= mostOf(hookUserId, most))
    .sort((a, b) => a.turn - b.turn)
    .slice(0, limit)
    .map(({ deliveryNo }) => deliveryNo);
}

type Most = Pick<WantedDeliveries, 'ofUser' | 'ofAll'>;

function mostOf(hookUserId: string | null, { ofUser, ofAll }: Most): number {
  return hookUserId === null ? ofAll : ofUser;
}

/** Leaves out the webhooks of users who already have as many deliveries under way as a user may have. */
function withoutFull(
  store: Store,
  hooks: readonly number[],
  { underWay, ...most }: Pick<WantedDeliveries, 'underWay' | keyof Most>,
): readonly number[] {
  const counts = new Map<string | null, number>();
  for (const { hookUserId } of underWay) counts.set(hookUserId, (counts.get(hookUserId) ?? 0) + 1);
  const isFull = (userId: string | null) => (counts.get(userId) ?? 0) >= mostOf(userId, most);
  if (![...counts.keys()].some(isFull)) return hooks;
  const owned = store
    .prepare(
      `SELECT h.hook_no AS hookNo, h.user_id AS hookUserId
       FROM json_each(?) AS hooks CROSS JOIN webhooks h ON h.hook_no = hooks.value`,
    )
    .all(JSON.stringify(hooks)) as Pick<ClaimedDelivery, 'hookNo' | 'hookUserId'>[];
  return owned.filter(({ hookUserId }) => !isFull(hookUserId)).map(({ hookNo }) => hookNo);
}

/**
 * Lists the numbers above `after` of webhooks with pending deliveries, ascending, at most 256. It skips along the index
 * from one webhook to the next, since one may have a hundred thousand deliveries.
 */
function hooksWithPending(store: Store, after: number): number[] {
  return store
    .prepare(
      `WITH RECURSIVE hooks (hook_no, place) AS (
         SELECT min(hook_no), 1 FROM deliveries WHERE state = 'pending' AND hook_no > ?
         UNION ALL
         SELECT (SELECT min(hook_no) FROM deliveries WHERE state = 'pending' AND hook_no > hooks.hook_no), place + 1
         FROM hooks WHERE hook_no IS NOT NULL AND place < ${HOOKS_AT_ONCE})
       SELECT hook_no FROM hooks WHERE hook_no IS NOT NULL ORDER BY hook_no`,
    )
    .pluck()
    .all(after) as number[];
}

/**
 * Stores the result of an attempt to send a delivery. It is ignored if a later attempt has begun, or the delivery has
 * ended. Call inside a write.
 */
export function storeDeliveryOutcome(
  store: Store,
  { deliveryNo, attempts, delivered, status, error, nextAt }: DeliveryOutcome,
  now: number,
): void {
  const state: DeliveryState = delivered ? 'delivered' : nextAt === null ? 'dead' : 'pending';
  store
    .prepare(
      `UPDATE deliveries SET state = :state, next_at = :nextAt, last_status = :status, last_error = :error,
         ended_at = :endedAt
       WHERE delivery_no = :deliveryNo AND attempts = :attempts AND state = 'pending'`,
    )
    .run({
      ...{ deliveryNo, attempts, state, status, error },
      nextAt: nextAt ?? now,
      endedAt: state === 'pending' ? null : now,
    });
}

/**
 * Lists a page of the deliveries of a webhook, newest first, with `state` only those in this state; `total` counts all
 * that match.
 * @throws EngineError `not_found`
 */
export function listDeliveries(
  store: Store,
  hookId: string,
  { limit, offset, state }: StandingPart & { readonly state?: DeliveryState | undefined },
): Listed<Delivery> {
  const { hookNo } = getRow(store, hookId);
  const [where, of] = state === undefined ? ['hook_no = ?', [hookNo]] : ['hook_no = ? AND state = ?', [hookNo, state]];
  const rows = store
    .prepare(
      `SELECT id, event, user_id AS userId, at, state, attempts, iif(state = 'pending', next_at, NULL) AS nextAt,
         last_status AS lastStatus, last_error AS lastError
       FROM deliveries WHERE ${where} ORDER BY delivery_no DESC LIMIT ? OFFSET ?`,
    )
    .all(...of, limit, offset) as (Omit<Delivery, 'event'> & { event: string })[];
  const total = store
    .prepare(`SELECT count(*) FROM deliveries WHERE ${where}`)
    .pluck()
    .get(...of) as number;
  return { items: rows.map((row) => ({ ...row, event: parseStored(row.event) as DeliveredEvent })), total };
}

/**
 * Makes at most `limit` dead (given up) deliveries of a webhook pending again, those with the lowest numbers, due at
 * once and with their full number of attempts. Call inside a write.
 * @param after takes only deliveries with a `delivery_no` above this
 * @returns the number of deliveries, and the `delivery_no` of the last one; `after` if there is none
 * @throws EngineError `not_found`
 */
export function retryDeliveries(
  store: Store,
  { id, after, limit }: { readonly id: string; readonly after: number; readonly limit: number },
  now: number,
): { readonly retried: number; readonly last: number } {
  const { hookNo } = getRow(store, id);
  countRoomAnew(store, hookNo);
  const retried = store
    .prepare(
      `UPDATE deliveries SET state = 'pending', attempts = 0, next_at = ?, ended_at = NULL
       WHERE delivery_no IN (
         SELECT delivery_no FROM deliveries WHERE hook_no = ? AND state = 'dead' AND delivery_no > ?
         ORDER BY delivery_no LIMIT ?)
       RETURNING delivery_no`,
    )
    .pluck()
    .all(now, hookNo, after, limit) as number[];
  return { retried: retried.length, last: Math.max(after, ...retried) };
}

/**
 * Deletes at most `limit` deliveries that ended before `before` (Unix ms), oldest first. Call inside a write.
 * @returns the number of deleted deliveries
 */
export function purgeDeliveries(store: Store, before: number, limit: number): number {
  return store
    .prepare(
      `DELETE FROM deliveries WHERE delivery_no IN (
         SELECT delivery_no FROM deliveries WHERE state <> 'pending' AND ended_at < ? ORDER BY ended_at LIMIT ?)`,
    )
    .run(before, limit).changes;
}
