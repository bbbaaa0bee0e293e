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
      'Without `filters.statuses` only active memories are returned; a superseded one leads to the memory that ' +
      'superseded it. Memories that are expired or not valid now are always left out.\n\n' +
      'What it returns is reinforced about 0.2 s after the answer, unless `reinforce` is false: each match gains ' +
      '0.1 salience, one `access_count` and `last_seen_at`, and a waypoint that was walked gains 0.05 weight.',
    query: noQuery,
    body: {
      json: querySchema,
      example: { query: 'when do we deploy to staging?', user_id: 'ana', k: 1 },
    },
    replies: { 200: { description: 'The matches, or a text made of them.', json: queryReply } },
    async handle(call) {
      const { tenant, principal, response, send } = call;
      const body = await call.readBody();
      const tokenSatisfied = body.token == null ? undefined : await waitForWrites(call, body.token, TOKEN_WAIT_MS);
      // Recall by the public must not change what a tenant remembers.
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
    summary: 'Says why a memory does or does not come back for a query',
    description:
      'Takes the query as it was sent, and the memory. Remedies are found by asking: the query is asked again with ' +
      'one change after the other, at most 32 times and without a language model, until the memory is among the ' +
      'matches. Where no change alone helps, every bound is widened at once, and the changes that are needed ' +
      'together are named. Reinforces nothing.',
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
    replies: { 200: { description: 'Where the memory stands, and what would bring it back.', json: explanation } },
    errors: { not_found: 'No memory of the users that the request names has this id, or it has expired.' },
    async handle(call) {
      const { tenant, response, send } = call;
      const body = await call.readBody();
      const tokenSatisfied = body.token == null ? undefined : await waitForWrites(call, body.token, TOKEN_WAIT_MS);
      const found = await tenant.explain(toQuery(body), body.memory_id, clientGone(response));
      send(200, {
        ...explanationItem(found),
        ...(tokenSatisfied === undefined ? {} : { token_satisfied: tokenSatisfied }),
      });
    },
  }),
];
