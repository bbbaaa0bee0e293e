import { mayHoldRows } from '../control/place-of.ts';
import type { Tenant } from '../engine.ts';
import { serialiseError } from '../errors.ts';
import { hasNeighbours } from '../readers/standing.ts';
import { distinctModels } from '../store/live-model.ts';
import {
  getStandingQuery,
  hasDueMemories,
  hasStanding,
  listStandingAnswers,
  listStandingQueries,
} from '../store/standing.ts';
import { listUnembeddedQueries } from '../store/standing-vectors.ts';
import { getWebhook, hasDueDeliveries, hasEventsToHand, listDeliveries, listWebhooks } from '../store/webhooks.ts';
import type { ClaimedDelivery, DeliveryOutcome, Standing } from '../types.ts';
import { readRetrievalDefaults } from '../control/retrieval-defaults.ts';
import type { TenantOptions } from './tenant-options.ts';
import { guardOf } from './tenant-privacy.ts';

/** Memories that one comparison takes. */
const COMPARED_AT_ONCE = 64;
/** Events that one commit hands to the webhooks. */
const HANDED_AT_ONCE = 500;
/** Standing queries that one comparison may have embedded before it. */
const EMBEDDED_AT_ONCE = 256;
/** Time after a failure of the provider in which it is not asked for vectors of standing queries (ms). */
const EMBED_AGAIN_MS = 30_000;
/** Most deliveries of a tenant that this process has under way. */
const MAX_UNDER_WAY = 32;

/** Makes the methods of standing queries and webhooks. */
export function createStandingMethods(options: TenantOptions): Pick<Tenant, keyof Standing> {
  const { id: tenantId, path, config, control, clock, writer, readers, metrics, tended } = options;
  const store = () => options.open().store;
  const guard = guardOf(options);
  const deliver = createDeliveries(options);
  const embedQueries = createQueryEmbedding(options);
  /** A file that nothing was written to since the feed was switched on is told of it by its writer. */
  const ensureFeed = async () => {
    if (config.OM_EVENTS) await writer.write(path, 'open', {});
    tended.add(tenantId);
  };

  return {
    async createStandingQuery(query) {
      if (query.webhookUrl !== undefined) options.webhookSender.check(query.webhookUrl);
      await ensureFeed();
      const { value } = (await guard.fields({ value: { query: query.query } })).fields;
      const screened = (value as { readonly query: string }).query;
      return writer.write(path, 'createStandingQuery', { ...query, query: screened });
    },
    listStandingQueries: async (page) => store().read(() => listStandingQueries(store(), page)),
    getStandingQuery: async (id) => getStandingQuery(store(), id),
    listStandingAnswers: async (id, page) => store().read(() => listStandingAnswers(store(), id, page)),
    deleteStandingQuery: (id) => writer.write(path, 'deleteStandingQuery', { id }),
    async createWebhook(webhook) {
      options.webhookSender.check(webhook.url);
      await ensureFeed();
      return writer.write(path, 'createWebhook', webhook);
    },
    listWebhooks: async (page) => store().read(() => listWebhooks(store(), page)),
    getWebhook: async (id) => getWebhook(store(), id),
    deleteWebhook: (id) => writer.write(path, 'deleteWebhook', { id }),
    listDeliveries: async (id, page) => store().read(() => listDeliveries(store(), id, page)),
    retryDeliveries: (id) => writer.write(path, 'retryDeliveries', { id }),

    async tendStanding(signal) {
      if (!mayHoldRows(config, path) || !hasStanding(store())) return 'absent';
      const compared = await compareDue();
      const handed =
        hasEventsToHand(store()) && (await writer.write(path, 'handEvents', { limit: HANDED_AT_ONCE })) > 0;
      return (await deliver(signal)) || compared || handed ? 'busy' : 'idle';
    },
  };

  /** Compares the memories that wait with the standing queries. @returns whether there were any */
  async function compareDue(): Promise<boolean> {
    if (!hasDueMemories(store(), clock.now())) return false;
    const due = await writer.write(path, 'claimDue', { limit: COMPARED_AT_ONCE });
    if (due.length === 0) return false;
    await embedQueries();
    const memoryNos = due.map(({ memoryNo }) => memoryNo);
    const matches = await readers.read(path, 'compareStanding', {
      memoryNos,
      defaults: readRetrievalDefaults(control, tenantId),
    });
    const dueNos = due.map(({ dueNo }) => dueNo);
    metrics.standingAnswers.inc(await writer.write(path, 'noteAnswers', { dueNos, matches }));
    return true;
  }
}

