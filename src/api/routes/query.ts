import { MAX_FILTER_NAMES } from '../check-json-text.ts';
import { sendObject } from '../json-reply.ts';
import { route, type Route } from '../route.ts';
import { explanation, queryReply } from '../schemas/query-replies.ts';
import { explainSchema, querySchema } from '../schemas/query.ts';
import { noQuery } from '../schemas/values.ts';
import { clientGone, TOKEN_WAIT_MS, waitForWrites } from '../wait-for-writes.ts';
import { answerBytes, explanationItem, queryItem, toQuery } from '../wire/query.ts';
import { isPublicRead } from './public-reads.ts';

/** Size in memory from which on an answer is sent in pieces, in bytes. */
const LONG_ANSWER_BYTES = 128 * 1024;

export const queryRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/memory/query',
    name: 'queryMemories',
    access: 'read',
    forBoundKeys: true,
    repeatable: true,
    limited: ['queries'],
    summary: 'Finds memories by words, vectors and links',
    description:
      'Without `filters.statuses`, `deep_recall` and `include` only active memories are returned; in place of a ' +
      'superseded memory the query returns its successor, unless the old one is still valid. Expired memories are ' +
      'always left out, and so are memories that are not valid now or, with `as_of`, were not valid then.\n\nMatches ' +
      'are reinforced about 0.2 s after the answer, unless `reinforce` is false: the salience of each match rises by ' +
      '0.1, its `access_count` by one, and `last_seen_at` is set; the weight of each waypoint that the query ' +
      'followed rises by 0.05.\n\nAll matches together, with their tags, files, values and metadata, count for at ' +
      'most 6 MiB, and the reply has at most 8 MiB: matches that do not fit are left out from the end, and ' +
      '`truncated` says so. Each list, object and comma of values and metadata counts for 16 bytes more, as it takes ' +
      'more memory than its text.',
    query: noQuery,
    body: {
      json: querySchema,
      maxNames: MAX_FILTER_NAMES,
      example: { query: 'when do we deploy to staging?', user_id: 'ana', k: 1 },
    },
    replies: { 200: { description: 'The matches, or a text made from them.', json: queryReply } },
    async handle(call) {
      const { tenant, principal, response, send } = call;
      const body = await call.readBody();
      const tokenSatisfied = body.token == null ? undefined : await waitForWrites(call, body.token, TOKEN_WAIT_MS);
      const asked = { ...toQuery(body), ...(isPublicRead(principal) ? { reinforce: false, isLogged: false } : {}) };
      const result = await tenant.query(asked, clientGone(response));
      const answer = queryItem(asked, result, tokenSatisfied);
      const bytes = answerBytes(result);
      if (bytes > LONG_ANSWER_BYTES) await sendObject(call, answer, bytes);
      else send(200, answer);
    },
  }),
  route({
    method: 'post',
    path: '/explain',
    name: 'explainMemory',
    access: 'read',
    forBoundKeys: true,
    repeatable: true,
    limited: ['queries'],
    summary: 'Explains why a query does or does not return a memory',
    description:
      'The body is the query as it was sent, and the id of the memory. Remedies are found by trial: the query runs ' +
      'again with one change after another, at most 32 times and without a language model, until the memory is among ' +
      'the matches. If no single change helps, every bound is widened at once, and the reply names the changes that ' +
      'are needed together. All of this has one work budget; where it ends, `degraded` is true and `not_tried` names ' +
      'the fields whose changes were not tried. This request reinforces nothing.',
    query: noQuery,
    body: {
      json: explainSchema,
      maxNames: MAX_FILTER_NAMES,
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
