import { requestCaller } from '../control-turn.ts';
import { route, type Route } from '../route.ts';
import { takeForGuards } from '../take-tokens.ts';
import { learned, learnedList, learningReply } from '../schemas/learned.ts';
import { noQuery } from '../schemas/values.ts';
import { clientGone } from '../wait-for-writes.ts';
import { learnedItem } from '../wire/learned.ts';

const params = {
  id: { description: 'Id of what was learned.', example: '01a21580-5d1c-7d6a-9a35-0f4a8a0b6f11' },
} as const;
const NOT_FOUND = 'Nothing learned has this id.';

/** Routes of weights for ranking that are learned from the feedback on recalls. */
export const learnedRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/learned',
    name: 'learnWeights',
    access: 'admin',
    limited: ['queries'],
    summary: 'Learns weights and a lowest score from feedback, and proposes them',
    description:
      'The newest 1,000 recalls with feedback are scored anew from the features that the recall log keeps; no query ' +
      'runs again. Weights of the profile that the defaults name are learned from the earlier recalls and measured ' +
      'on the later ones. Nothing is applied. A proposal replaces an earlier one that was not accepted.',
    query: noQuery,
    replies: {
      200: {
        description: 'The proposal, or why there is none.',
        json: learningReply,
        example: { learned: null, reason: 'learning needs at least 40 recalls …; there are 3' },
      },
    },
    async handle({ tenant, send }) {
      const { learned: proposal, reason } = await tenant.learnWeights();
      send(200, { learned: proposal && learnedItem(proposal), reason });
    },
  }),
  route({
    method: 'get',
    path: '/learned',
    name: 'listLearned',
    access: 'admin',
    summary: 'Lists what was learned, with its measures before and after',
    query: noQuery,
    replies: { 200: { description: 'The newest 100 at most.', json: learnedList } },
    async handle({ tenant, send }) {
      send(200, { items: (await tenant.listLearned()).map(learnedItem) });
    },
  }),
  route({
    method: 'post',
    path: '/learned/:id/accept',
    name: 'acceptLearned',
    access: 'admin',
    summary: "Makes a proposal this tenant's defaults",
    description: 'Guarded evaluation sets are run first, as for `PUT /settings/retrieval`.',
    params,
    query: noQuery,
    replies: { 200: { description: 'What was accepted.', json: learned } },
    errors: {
      not_found: NOT_FOUND,
      conflict:
        'What has this id is no proposal any more, the defaults were changed since, or the new ones lower a ' +
        'measure of a guarded evaluation set.',
    },
    async handle(call) {
      const { tenant, params, response, send } = call;
      await takeForGuards(call);
      const how = { signal: clientGone(response), caller: requestCaller(call) };
      send(200, learnedItem(await tenant.acceptLearned(params.id, how)));
    },
  }),
  route({
    method: 'post',
    path: '/learned/:id/revert',
    name: 'revertLearned',
    access: 'admin',
    summary: 'Gives the tenant the defaults back that an acceptance replaced',
    params,
    query: noQuery,
    replies: { 200: { description: 'What was reverted.', json: learned } },
    errors: {
      not_found: NOT_FOUND,
      conflict: 'What has this id was not accepted, or the defaults were changed since.',
    },
    async handle(call) {
      const reverted = await call.tenant.revertLearned(call.params.id, { caller: requestCaller(call) });
      call.send(200, learnedItem(reverted));
    },
  }),
];