/**
 * Makes the function that embeds standing queries which have no vector of the live model yet, some at a time. Where the
 * provider fails, their words find them alone until it is asked again.
 */
function createQueryEmbedding({ path, clock, open, questionerOf, writer }: TenantOptions): () => Promise<void> {
  let askAgainAt = -Infinity;
  return async () => {
    const { store, liveModels } = open();
    const live = liveModels === null ? undefined : distinctModels(liveModels)[0];
    if (live === undefined || !hasNeighbours(live) || clock.now() < askAgainAt) return;
    const waiting = listUnembeddedQueries(store, live.modelNo, EMBEDDED_AT_ONCE);
    const questioner = waiting.length === 0 ? null : questionerOf(live);
    if (questioner === null) return;
    const embedded = await Promise.all(
      waiting.map(async ({ queryNo, query }) => ({ queryNo, embedding: await questioner.embedQuery(query) })),
    );
    const vectors = embedded.flatMap(({ queryNo, embedding }) => (embedding === null ? [] : { queryNo, embedding }));
    if (vectors.length < waiting.length) askAgainAt = clock.now() + EMBED_AGAIN_MS;
    if (vectors.length > 0) await writer.write(path, 'putStandingVectors', { modelNo: live.modelNo, vectors });
  };
}

/** Makes the function that sends what is due. It waits for no reply: each is noted when it comes. */
function createDeliveries({
  path,
  open,
  config,
  clock,
  logger,
  metrics,
  writer,
  webhookSender,
}: TenantOptions): (signal: AbortSignal) => Promise<boolean> {
  /** The webhooks of the deliveries that are under way. */
  const underWay: number[] = [];
  return async (signal) => {
    if (underWay.length >= MAX_UNDER_WAY || !hasDueDeliveries(open().store, clock.now())) return false;
    const claimed = await writer.write(path, 'claimDeliveries', {
      limit: MAX_UNDER_WAY - underWay.length,
      busyHooks: [...new Set(underWay)],
    });
    for (const delivery of claimed) {
      underWay.push(delivery.hookNo);
      void attempt(delivery, signal).finally(() => void underWay.splice(underWay.indexOf(delivery.hookNo), 1));
    }
    return claimed.length > 0;
  };

  /** Sends a delivery and notes what came of it. It never throws: what is not noted is tried again. */
  async function attempt(delivery: ClaimedDelivery, signal: AbortSignal): Promise<void> {
    try {
      const { deliveryNo, attempts, id, url, secret } = delivery;
      const { status, error } = await webhookSender.send({ id, url, secret, body: bodyOf(delivery) }, signal);
      const delivered = error === null;
      const isLast = status === GONE || attempts >= config.OM_WEBHOOK_ATTEMPTS;
      const nextAt = delivered || isLast ? null : clock.now() + pauseAfter(attempts);
      const outcome: DeliveryOutcome = { deliveryNo, attempts, delivered, status, error, nextAt };
      await writer.write(path, 'settleDeliveries', { outcomes: [outcome] });
      metrics.webhookDeliveries.inc({ outcome: delivered ? 'delivered' : isLast ? 'dead' : 'failed' });
    } catch (error) {
      if (!signal.aborted) logger.error({ error: serialiseError(error) }, 'webhook_delivery_failed');
    }
  }
}

/** HTTP status by which a receiver says that it wants nothing any more. */
const GONE = 410;
/** Pauses after the first attempts (ms); the last one holds for all further attempts. */
const PAUSES = [5_000, 60_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000];
/** Share by which a pause is longer or shorter by chance, so that receivers are not met by all at once. */
const JITTER = 0.2;

function pauseAfter(attempts: number): number {
  const pause = PAUSES[Math.min(attempts, PAUSES.length) - 1]!;
  return Math.round(pause * (1 + JITTER * (2 * Math.random() - 1)));
}

/** Writes the body of a message: kind, time and ids, with names as in the API. */
function bodyOf({
  event: { type, id, standingId, documentId, score, supersedes },
  userId,
  at,
}: ClaimedDelivery): string {
  return JSON.stringify({
    type,
    timestamp: new Date(at).toISOString(),
    data: { id, user_id: userId, standing_id: standingId, document_id: documentId, score, supersedes },
  });
}
