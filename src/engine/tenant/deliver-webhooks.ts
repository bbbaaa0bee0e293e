/**
 * Delivers webhooks: sends the deliveries that are due, stores each outcome, and decides when a failed delivery is
 * tried again. `adapters/webhook-sender.ts` makes the request itself.
 */
import { serialiseError } from '../errors.ts';
import type { ClaimedDelivery, DeliveryOutcome } from '../types.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Greatest number of deliveries of a tenant that this process sends at the same time. */
const MAX_UNDER_WAY = 32;
/**
 * Greatest number of deliveries under way to webhooks of one user, so that those of other users find a place at once,
 * whatever the number of webhooks of that user that do not answer.
 */
const MAX_OF_USER = MAX_UNDER_WAY / 2;
/**
 * Number of the `MAX_UNDER_WAY` places that webhooks without a user, which are told of the events of all users, leave
 * to webhooks of one user.
 */
const KEPT_FREE = 4;
/**
 * Time for which no claim follows one that found nothing, while at least `MAX_OF_USER` deliveries are under way (ms);
 * it is over as soon as one of them ends.
 */
const REST_MS = 1_000;

/**
 * Makes the function that starts the deliveries that are due, at most as many as fit into 32 at the same time. It does
 * not wait for replies: each outcome is stored when it comes. It resolves to whether any delivery was
 * started, or there are further webhooks to look at.
 */
export function createDeliveries({
  path,
  config,
  clock,
  logger,
  metrics,
  readers,
  writer,
  webhookSender,
}: TenantOptions): (signal: AbortSignal) => Promise<boolean> {
  /** The deliveries that are being sent. */
  const underWay: ClaimedDelivery[] = [];
  /** Number of the webhook (`hookNo`) after which the next claim looks; 0 begins with the first. */
  let after = 0;
  /**
   * Time (ms, `performance.now`) before which no claim is made while at least `MAX_OF_USER` deliveries are under way,
   * since the last claim found nothing; 0 if it found something.
   */
  let restsUntil = 0;
  return async (signal) => {
    if (underWay.length >= MAX_OF_USER && performance.now() < restsUntil) return false;
    if (underWay.length >= MAX_UNDER_WAY || !(await readers.readFew(path, 'hasDueDeliveries', {}))) return false;
    const before = underWay.length;
    if (before >= MAX_UNDER_WAY) return false;
    const { claimed, next } = await writer.write(path, 'claimDeliveries', {
      limit: MAX_UNDER_WAY - before,
      ofUser: MAX_OF_USER,
      ofAll: MAX_UNDER_WAY - KEPT_FREE,
      underWay: underWay.map(({ hookNo, hookUserId }) => ({ hookNo, hookUserId })),
      after,
    });
    after = next;
    const hasNothing = claimed.length === 0 && next === 0 && underWay.length === before;
    restsUntil = hasNothing ? performance.now() + REST_MS : 0;
    for (const delivery of claimed) {
      underWay.push(delivery);
      void attempt(delivery, signal).finally(() => {
        underWay.splice(underWay.indexOf(delivery), 1);
        restsUntil = 0;
      });
    }
    return claimed.length > 0 || next > 0;
  };

  /**
   * Sends a delivery and stores its outcome. It never throws: a delivery whose outcome could not be stored is sent
   * again later.
   */
  async function attempt(delivery: ClaimedDelivery, signal: AbortSignal): Promise<void> {
    try {
      const { deliveryNo, attempts, id, url, secret } = delivery;
      const { status, error } = await webhookSender.send({ id, url, secret, body: bodyOf(delivery) }, signal);
      const delivered = error === null;
      const isLast = status === GONE || attempts >= config.OM_WEBHOOK_ATTEMPTS;
      const nextAt = delivered || isLast ? null : clock.now() + pauseAfter(attempts);
      const outcome: DeliveryOutcome = { deliveryNo, attempts, delivered, status, error, nextAt };
      await writer.write(path, 'storeDeliveryOutcomes', { outcomes: [outcome] });
      metrics.webhookDeliveries.inc({ outcome: delivered ? 'delivered' : isLast ? 'dead' : 'failed' });
    } catch (error) {
      if (!signal.aborted) logger.error({ error: serialiseError(error) }, 'webhook_delivery_failed');
    }
  }
}

/** HTTP status with which a receiver says that it wants no further deliveries: this one is not tried again. */
const GONE = 410;
/** Pauses after the first, second and further failed attempts (ms); the last one applies to all later attempts. */
const PAUSES = [5_000, 60_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000];
/**
 * Greatest share by which a pause is lengthened or shortened at random, so that not all deliveries are tried again at
 * once.
 */
const JITTER = 0.2;

function pauseAfter(attempts: number): number {
  const pause = PAUSES[Math.min(attempts, PAUSES.length) - 1]!;
  return Math.round(pause * (1 + JITTER * (2 * Math.random() - 1)));
}

/**
 * Writes the body of a delivery as JSON, with names as in the API: type, time, ids and score of the event, but no text
 * of a memory.
 */
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
