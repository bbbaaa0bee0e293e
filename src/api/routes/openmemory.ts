import { charactersOf, EngineError, type Memory } from '../../engine/index.ts';
import { sendObject } from '../json-reply.ts';
import { takeReplyPlace } from '../reply-places.ts';
import { requireClient } from '../await-drain.ts';
import { route, type Route, type TenantCall } from '../route.ts';
import { userIdSchema } from '../schemas/memories.ts';
import { regeneratedSummary, secondQueryReply, secondQuerySchema, userSummary } from '../schemas/openmemory.ts';
import { parse } from '../schemas/parse.ts';
import { noQuery } from '../schemas/values.ts';
import { clientGone } from '../wait-for-writes.ts';
import { answerBytes, matchItem, toQuery } from '../wire/query.ts';
import { summaryOf } from '../wire/user-summary.ts';
import { isPublicRead } from './public-reads.ts';

/** Greatest number of memories on which a summary is based; they are the user's newest. */
const SUMMED_UP = 200;
/**
 * Length of the memories that were read for a summary beyond which no further slice of them is read, in UTF-16 code
 * units.
 */
const MAX_SUMMED_TEXT = 4 * 1024 * 1024;

const USER_ID = { description: 'The `user_id` of the user.', example: 'ana' } as const;
const NO_MEMORIES = 'The user has no memories.';
const HOW =
  `The summary is made anew for each request, of excerpts from the newest ${SUMMED_UP} memories of the user, or from ` +
  'fewer if their texts are long. No language model is asked. Memories of the sector `reflective` stand first; ' +
  'reflections that a language model wrote are among them.';

/** Routes for clients of OpenMemory: other paths of Cairn's own routes, and summaries of users. */
export const openMemoryRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/query',
    name: 'queryMemoriesAgain',
    access: 'read',
    forBoundKeys: true,
    repeatable: true,
    limited: ['queries'],
    summary: "Finds memories: OpenMemory's second path of POST /memory/query, with the matches as a text, too",
    query: noQuery,
    body: { json: secondQuerySchema, example: { query: 'when do we deploy to staging?', user_id: 'ana', k: 1 } },
    replies: {
      200: {
        description: 'The matches.',
        json: secondQueryReply,
      },
    },
    async handle(call) {
      const { tenant, principal, response, readBody } = call;
      const body = await readBody();
      const asked = { ...toQuery(body), ...(isPublicRead(principal) ? { reinforce: false, isLogged: false } : {}) };
      const result = await tenant.query(asked, clientGone(response));
      const { hits } = result;
      const lines = hits.map(({ memory, score }) => `- (${score.toFixed(2)}) ${memory.content}`);
      const answer = {
        query: asked.query,
        user_id: body.user_id ?? null,
        k: asked.k,
        result: lines.join('\n'),
        matches: hits.map(matchItem),
      };
      await sendObject(call, answer, answerBytes(result) * 2);
    },
  }),
  route({
    method: 'get',
    path: '/users/:id/summary',
    name: 'getUserSummary',
    access: 'read',
    forBoundKeys: true,
    limited: ['queries'],
    summary: "Sums up one user's memories",
    description: HOW,
    params: { id: USER_ID },
    query: noQuery,
    replies: { 200: { description: 'The summary.', json: userSummary } },
    errors: { not_found: NO_MEMORIES },
    async handle(call) {
      const userId = parse(userIdSchema, call.params.id);
      const { summary, reflections, updatedAt } = await sumUp(call, userId);
      call.send(200, { user_id: userId, summary, reflection_count: reflections, updated_at: updatedAt });
    },
  }),
  route({
    method: 'post',
    path: '/users/:id/summary/regenerate',
    name: 'regenerateUserSummary',
    access: 'read',
    forBoundKeys: true,
    repeatable: true,
    limited: ['queries'],
    summary: 'Returns the summary of GET /users/:id/summary, which is never out of date, without `updated_at`',
    params: { id: USER_ID },
    query: noQuery,
    replies: { 200: { description: 'The summary.', json: regeneratedSummary } },
    errors: { not_found: NO_MEMORIES },
    async handle(call) {
      const userId = parse(userIdSchema, call.params.id);
      const { summary, reflections } = await sumUp(call, userId);
      call.send(200, { ok: true, user_id: userId, summary, reflection_count: reflections });
    },
  }),
];

async function sumUp(call: TenantCall, userId: string) {
  await takeReplyPlace(call, 2 * MAX_SUMMED_TEXT);
  const memories: Memory[] = [];
  let room = MAX_SUMMED_TEXT;
  for await (const slice of call.tenant.streamMemories({ userIds: [userId] }, { limit: SUMMED_UP + 1, offset: 0 })) {
    for (const memory of slice) room -= charactersOf(memory);
    requireClient(call.response);
    memories.push(...slice);
    if (room < 0) break;
  }
  if (memories.length === 0) throw new EngineError('not_found', 'this user has no memories');
  return summaryOf(memories.slice(0, SUMMED_UP), memories.length <= SUMMED_UP && room >= 0);
}
