import { MAX_FILTER_NAMES } from '../check-json-text.ts';
import { route, type Route } from '../route.ts';
import {
  createdStanding,
  listQuery,
  newStanding,
  removed,
  standing,
  standingAnswers,
  standingList,
} from '../schemas/standing.ts';
import { noQuery, pageQuery } from '../schemas/values.ts';
import { PAGE_END } from './memory-list.ts';
import { sendListed } from './send-page.ts';
import { answerItem, createdWebhookItem, standingItem, toStandingQuery } from '../wire/standing.ts';

const [QUERY, MEMORY, HOOK] = [
  '01a1fe30-e25b-7576-a0c2-3c4e3646bd72',
  '01a1feb9-11f2-7362-8b9d-88949a451b09',
  '01a1feb9-1288-7569-a1c4-6c51b0283513',
] as const;
const AT = 1795265978965;
const ID = { id: { description: 'Id of the standing query.', example: QUERY } } as const;
const UNKNOWN = { not_found: 'No standing query has this id.' } as const;
const EXAMPLE = {
  id: QUERY,
  query: 'Where does Ana work?',
  user_id: 'ana',
  filters: { types: ['fact'] },
  min_score: null,
  created_at: AT,
  written_by: '3f2a9c0d1e4b5a68',
  answers: 0,
};

/**
 * Routes of standing queries: stored questions that are compared with each new memory. A memory that answers one is
 * reported once, in the change feed and by webhooks.
 */
export const standingRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/standing',
    name: 'createStandingQuery',
    access: 'write',
    forBoundKeys: true,
    limited: ['queries'],
    summary: 'Registers a question, and reports each memory that answers it from now on',
    description:
      'A memory or a part of a document answers if it passes `filters`, has a word of the question that is no common ' +
      'word, and would reach `min_score` as the best hit of the query. A memory that supersedes an answer is an ' +
      'answer, too. Each answer is reported once: by an event `standing.answered` in the change feed, and by the ' +
      'webhooks that ask for it. Memories that were ready before are not compared.',
    query: noQuery,
    body: {
      json: newStanding,
      maxNames: MAX_FILTER_NAMES,
      example: {
        query: 'Where does Ana work?',
        user_id: 'ana',
        filters: { types: ['fact'] },
        webhook: { url: 'https://example.com/hooks/cairn' },
      },
    },
    errors: {
      conflict: 'The tenant has too many standing queries or webhooks, or the feed is off (`OM_EVENTS`).',
      unprocessable: "The tenant's privacy policy refuses the question or a condition.",
    },
    replies: {
      201: {
        description: 'The standing query, and its webhook with the secret.',
        json: createdStanding,
        example: {
          ...EXAMPLE,
          webhook: {
            id: HOOK,
            url: 'https://example.com/hooks/cairn',
            events: [],
            user_id: 'ana',
            standing_id: QUERY,
            created_at: AT,
            written_by: '3f2a9c0d1e4b5a68',
            deliveries: { pending: 0, delivered: 0, dead: 0 },
            dropped: 0,
            last_dropped_at: null,
            secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD',
          },
        },
      },
    },
    async handle({ tenant, readBody, send }) {
      const { webhook, ...created } = await tenant.createStandingQuery(toStandingQuery(await readBody()));
      send(201, { ...standingItem(created), webhook: webhook && createdWebhookItem(webhook) });
    },
  }),
  route({
    method: 'get',
    path: '/standing',
    name: 'listStandingQueries',
    access: 'read',
    forBoundKeys: true,
    summary: 'Lists the standing queries, newest first',
    description: PAGE_END,
    query: listQuery,
    replies: {
      200: { description: 'A page of standing queries.', json: standingList, example: { items: [EXAMPLE], total: 1 } },
    },
    async handle(call) {
      const { l, u: offset, user_id: userId } = call.query;
      const listed = await call.tenant.listStandingQueries({ limit: l, offset, userId });
      await sendListed(call, listed, { offset, toJson: standingItem });
    },
  }),
  route({
    method: 'get',
    path: '/standing/:id',
    name: 'getStandingQuery',
    access: 'read',
    forBoundKeys: true,
    summary: 'Shows a standing query',
    params: ID,
    query: noQuery,
    errors: UNKNOWN,
    replies: { 200: { description: 'The standing query.', json: standing, example: EXAMPLE } },
    async handle({ tenant, params, send }) {
      send(200, standingItem(await tenant.getStandingQuery(params.id)));
    },
  }),
  route({
    method: 'get',
    path: '/standing/:id/answers',
    name: 'listStandingAnswers',
    access: 'read',
    forBoundKeys: true,
    summary: 'Lists the memories that answered a standing query, newest first',
    description: PAGE_END,
    params: ID,
    query: pageQuery,
    errors: UNKNOWN,
    replies: {
      200: {
        description: 'A page of answers.',
        json: standingAnswers,
        example: {
          items: [{ memory_id: MEMORY, document_id: null, score: 0.82, supersedes: null, at: AT }],
          total: 1,
        },
      },
    },
    async handle(call) {
      const { l, u: offset } = call.query;
      const listed = await call.tenant.listStandingAnswers(call.params.id, { limit: l, offset });
      await sendListed(call, listed, { offset, toJson: answerItem });
    },
  }),
  route({
    method: 'delete',
    path: '/standing/:id',
    name: 'deleteStandingQuery',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Deletes a standing query, its answers and its webhook',
    params: ID,
    query: noQuery,
    errors: UNKNOWN,
    replies: { 200: { description: 'The query is deleted.', json: removed, example: { deleted: true } } },
    async handle({ tenant, params, send }) {
      await tenant.deleteStandingQuery(params.id);
      send(200, { deleted: true });
    },
  }),
];
