/** Webhooks, and the ledger of what each is told: one row an event, from the commit that hands it over on. */
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
/** Random bytes of a secret, as Standard Webhooks recommends. */
const SECRET_BYTES = 24;

// ── Webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Stores a webhook, which is told of the events from now on. Call inside a write.
 * @param owned.queryNo number of the only standing query whose answers are told; null for none
 * @throws EngineError `conflict` for more webhooks than `STANDING_LIMITS` allows, and where there is no feed
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

/** Lists webhooks, newest first. */
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

/** Returns a webhook. @throws EngineError `not_found` */
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

/** Tells whether there are events that the webhooks were not handed yet. */
export function hasEventsToHand(store: Store): boolean {
  if (!hasEvents(store) || store.prepare('SELECT 1 FROM webhooks LIMIT 1').get() === undefined) return false;
  return cursorOf(store) < newestNo(store);
}

/**
 * Hands the next events to the webhooks that want them: it looks at `limit` events, makes a delivery for each webhook
 * that an event concerns, and moves the cursor on, all in one transaction. Call inside a write.
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

/** Number of the last event that was handed over; 0 in a feed that was begun anew. */
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
  /** Events up to this number came before the webhook. */
  readonly since: number;
  /** Kinds that are told; null for all. */
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

/** Most deliveries of one webhook that one claim takes, so that a slow receiver leaves room for the others. */
const EACH = 4;

/** Tells whether a delivery is due. */
export function hasDueDeliveries(store: Store, now: number): boolean {
  return (
    store.prepare(`SELECT 1 FROM deliveries WHERE state = 'pending' AND next_at <= ? LIMIT 1`).get(now) !== undefined
  );
}

/** Which deliveries are claimed. */
export interface WantedDeliveries {
  readonly limit: number;
  /** Numbers of webhooks that have enough under way. */
  readonly busyHooks: readonly number[];
}

/**
 * Claims deliveries that are due, at most `EACH` of each webhook, for an attempt that ends within `leaseMs`. Call
 * inside a write.
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

/** Notes what came of an attempt, unless a later one has begun. Call inside a write. */
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

/** Lists the deliveries of a webhook, newest first. @throws EngineError `not_found` */
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

/** Makes the dead deliveries of a webhook pending again, from their first attempt on. Call inside a write. */
export function retryDeliveries(store: Store, hookId: string, now: number): number {
  return store
    .prepare(
      `UPDATE deliveries SET state = 'pending', attempts = 0, next_at = ?, ended_at = NULL
       WHERE hook_no = ? AND state = 'dead'`,
    )
    .run(now, getRow(store, hookId).hookNo).changes;
}

/** Deletes at most `limit` deliveries that ended before a time (Unix ms). Call inside a write. @returns how many */
export function purgeDeliveries(store: Store, before: number, limit: number): number {
  return store
    .prepare(
      `DELETE FROM deliveries WHERE delivery_no IN (
         SELECT delivery_no FROM deliveries WHERE state <> 'pending' AND ended_at < ? ORDER BY ended_at LIMIT ?)`,
    )
    .run(before, limit).changes;
}
