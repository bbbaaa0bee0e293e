/** Translates standing queries and webhooks to the field names of the API. */
import type {
  CreatedWebhook,
  Delivery,
  Json,
  NewStandingQuery,
  NewWebhook,
  StandingAnswer,
  StandingQuery,
  Webhook,
} from '../../engine/index.ts';
import type {
  CreatedWebhookItem,
  DeliveryItem,
  NewStandingBody,
  NewWebhookBody,
  StandingAnswerItem,
  StandingItem,
  WebhookItem,
} from '../schemas/standing.ts';
import { toFilter } from './query.ts';

export function toStandingQuery(body: NewStandingBody): NewStandingQuery {
  const { query, user_id: userId, filters = {}, min_score: minScore, webhook } = body;
  const filter = toFilter({ filters });
  return { query, userId, filter, given: filters as Record<string, Json>, minScore, webhookUrl: webhook?.url };
}

export function standingItem({ id, query, userId, given, minScore, ...more }: StandingQuery): StandingItem {
  return {
    id,
    query,
    user_id: userId,
    filters: { ...given },
    min_score: minScore,
    created_at: more.createdAt,
    written_by: more.writtenBy,
    answers: more.answers,
  };
}

export function answerItem({ memoryId, documentId, score, supersedes, at }: StandingAnswer): StandingAnswerItem {
  return { memory_id: memoryId, document_id: documentId, score, supersedes, at };
}

export function toWebhook({ url, events = [], user_id: userId }: NewWebhookBody): NewWebhook {
  return { url, kinds: events, userId };
}

export function webhookItem({ id, url, kinds, userId, standingId, deliveries, ...made }: Webhook): WebhookItem {
  return {
    id,
    url,
    events: [...kinds],
    user_id: userId,
    standing_id: standingId,
    created_at: made.createdAt,
    written_by: made.writtenBy,
    deliveries: { ...deliveries },
    dropped: made.dropped,
    last_dropped_at: made.lastDroppedAt,
  };
}

export function createdWebhookItem(webhook: CreatedWebhook): CreatedWebhookItem {
  return { ...webhookItem(webhook), secret: webhook.secret };
}

export function deliveryItem({ id, event, userId, at, state, attempts, ...last }: Delivery): DeliveryItem {
  return {
    id,
    type: event.type,
    event_id: event.id,
    user_id: userId,
    standing_id: event.standingId ?? null,
    at,
    state,
    attempts,
    next_at: last.nextAt,
    last_status: last.lastStatus,
    last_error: last.lastError,
  };
}
