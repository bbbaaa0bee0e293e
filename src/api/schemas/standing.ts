/** Schemas of standing queries and webhooks. */
import { z } from 'zod';
import { DELIVERY_STATES, EVENT_KINDS } from '../../engine/index.ts';
import { LIMITS } from './value-limits.ts';
import { count, pageEnd, timestamp, unit, writer } from './memory-replies.ts';
import { filtersSchema } from './query.ts';
import {
  BODY_EXPECTED,
  choice,
  expected,
  fraction,
  givenId,
  pageQuery,
  someOf,
  text,
  userId,
  type Wire,
} from './values.ts';

const url = text(2_048)
  .min(1, 'must not be empty')
  .meta({ examples: ['https://example.com/hooks/cairn'] });

// ── Standing queries ─────────────────────────────────────────────────────────────────────────────────────────────────

const filters = filtersSchema.omit({
  users: true,
  user_id: true,
  sector: true,
  min_score: true,
  startTime: true,
  endTime: true,
});

/**
 * Schema of the JSON body of `POST /standing`, which stores a standing query. Each memory that becomes ready later and
 * answers it is reported.
 */
export const newStanding = z.strictObject(
  {
    query: text(LIMITS.queryCharacters)
      .refine((value) => /[\p{L}\p{N}\p{Extended_Pictographic}]/u.test(value), 'expected words')
      .describe('The question.'),
    user_id: givenId.optional().describe('Only memories of this user answer; those of all users if left out.'),
    filters: filters.optional().describe('Conditions on the memories that answer.'),
    min_score: fraction
      .optional()
      .describe('Lowest score of an answer; the default floor of the tenant’s queries if left out.'),
    webhook: z
      .strictObject({ url: url.describe('Where its answers are sent.') }, expected('an object {url}'))
      .optional()
      .describe('A webhook for the answers to this query alone. It is deleted with the query.'),
  },
  BODY_EXPECTED,
);
export type NewStandingBody = z.output<typeof newStanding>;

/** Schema of the query string of `GET /standing` and `GET /webhooks`. */
export const listQuery = pageQuery.extend({
  user_id: userId.optional().describe('Only standing queries or webhooks of this user.'),
});
/**
 * Schema of the query string of `GET /webhooks/:id/deliveries`, which lists the deliveries of a webhook, newest first.
 */
export const deliveriesQuery = pageQuery.extend({
  state: choice(DELIVERY_STATES).optional().describe('Only deliveries in this state.'),
});

const standingFields = {
  id: z.string(),
  query: z.string(),
  user_id: z.string().nullable().describe('The user whose memories answer; null for all users.'),
  filters: z.looseObject({}).describe('The conditions, as they were given.'),
  min_score: unit
    .nullable()
    .describe("Lowest score with which a memory answers; null for the default floor of the tenant's queries."),
  created_at: timestamp,
  written_by: writer.describe('Public id of the key that stored the query; null if that is not known.'),
  answers: count.describe('Number of memories that answered and are still stored.'),
};
/** Schema of the reply 200 to `GET /standing/:id`, which shows a standing query. */
export const standing = z.strictObject(standingFields).meta({ id: 'StandingQuery' });
export type StandingItem = Wire<typeof standing>;
/** Schema of the reply 200 to `GET /standing`, which lists the standing queries, newest first. */
export const standingList = z.strictObject({
  items: z.array(standing).describe('Newest first.'),
  total: count,
  ...pageEnd,
});

const answer = z.strictObject({
  memory_id: z.string(),
  document_id: z.string().nullable().describe('Document of which the memory is a part; null for none.'),
  score: unit
    .nullable()
    .describe(
      'Score that the memory has as the best match of the query; null if it answers only by superseding an answer.',
    ),
  supersedes: z.string().nullable().describe('Id of the answer that it supersedes; null for none.'),
  at: timestamp,
});
export type StandingAnswerItem = Wire<typeof answer>;
/**
 * Schema of the reply 200 to `GET /standing/:id/answers`, which lists the memories that answered a standing query,
 * newest first.
 */
export const standingAnswers = z.strictObject({
  items: z.array(answer).describe('Newest first.'),
  total: count,
  ...pageEnd,
});

// ── Webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Schema of the JSON body of `POST /webhooks`, which registers an address to which signed events are sent from now on.
 */
