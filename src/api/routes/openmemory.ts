import { EngineError, type Memory, type Tenant } from '../../engine/index.ts';
import { sendObject } from '../json-reply.ts';
import { route, type Route } from '../route.ts';
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
/** Greatest length of the texts that are read for a summary, in UTF-16 code units. */
const MAX_SUMMED_TEXT = 4 * 1024 * 1024;

const USER_ID = { description: 'The user, as `user_id` names it.', example: 'ana' } as const;
const NO_MEMORIES = 'The user has no memories.';
const HOW =
  `It is made of excerpts from the newest ${SUMMED_UP} memories of the user, without a language model, each time it ` +
  'is asked for. Reflections that a language model wrote are memories, and stand first.';

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
    summary: "Finds memories: OpenMemory's second name of POST /memory/query, with the matches as a text, too",
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
    async handle({ tenant, params, send }) {
      const userId = parse(userIdSchema, params.id);
      const { summary, reflections, updatedAt } = await sumUp(tenant, userId);
      send(200, { user_id: userId, summary, reflection_count: reflections, updated_at: updatedAt });
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
    summary: 'Answers as GET /users/:id/summary: a summary is never out of date',
    params: { id: USER_ID },
    query: noQuery,
    replies: { 200: { description: 'The summary.', json: regeneratedSummary } },
    errors: { not_found: NO_MEMORIES },
    async handle({ tenant, params, send }) {
      const userId = parse(userIdSchema, params.id);
      const { summary, reflections } = await sumUp(tenant, userId);
      send(200, { ok: true, user_id: userId, summary, reflection_count: reflections });
    },
  }),
];

async function sumUp(tenant: Tenant, userId: string) {
  const memories: Memory[] = [];
  let room = MAX_SUMMED_TEXT;
  for await (const slice of tenant.streamMemories({ userIds: [userId] }, { limit: SUMMED_UP + 1, offset: 0 })) {
    for (const memory of slice) room -= memory.content.length;
    memories.push(...slice);
    if (room < 0) break;
  }
  if (memories.length === 0) throw new EngineError('not_found', 'this user has no memories');
  return summaryOf(memories.slice(0, SUMMED_UP), memories.length <= SUMMED_UP && room >= 0);
}
