/**
 * Stores webhooks and their deliveries: one row for each webhook and event that must be sent to it. The row is added
 * when the event is read from the change feed.
 */

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
  type Webhook,
} from '../types.ts';
import { feedId, hasEvents, newestNo, type NumberedEvent, readNumberedEvents } from './events.ts';
import type { Store } from './open-store.ts';
import { findStandingAnswer } from './standing.ts';
import { parseStored } from './stored-json.ts';

interface HookRow {
  readonly hookNo: number;
  readonly id: string;
  readonly url: string;
  readonly kinds: string;
  readonly userId: string | null;
  readonly standingId: string | null;
  readonly createdAt: number;
}

const HOOKS = `SELECT h.hook_no AS hookNo, h.id, h.url, h.kinds, h.user_id AS userId, q.id AS standingId,
  h.created_at AS createdAt FROM webhooks h LEFT JOIN standing_queries q ON q.query_no = h.query_no`;
/** Number of random bytes of a secret, as Standard Webhooks recommends. */
const SECRET_BYTES = 24;

// ── Webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Stores a webhook, which gets the events that happen from now on. Call inside a write.
 * @param owned.queryNo number of the standing query if the webhook gets only answers of this query; null for a webhook
 *   that also gets other events
 * @throws EngineError `conflict` for more than 20,000 webhooks, and while the change feed is off
 */
