/** The writes of standing queries and webhooks. */
import { EngineError } from '../errors.ts';
import { feedId } from '../store/events.ts';
import {
  claimDueMemories,
  type DueMemory,
  eraseStanding as erase,
  getStandingQuery,
  hasStandingQuery,
  insertStandingQuery,
  noteAnswers as note,
} from '../store/standing.ts';
import {
  claimDeliveries as claim,
  handEvents as hand,
  insertWebhook,
  settleDelivery,
  type WantedDeliveries,
} from '../store/webhooks.ts';
import {
  WEBHOOK_TIMEOUT_MS,
  type ClaimedDelivery,
  type CreatedStandingQuery,
  type CreatedWebhook,
  type DeliveryOutcome,
  type NewStandingQuery,
  type NewWebhook,
  type StandingMatch,
} from '../types.ts';
import type { WriteContext } from './write-context.ts';

/** Stores a standing query, and its webhook if it names a URL. Throws as `Standing.createStandingQuery`. */
export function createStandingQuery(context: WriteContext, query: NewStandingQuery): CreatedStandingQuery {
  const { store, now, newId } = context;
  // Without the feed nothing would tell of an answer.
  feedId(store);
  const id = query.made?.id ?? newId();
  if (hasStandingQuery(store, id)) throw new EngineError('conflict', 'id: another standing query has this id');
  const queryNo = insertStandingQuery(store, query, { id, now: query.made?.at ?? now });
  const { webhookUrl: url, userId } = query;
  const webhook =
    url === undefined ? null : insertWebhook(store, { url, kinds: [], userId }, { id: newId(), queryNo, now });
  return { ...getStandingQuery(store, id), webhook };
}

/** Stores a webhook. Throws as `Standing.createWebhook`. */
export function createWebhook({ store, now, newId }: WriteContext, webhook: NewWebhook): CreatedWebhook {
  return insertWebhook(store, webhook, { id: newId(), queryNo: null, now });
}

/** Deletes what users asked and their webhooks. @returns how many there were */
export function eraseStanding({ store }: WriteContext, { userIds }: { readonly userIds: readonly string[] }): number {
  return erase(store, userIds);
}

/** Claims memories that are to be compared with the standing queries. */
export function claimDue(
  { store, now, config }: WriteContext,
  { limit }: { readonly limit: number },
): readonly DueMemory[] {
  return claimDueMemories(store, { now, leaseMs: config.OM_LEASE_MS, limit });
}

/** Notes what a comparison found, and ends it. @returns the number of new answers */
export function noteAnswers(
  { store, now }: WriteContext,
  found: { readonly dueNos: readonly number[]; readonly matches: readonly StandingMatch[] },
): number {
  return note(store, found, now);
}

/** Hands events to the webhooks. @returns the number of deliveries that were made */
export function handEvents({ store, now, newId }: WriteContext, { limit }: { readonly limit: number }): number {
  return hand(store, { limit, now, newId });
}

/** A claim of a delivery ends some time after its attempt, or an attempt that is under way would begin twice. */
const deliveryLease = ({ OM_LEASE_MS }: WriteContext['config']) => Math.max(OM_LEASE_MS, 2 * WEBHOOK_TIMEOUT_MS);

/** Claims deliveries that are due, for an attempt each. */
export function claimDeliveries(
  { store, now, config }: WriteContext,
  wanted: WantedDeliveries,
): readonly ClaimedDelivery[] {
  return claim(store, { now, leaseMs: deliveryLease(config), ...wanted });
}

/** Notes what came of attempts. */
export function settleDeliveries(
  { store, now }: WriteContext,
  { outcomes }: { readonly outcomes: readonly DeliveryOutcome[] },
): void {
  for (const outcome of outcomes) settleDelivery(store, outcome, now);
}
