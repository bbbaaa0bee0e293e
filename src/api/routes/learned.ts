import { route, type Route } from '../route.ts';
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
    summary: 'Learns weights and floor from feedback, and proposes them',
    description:
      'The newest 1,000 recalls with feedback are scored anew, by the kept features; nothing is asked again. Weights ' +
      'of the profile of the defaults are learned from the earlier recalls and measured on the later ones. Nothing ' +
      'is applied. A proposal takes the place of an earlier one that was not accepted.',
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
    replies: { 200: { description: 'At most the last 100.', json: learnedList } },
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
    description: 'Guarded evaluation sets are asked first, as for `PUT /settings/retrieval`.',
    params,
    query: noQuery,
    replies: { 200: { description: 'What was accepted.', json: learned } },
    errors: {
      not_found: NOT_FOUND,
      conflict: 'It is no proposal, the defaults were changed since, or a guarded evaluation set would fall.',
    },
    async handle({ tenant, params: { id }, response, send }) {
      send(200, learnedItem(await tenant.acceptLearned(id, clientGone(response))));
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
    errors: { not_found: NOT_FOUND, conflict: 'It is not accepted, or the defaults were changed since.' },
    async handle({ tenant, params: { id }, send }) {
      send(200, learnedItem(await tenant.revertLearned(id)));
    },
  }),
];