export function insertWebhook(
  store: Store,
  { url, kinds, userId }: NewWebhook,
  { id, queryNo, now }: { readonly id: string; readonly queryNo: number | null; readonly now: number },
): CreatedWebhook {
  const feed = feedId(store);
  const count = store.prepare('SELECT count(*) FROM webhooks').pluck().get() as number;
  if (count >= STANDING_LIMITS.webhooks)
    throw new EngineError('conflict', `a tenant has at most ${STANDING_LIMITS.webhooks} webhooks: delete one first`);
  const newest = newestNo(store);
  // Without webhooks nobody moved the cursor on.
  if (count === 0) store.prepare('UPDATE webhook_cursor SET feed_id = ?, event_no = ?').run(feed, newest);
  const secret = `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
  store
    .prepare(
      `INSERT INTO webhooks (id, query_no, user_id, url, kinds, secret, since_no, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(id, queryNo, userId ?? null, url, JSON.stringify(kinds), secret, newest, now);
  return { ...getWebhook(store, id), secret };
}

/** Lists a page of webhooks, newest first; `total` counts all of them. */
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

// ── From events to deliveries ────────────────────────────────────────────────────────────────────────────────────────

/** Tells whether there are webhooks, and events in the change feed for which no deliveries were made yet. */
export function hasEventsToHand(store: Store): boolean {
  if (!hasEvents(store) || store.prepare('SELECT 1 FROM webhooks LIMIT 1').get() === undefined) return false;
  return cursorOf(store) < newestNo(store);
}

/**
 * Makes deliveries for the next events. It examines at most `limit` events, adds a delivery for each webhook that must
 * get the event, and stores how far it has read the change feed. Call inside a write.
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
  const insert = store.prepare(
    'INSERT INTO deliveries (id, hook_no, at, user_id, event, next_at) VALUES (?, ?, ?, ?, ?, ?)',
  );
  let made = 0;
  for (const event of events) {
    const hooks = [...forAll, ...hooksOfOwner(store, event), ...hooksOfQuery(store, event)];
    const wanted = hooks.filter(
      ({ since, kinds }) => since < event.eventNo && (kinds === null || kinds.has(event.kind)),
    );
    if (wanted.length === 0) continue;
    const told = JSON.stringify(toldOf(store, event));
    for (const { hookNo } of wanted) insert.run(`msg_${newId()}`, hookNo, event.at, event.userId, told, now);
    made += wanted.length;
  }
  store.prepare('UPDATE webhook_cursor SET feed_id = ?, event_no = ?').run(feed, last);
  return made;
}

/**
 * Returns the number of the last event for which deliveries were made; 0 if the change feed was switched on again
 * since.
 */
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

function hooksOfOwner(store: Store, { userId, isOf, kind }: NumberedEvent): Hook[] {
  if (userId !== null) return listHooks(store, 'query_no IS NULL AND user_id = ?', userId);
  if (kind !== 'memory.deleted' && kind !== 'memory.expired') return [];
  // The name may have gone with the user's last memory: only a hash of it is kept.
  return listHooks(store, 'query_no IS NULL AND user_id IS NOT NULL').filter((hook) => isOf(hook.userId!));
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

// ── Deliveries ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** Greatest number of deliveries of one webhook in one claim, so that a slow receiver does not block other webhooks. */
const EACH = 4;

/** Tells whether a pending delivery is due at `now` (Unix ms). */
export function hasDueDeliveries(store: Store, now: number): boolean {
  return (
    store.prepare(`SELECT 1 FROM deliveries WHERE state = 'pending' AND next_at <= ? LIMIT 1`).get(now) !== undefined
  );
}

/** Which deliveries are to be claimed. */
export interface WantedDeliveries {
  readonly limit: number;
  /**
   * Numbers of webhooks of which no deliveries are to be claimed, since enough of their deliveries are being sent
   * already.
   */
  readonly busyHooks: readonly number[];
}

/**
 * Claims at most `limit` due deliveries, at most 4 of each webhook, for an attempt that must end within `leaseMs` (ms);
 * after that they are due again. Call inside a write.
 */
export function claimDeliveries(
  store: Store,
  { now, leaseMs, limit, busyHooks }: WantedDeliveries & { readonly now: number; readonly leaseMs: number },
): ClaimedDelivery[] {
  // The webhooks with pending deliveries are found by skips along the index: one may have a hundred thousand of them.
  const rows = store
    .prepare(
      `WITH RECURSIVE hooks (hook_no) AS (
         SELECT min(hook_no) FROM deliveries WHERE state = 'pending'
         UNION ALL
         SELECT (SELECT min(hook_no) FROM deliveries WHERE state = 'pending' AND hook_no > hooks.hook_no)
         FROM hooks WHERE hook_no IS NOT NULL)
       SELECT d.delivery_no AS deliveryNo, d.hook_no AS hookNo, d.id, d.at, d.user_id AS userId, d.event,
         d.attempts + 1 AS attempts, h.url, h.secret
       FROM hooks CROSS JOIN deliveries d ON d.delivery_no IN (
           SELECT delivery_no FROM deliveries
           WHERE hook_no = hooks.hook_no AND state = 'pending' AND next_at <= ? ORDER BY next_at LIMIT ${EACH})
         CROSS JOIN webhooks h ON h.hook_no = d.hook_no
       WHERE hooks.hook_no NOT IN (SELECT value FROM json_each(?))
       ORDER BY d.next_at, d.delivery_no LIMIT ?`,
    )
    .all(now, JSON.stringify(busyHooks), limit) as (Omit<ClaimedDelivery, 'event'> & { event: string })[];
  const claim = store.prepare('UPDATE deliveries SET attempts = ?, next_at = ? WHERE delivery_no = ?');
  for (const { deliveryNo, attempts } of rows) claim.run(attempts, now + leaseMs, deliveryNo);
  return rows.map((row) => ({ ...row, event: parseStored(row.event) as DeliveredEvent }));
}

/**
 * Stores the result of an attempt to send a delivery. It is ignored if a later attempt has begun, or the delivery has
 * ended. Call inside a write.
 */
export function settleDelivery(
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
  { limit, offset, state }: StandingPage & { readonly state?: DeliveryState | undefined },
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
 * Makes at most `limit` dead (given up) deliveries of a webhook pending again, due at once and with their full number
 * of attempts. Call inside a write.
 * @param endedBy takes only deliveries that ended by this time, Unix ms
 * @returns the number of deliveries
 * @throws EngineError `not_found`
 */
export function retryDeliveries(
  store: Store,
  { id, endedBy, limit }: { readonly id: string; readonly endedBy: number; readonly limit: number },
  now: number,
): number {
  return store
    .prepare(
      `UPDATE deliveries SET state = 'pending', attempts = 0, next_at = ?, ended_at = NULL
       WHERE delivery_no IN (
         SELECT delivery_no FROM deliveries WHERE hook_no = ? AND state = 'dead' AND ended_at <= ? LIMIT ?)`,
    )
    .run(now, getRow(store, id).hookNo, endedBy, limit).changes;
}

/**
 * Names what is about to be deleted: a webhook by its id; a standing query by its id, with its webhook; or all webhooks
 * and standing queries of users.
 */
export type StandingPart =
  { readonly webhook: string } | { readonly query: string } | { readonly userIds: readonly string[] };

/**
 * Deletes at most `limit` answers and at most `limit` deliveries that belong to the webhooks or standing queries which
 * are about to be deleted. For users it also removes their names from `limit` deliveries. There may be very many rows,
 * so several writes delete them. Call inside a write.
 * @returns the number of rows that were deleted or changed; 0 if none is left
 */
export function deleteStandingRows(store: Store, part: StandingPart, limit: number): number {
  const [hooks, queries, value] = rowsOf(part);
  const { changes: deliveries } = store
    .prepare(
      `DELETE FROM deliveries WHERE delivery_no IN (
         SELECT delivery_no FROM deliveries WHERE hook_no IN (SELECT hook_no FROM webhooks WHERE ${hooks}) LIMIT ?)`,
    )
    .run(value, limit);
  if (queries === null) return deliveries;
  const { changes: answers } = store
    .prepare(
      `DELETE FROM standing_answers WHERE (query_no, memory) IN (
         SELECT query_no, memory FROM standing_answers
         WHERE query_no IN (SELECT query_no FROM standing_queries WHERE ${queries}) LIMIT ?)`,
    )
    .run(value, limit);
  if (!('userIds' in part)) return deliveries + answers;
  const { changes: names } = store
    .prepare(
      `UPDATE deliveries SET user_id = NULL WHERE delivery_no IN (
         SELECT delivery_no FROM deliveries WHERE user_id IN (SELECT value FROM json_each(?)) LIMIT ?)`,
    )
    .run(value, limit);
  return deliveries + answers + names;
}

/**
 * Returns the SQL conditions that select the webhooks and the standing queries (null if none are deleted), and the
 * value of the one parameter that both conditions have.
 */
function rowsOf(part: StandingPart): readonly [hooks: string, queries: string | null, value: string] {
  if ('webhook' in part) return ['id = ?', null, part.webhook];
  if ('query' in part) return ['query_no = (SELECT query_no FROM standing_queries WHERE id = ?)', 'id = ?', part.query];
  const among = 'user_id IN (SELECT value FROM json_each(?))';
  return [among, among, JSON.stringify(part.userIds)];
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
