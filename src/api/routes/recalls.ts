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
      'The log holds no text of a memory: ids, versions, scores and what they rest on. It is written about 0.2 s ' +
      'after the answer.',
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
    summary: 'Asks a question again: of the state of then, or of today, with the same or other weights',
    description:
      'With an empty body the matches of then come back, with equal ids and scores where nothing was erased, and the ' +
      'texts of then. `profile`, `weights`, `min_score`, `relative_floor` and `k` score the kept candidates anew. ' +
      'With `state: now` the query of then, with its defaults of then, runs on the memories of today; any field of a ' +
      'query changes it. Nothing is reinforced, and the replay is not logged.',
    params,
    query: noQuery,
    body: { json: replaySchema, example: { state: 'now', profile: 'activation' }, optional: true },
    replies: { 200: { description: 'The answer, and what differs from that of then.', json: replayReply } },
    errors: {
      not_found: NOT_FOUND,
      conflict: 'The privacy policy did not let the question be kept, and the request gives no other.',
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
    summary: 'Keeps what matches of an answer were good for',
    description: 'A later verdict on a match replaces the earlier one. It changes no memory and no ranking.',
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