export const newWebhook = z.strictObject(
  {
    url: url.describe(
      'Address to which events are sent by POST: https at a public address. In the networks of ' +
        '`OM_WEBHOOK_ALLOW` also http and private addresses.',
    ),
    events: someOf(EVENT_KINDS).optional().describe('Kinds of events that are sent; all kinds if left out.'),
    user_id: givenId
      .optional()
      .describe('Only events about this user’s memories and documents; of all users by default.'),
  },
  BODY_EXPECTED,
);
export type NewWebhookBody = z.output<typeof newWebhook>;
export type NewWebhookInput = z.input<typeof newWebhook>;

const webhookFields = {
  id: z.string(),
  url: z.string(),
  events: z.array(z.enum(EVENT_KINDS)).describe('Kinds of events that are sent; empty for all kinds.'),
  user_id: z.string().nullable().describe('The only user whose events are sent; null for all users.'),
  standing_id: z
    .string()
    .nullable()
    .describe('The only standing query whose answers are sent; null for a webhook that is not bound to one.'),
  created_at: timestamp,
  written_by: writer.describe('Public id of the key that stored the webhook; null if that is not known.'),
  deliveries: z
    .strictObject({ pending: count, delivered: count, dead: count })
    .describe('Deliveries by state; those that ended are counted for `OM_JOB_RETENTION_HOURS`.'),
  dropped: count.describe(
    'Number of events that were not handed to it, since too many deliveries waited or one memory answered too many ' +
      'standing queries; `GET /events` has them.',
  ),
  last_dropped_at: timestamp.nullable().describe('Time at which the last of them was dropped; null for none.'),
};
/**
 * Schema of the reply 200 to `GET /webhooks/:id`, which shows a webhook, with its numbers of pending, delivered and
 * dead (given up) deliveries.
 */
export const webhook = z.strictObject(webhookFields).meta({ id: 'Webhook' });
export type WebhookItem = Wire<typeof webhook>;
/**
 * Schema of the reply 201 to `POST /webhooks`, which registers an address to which signed events are sent from now on.
 */
export const createdWebhook = z.strictObject({
  ...webhookFields,
  secret: z.string().describe('The secret by which each delivery is signed. It is shown here and never again.'),
});
export type CreatedWebhookItem = Wire<typeof createdWebhook>;
/** Schema of the reply 200 to `GET /webhooks`, which lists the webhooks, newest first, without their secrets. */
export const webhookList = z.strictObject({
  items: z.array(webhook).describe('Newest first.'),
  total: count,
  ...pageEnd,
});

/**
 * Schema of the reply 201 to `POST /standing`, which stores a standing query. Each memory that becomes ready later and
 * answers it is reported.
 */
export const createdStanding = z.strictObject({
  ...standingFields,
  webhook: createdWebhook.nullable().describe('The webhook that was made for it; null for none.'),
});

const delivery = z.strictObject({
  id: z.string().describe('The header `webhook-id`: the same at each attempt.'),
  type: z.enum(EVENT_KINDS),
  event_id: z.string().nullable().describe('Id of the memory, document or job, as the kind says; null for none.'),
  user_id: z.string().nullable().describe('Owner of the memory or document; null for none.'),
  standing_id: z.string().nullable().describe('The standing query that the memory answers; null for another kind.'),
  at: timestamp.describe('Time of the event.'),
  state: z
    .enum(DELIVERY_STATES)
    .describe('`pending` is tried again; `dead` failed `OM_WEBHOOK_ATTEMPTS` times, or its receiver is gone (410).'),
  attempts: count.describe('Number of attempts so far.'),
  next_at: timestamp.nullable().describe('Time of the next attempt; null for a delivery that ended.'),
  last_status: z.int().nullable().describe('HTTP status of the reply to the last attempt; null if none came.'),
  last_error: z.string().nullable().describe('What was wrong at the last attempt; null for nothing.'),
});
export type DeliveryItem = Wire<typeof delivery>;
/** Schema of the reply 200 to `GET /webhooks/:id/deliveries`, which lists the deliveries of a webhook, newest first. */
export const deliveryList = z.strictObject({
  items: z.array(delivery).describe('Newest first.'),
  total: count,
  ...pageEnd,
});

/** Schema of the reply 200 to `POST /webhooks/:id/retry`, which tries the dead deliveries of a webhook again. */
export const retried = z.strictObject({ retried: count.describe('Number of deliveries that are pending again.') });
/** Schema of the reply 200 to `DELETE /standing/:id` and `DELETE /webhooks/:id`. */
export const removed = z.strictObject({ deleted: z.literal(true) });
