import { EngineError } from '../../engine/index.ts';
import { sendObject } from '../json-reply.ts';
import { route, type Route, type TenantCall } from '../route.ts';
import {
  feedbackReply,
  feedbackSchema,
  RECALL_EXAMPLE_ID,
  recallListQuery,
  recallListReply,
  recallReply,
  replayReply,
  replaySchema,
} from '../schemas/recalls.ts';
import { isPublicRead } from './public-reads.ts';
import { noQuery } from '../schemas/values.ts';
import { clientGone } from '../wait-for-writes.ts';
import { answerBytes } from '../wire/query.ts';
import { feedbackItem, recallItem, recallPageItem, replayItem, toReplay } from '../wire/recalls.ts';

const params = { id: { description: 'The `recall_id` of an answer.', example: RECALL_EXAMPLE_ID } };
const NOT_FOUND =
  'No answer is kept under this id: its time is over (`OM_RECALL_DAYS`, `OM_RECALL_MB`), its user was erased, the ' +
  'process ended before it was logged, or it was given to somebody with other bounds or without a key.';

/** Routes of the recall log, which records the answers to queries. */
export const recallRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/recalls',
    name: 'listRecalls',
    access: 'read',
    forBoundKeys: true,
    summary: 'Lists answers that were given, the newest first',
    description: 'A key that is bound to a user or tags sees the answers to questions within its bounds.',
    query: recallListQuery,
    replies: { 200: { description: 'A page of recalls.', json: recallListReply } },
    errors: { not_found: 'No memory has the id `memory_id`.' },
    async handle({ tenant, principal, query: { user_id, memory_id, limit, before }, send }) {
      requireKey(principal);
      send(200, recallPageItem(await tenant.listRecalls({ userId: user_id, memoryId: memory_id, limit, before })));
    },
  }),
  route({
    method: 'get',
    path: '/recalls/:id',
    name: 'getRecall',
    access: 'read',
    forBoundKeys: true,
    summary: 'Shows what was asked, and how the answer came about',
    description:
      'The recall log holds the question, and of memories no text but ids, versions, scores and their reasons. It is ' +
      'written about 0.2 s after the answer.',
    params,
    query: noQuery,
    replies: { 200: { description: 'The recall.', json: recallReply } },
    errors: { not_found: NOT_FOUND },
    async handle({ tenant, principal, params: { id }, send }) {
      requireKey(principal);
      send(200, recallItem(await tenant.getRecall(id)));
    },
  }),
  route({
    method: 'post',
    path: '/recalls/:id/replay',
    name: 'replayRecall',
    access: 'read',
    forBoundKeys: true,
    repeatable: true,
    limited: ['queries'],
    summary: 'Repeats the query of a recall on its candidates or on the memories of today, with any weights',
    description:
      'With an empty body, the reply has the matches of the first answer again: with the same ids and scores unless ' +
      'memories were erased since, and with the texts of that time. `profile`, `weights`, `min_score`, ' +
      '`relative_floor` and `k` score the kept candidates anew. With `state: now` the logged query, with its options ' +
      'of that time, runs on the memories of today; fields of a query in the body replace its own. No memory is ' +
      'reinforced, and the replay is not logged.',
    params,
    query: noQuery,
    body: { json: replaySchema, example: { state: 'now', profile: 'activation' }, optional: true },
    replies: { 200: { description: 'The answer, and what differs from the first answer.', json: replayReply } },
    errors: {
      not_found: NOT_FOUND,
      conflict: 'The question was not kept (`query_kept` is `withheld`), and the request gives no other.',
    },
    async handle(call) {
      const { tenant, principal, params: given, readBody, response } = call;
      requireKey(principal);
      const options = toReplay(await readBody());
      const replay = await tenant.replayRecall(given.id, options, clientGone(response));
      await sendObject(call, replayItem(replay), answerBytes(replay));
    },
  }),
  route({
    method: 'post',
    path: '/recalls/:id/feedback',
    name: 'giveRecallFeedback',
    access: 'read',
    forBoundKeys: true,
    repeatable: true,
    limited: ['adds'],
    summary: 'Stores feedback on matches of an answer: whether they were used, useless or wrong',
    description:
      'A later verdict on a match replaces the earlier one. Feedback by itself changes no memory and no ranking.',
    params,
    query: noQuery,
    body: {
      json: feedbackSchema,
      example: { verdict: 'used', memory_ids: ['01a1fec3-4938-741b-aa54-e63a9d23de8a'] },
    },
    replies: { 200: { description: 'All feedback on the recall.', json: feedbackReply } },
    errors: { not_found: `${NOT_FOUND} Or a memory is no match of it, or was erased.` },
    async handle({ tenant, principal, params: { id }, readBody, send }) {
      requireKey(principal);
      const { verdict, memory_ids: memoryIds } = await readBody();
      const feedback = await tenant.giveFeedback(id, verdict, memoryIds);
      send(200, { recall_id: id, feedback: feedback.map(feedbackItem) });
    },
  }),
];

/**
 * Throws EngineError `not_found` for callers without a key (`OM_PUBLIC_READS`): their recalls are not logged, and they
 * may not read the log.
 */
function requireKey(principal: TenantCall['principal']): void {
  if (isPublicRead(principal)) throw new EngineError('not_found', 'no recall with this id is kept');
}
