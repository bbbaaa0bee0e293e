/**
 * Commands that write standing queries (stored queries that each new memory is compared with), webhooks and deliveries.
 */
import { EngineError } from '../errors.ts';
import { feedId } from '../store/events.ts';
import {
  claimDueMemories,
  type DueMemory,
  getStandingQuery,
  hasStandingQuery,
  insertStandingQuery,
  noteAnswers as note,
} from '../store/standing.ts';
import { eraseStanding as erase } from '../store/erase-standing.ts';
import { handEvents as hand } from '../store/hand-events.ts';
import {
  type ClaimedDeliveries,
  claimDeliveries as claim,
  insertWebhook,
  storeDeliveryOutcome,
  type WantedDeliveries,
} from '../store/webhooks.ts';
import { ensureWriter } from '../store/writers.ts';
import {
  WEBHOOK_TIMEOUT_MS,
  type CreatedStandingQuery,
  type CreatedWebhook,
  type DeliveryOutcome,
  type HandedEvents,
  type NewStandingQuery,
  type NewWebhook,
  type StandingMatch,
  type StandingOwner,
} from '../types.ts';
import { noteDeletedRows } from './note-deleted-rows.ts';
import { type Quota, refuseOverQuota } from './quota.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Stores a standing query, and a webhook if it names a URL.
 * @throws EngineError `conflict` for an id that exists, over `STANDING_LIMITS`, and with `OM_EVENTS=false`;
 *   `storage_full` over the quota
 */
export function createStandingQuery(
  context: WriteContext,
  { quota = null, ...query }: NewStandingQuery & { readonly quota?: Quota | null },
): CreatedStandingQuery {
  const { store, now, newId } = context;
  refuseOverQuota(context, quota, 0);
  // Without the feed nothing would tell of an answer.
  feedId(store);
  const id = query.made?.id ?? newId();
  if (hasStandingQuery(store, id)) throw new EngineError('conflict', 'id: another standing query has this id');
  const writerNo = ensureWriter(store, context.writtenBy);
  const queryNo = insertStandingQuery(store, query, { id, writerNo, now: query.made?.at ?? now });
  const { webhookUrl: url, userId } = query;
  const webhook =
    url === undefined
      ? null
      : insertWebhook(store, { url, kinds: [], userId }, { id: newId(), queryNo, writerNo, now });
  return { ...getStandingQuery(store, id), webhook };
}

/**
 * Stores a webhook.
 * @throws EngineError `conflict` over `STANDING_LIMITS`, and with `OM_EVENTS=false`; `storage_full` over the quota
 */
export function createWebhook(
  context: WriteContext,
  { quota = null, ...webhook }: NewWebhook & { readonly quota?: Quota | null },
): CreatedWebhook {
  const { store, now, newId } = context;
  refuseOverQuota(context, quota, 0);
  const writerNo = ensureWriter(store, context.writtenBy);
  return insertWebhook(store, webhook, { id: newId(), queryNo: null, writerNo, now });
}

/**
 * Deletes at most `limit` standing queries and `limit` webhooks of users or of keys, and removes the users' names from
 * at most `limit` deliveries.
 * @returns the numbers of deleted queries and webhooks, and with `isDone` whether nothing of them is left
 */
export function eraseStanding(
  context: WriteContext,
  { owner, limit }: { readonly owner: StandingOwner; readonly limit: number },
): Omit<ReturnType<typeof erase>, 'names'> {
  const { names, ...erased } = erase(context.store, owner, limit);
  if (names + erased.standingQueries + erased.webhooks > 0) noteDeletedRows(context);
  return erased;
}

/**
 * Claims at most `limit` of the memories that wait to be compared with the standing queries, those that have waited
 * longest. A claim lasts for `OM_LEASE_MS`.
 */
export function claimDue(
  { store, now, config }: WriteContext,
  { limit }: { readonly limit: number },
): readonly DueMemory[] {
  return claimDueMemories(store, { now, leaseMs: config.OM_LEASE_MS, limit });
}

/**
 * Stores the memories that a comparison found to answer standing queries, and deletes the notes of the compared
 * memories, so that none is compared again.
 * @param found `dueNos`: the numbers of the notes of all compared memories, which `claimDue` returned; `matches`: the
 *   answers among them
 * @returns the number of new answers; an answer that is stored already does not count
 */
export function noteAnswers(
  { store, now }: WriteContext,
  found: { readonly dueNos: readonly number[]; readonly matches: readonly StandingMatch[] },
): number {
  return note(store, found, now);
}

/**
 * Reads the next `limit` events of the change feed, fewer once they make 1,000 deliveries, and adds a delivery of each
 * event for each webhook that follows it and has room for it (`STANDING_LIMITS`).
 * @returns the numbers of deliveries that were made, and of those that were dropped for lack of room
 */
export function handEvents({ store, now, newId }: WriteContext, { limit }: { readonly limit: number }): HandedEvents {
  return hand(store, { limit, now, newId });
}

/**
 * Returns the duration of a claim on a delivery (ms). It is longer than an attempt can take, so that no second attempt
 * begins while one is running.
 */
const deliveryLease = ({ OM_LEASE_MS }: WriteContext['config']) => Math.max(OM_LEASE_MS, 2 * WEBHOOK_TIMEOUT_MS);

/**
 * Claims deliveries of events to webhooks that are due. Each claim is for one attempt, and lasts for `deliveryLease`.
 */
export function claimDeliveries({ store, now, config }: WriteContext, wanted: WantedDeliveries): ClaimedDeliveries {
  return claim(store, { now, leaseMs: deliveryLease(config), ...wanted });
}

/** Stores the results of attempts to deliver events to webhooks. */
export function storeDeliveryOutcomes(
  { store, now }: WriteContext,
  { outcomes }: { readonly outcomes: readonly DeliveryOutcome[] },
): void {
  for (const outcome of outcomes) storeDeliveryOutcome(store, outcome, now);
}
