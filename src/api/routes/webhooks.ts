import { route, type Route } from '../route.ts';
import {
  createdWebhook,
  deliveriesQuery,
  deliveryList,
  listQuery,
  newWebhook,
  removed,
  retried,
  webhook,
  webhookList,
} from '../schemas/standing.ts';
import { noQuery } from '../schemas/values.ts';
import { tenantWhileAdmitted } from '../watch-admission.ts';
import { PAGE_END } from './memory-list.ts';
import { sendListed } from './send-page.ts';
import { createdWebhookItem, deliveryItem, toWebhook, webhookItem } from '../wire/standing.ts';

const [HOOK, MEMORY] = ['01a1feb9-1288-7569-a1c4-6c51b0283513', '01a1feb9-11f2-7362-8b9d-88949a451b09'] as const;
const AT = 1795265978965;
const ID = { id: { description: 'Id of the webhook.', example: HOOK } } as const;
const UNKNOWN = { not_found: 'No webhook has this id.' } as const;
const EXAMPLE = {
  id: HOOK,
  url: 'https://example.com/hooks/cairn',
  events: ['memory.ready', 'standing.answered'],
  user_id: null,
  standing_id: null,
  created_at: AT,
  written_by: '3f2a9c0d1e4b5a68',
  deliveries: { pending: 0, delivered: 12, dead: 0 },
  dropped: 0,
  last_dropped_at: null,
};

/** Routes of webhooks: addresses to which the events of the change feed are sent. */
export const webhookRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/webhooks',
    name: 'createWebhook',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Registers an address that is told of each event from now on, signed',
    description:
      'Each event is a POST of `{type, timestamp, data: {id, user_id, …}}` with ids and no content, signed as ' +
      'Standard Webhooks says: the headers `webhook-id`, `webhook-timestamp` and `webhook-signature`. It is sent ' +
      'again until the receiver answers 2xx, at most `OM_WEBHOOK_ATTEMPTS` times, each time with the same ' +
      '`webhook-id`, so that a receiver can ignore an id that it knows. Deliveries come in no particular order.',
    query: noQuery,
    body: {
      json: newWebhook,
      example: { url: 'https://example.com/hooks/cairn', events: ['memory.ready', 'standing.answered'] },
    },
    errors: { conflict: 'The tenant has too many webhooks, or the feed is off (`OM_EVENTS`).' },
    replies: {
      201: {
        description: 'The webhook with its secret.',
        json: createdWebhook,
        example: {
          ...EXAMPLE,
          deliveries: { pending: 0, delivered: 0, dead: 0 },
          secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD',
        },
      },
    },
    async handle({ tenant, readBody, send }) {
      send(201, createdWebhookItem(await tenant.createWebhook(toWebhook(await readBody()))));
    },
  }),
  route({
    method: 'get',
    path: '/webhooks',
    name: 'listWebhooks',
    access: 'read',
    forBoundKeys: true,
    keyOnly: true,
    summary: 'Lists the webhooks, newest first, without their secrets',
    description: PAGE_END,
    query: listQuery,
    replies: {
      200: { description: 'A page of webhooks.', json: webhookList, example: { items: [EXAMPLE], total: 1 } },
    },
    async handle(call) {
      const { l, u: offset, user_id: userId } = call.query;
      const listed = await call.tenant.listWebhooks({ limit: l, offset, userId });
      await sendListed(call, listed, { offset, toJson: webhookItem });
    },
  }),
  route({
    method: 'get',
    path: '/webhooks/:id',
    name: 'getWebhook',
    access: 'read',
    forBoundKeys: true,
    keyOnly: true,
    summary: 'Shows a webhook, and how many deliveries wait, came through or gave up',
    params: ID,
    query: noQuery,
    errors: UNKNOWN,
    replies: { 200: { description: 'The webhook.', json: webhook, example: EXAMPLE } },
    async handle({ tenant, params, send }) {
      send(200, webhookItem(await tenant.getWebhook(params.id)));
    },
  }),
  route({
    method: 'get',
    path: '/webhooks/:id/deliveries',
    name: 'listDeliveries',
    access: 'read',
    forBoundKeys: true,
    keyOnly: true,
    summary: 'Lists the deliveries of a webhook, newest first',
    description: `Those that ended are kept for \`OM_JOB_RETENTION_HOURS\`. ${PAGE_END}`,
    params: ID,
    query: deliveriesQuery,
    errors: UNKNOWN,
    replies: {
      200: {
        description: 'A page of deliveries.',
        json: deliveryList,
        example: {
          items: [
            {
              id: 'msg_01a1feb9-12a2-739f-b975-8bbd3418f342',
              type: 'memory.ready',
              event_id: MEMORY,
              user_id: 'ana',
              standing_id: null,
              at: AT,
              state: 'pending',
              attempts: 2,
              next_at: AT + 60_000,
              last_status: 503,
              last_error: 'the receiver answered 503',
            },
          ],
          total: 1,
        },
      },
    },
    async handle(call) {
      const { l, u: offset, state } = call.query;
      const listed = await call.tenant.listDeliveries(call.params.id, { limit: l, offset, state });
      await sendListed(call, listed, { offset, toJson: deliveryItem });
    },
  }),
  route({
    method: 'post',
    path: '/webhooks/:id/retry',
    name: 'retryDeliveries',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Tries the dead deliveries of a webhook again',
    params: ID,
    query: noQuery,
    errors: UNKNOWN,
    replies: { 200: { description: 'How many are tried again.', json: retried, example: { retried: 3 } } },
    async handle(call) {
      call.send(200, { retried: await tenantWhileAdmitted(call).retryDeliveries(call.params.id) });
    },
  }),
  route({
    method: 'delete',
    path: '/webhooks/:id',
    name: 'deleteWebhook',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Deletes a webhook with its deliveries',
    params: ID,
    query: noQuery,
    errors: UNKNOWN,
    replies: { 200: { description: 'The webhook is deleted.', json: removed, example: { deleted: true } } },
    async handle({ tenant, params, send }) {
      await tenant.deleteWebhook(params.id);
      send(200, { deleted: true });
    },
  }),
];
