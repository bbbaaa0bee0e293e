import { route, type Route } from '../route.ts';
import { explanation, queryReply } from '../schemas/query-replies.ts';
import { explainSchema, querySchema } from '../schemas/query.ts';
import { noQuery } from '../schemas/values.ts';
import { clientGone, TOKEN_WAIT_MS, waitForWrites } from '../wait-for-writes.ts';
import { explanationItem, queryItem, toQuery } from '../wire/query.ts';

export const queryRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/memory/query',
    name: 'queryMemories',
    access: 'read',
    summary: 'Finds memories by words, vectors and links',
    description:
      'Without `filters.statuses` only active memories are returned; in place of a superseded memory the query ' +
      'returns its successor. Memories that are expired or not valid now are always left out.\n\nMatches are ' +
      'reinforced about 0.2 s after the answer, unless `reinforce` is false: the salience of each match rises by ' +
      '0.1, its `access_count` by one, and `last_seen_at` is set; the weight of each waypoint that the query ' +
      'followed rises by 0.05.',
    query: noQuery,
    body: {
      json: querySchema,
      example: { query: 'when do we deploy to staging?', user_id: 'ana', k: 1 },
    },
    replies: { 200: { description: 'The matches, or a text made from them.', json: queryReply } },
    async handle(call) {
      const { tenant, principal, response, send } = call;
      const body = await call.readBody();
      const tokenSatisfied = body.token == null ? undefined : await waitForWrites(call, body.token, TOKEN_WAIT_MS);
      // A query without a key (`OM_PUBLIC_READS`) must not change the tenant's memories.
      const isPublic = principal.role === 'read' && principal.keyId === 'anonymous';
      const asked = { ...toQuery(body), ...(isPublic ? { reinforce: false } : {}) };
      const result = await tenant.query(asked, clientGone(response));
      send(200, queryItem(asked, result, tokenSatisfied));
    },
  }),
  route({
    method: 'post',
    path: '/explain',
    name: 'explainMemory',
    access: 'read',
    summary: 'Explains why a query does or does not return a memory',
    description:
      'The body is the query as it was sent, and the id of the memory. Remedies are found by trial: the query runs ' +
      'again with one change after another, at most 32 times and without a language model, until the memory is among ' +
      'the matches. If no single change helps, every bound is widened at once, and the reply names the changes that ' +
      'are needed together. This request reinforces nothing.',
    query: noQuery,
    body: {
      json: explainSchema,
      example: {
        query: 'when do we deploy to staging?',
        user_id: 'ana',
        k: 1,
        filters: { tags: ['deploy'] },
        memory_id: '01a1fec3-4938-741b-aa54-e63a9d23de8a',
      },
    },
    replies: {
      200: {
        description: 'The rank of the memory or the reason for its absence, and the changes that would return it.',
        json: explanation,
      },
    },
    errors: { not_found: 'No memory of the users that the request names has this id, or it has expired.' },
    async handle(call) {
      const { tenant, response, send } = call;
      const body = await call.readBody();
      const tokenSatisfied = body.token == null ? undefined : await waitForWrites(call, body.token, TOKEN_WAIT_MS);
      const explained = await tenant.explain(toQuery(body), body.memory_id, clientGone(response));
      send(200, {
        ...explanationItem(explained),
        ...(tokenSatisfied === undefined ? {} : { token_satisfied: tokenSatisfied }),
      });
    },
  }),
];
