import { z } from 'zod';
import { route, type Route } from '../route.ts';
import { entitiesQuery, entityDetails, entityPage } from '../schemas/entities.ts';
import { userId } from '../schemas/values.ts';

const CUT =
  '`truncated` says that not all memories were looked at, as one request may only read so much (`OM_QUERY_WORK_MB`). ' +
  'For a key that is bound to tags, only memories with these tags count.';
const cutMark = (isCut: boolean) => (isCut ? { truncated: true as const } : {});

export const entityRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/entities',
    name: 'listEntities',
    access: 'read',
    forBoundKeys: true,
    summary: 'Lists entities (names that memories mention), the most mentioned first',
    description:
      'A name that only hidden or expired memories mention is not listed. Pages are sorted by all mentions, those of ' +
      'hidden memories included, so a count may be higher than one on the previous page; for a key that is bound to ' +
      'tags they are sorted by the counts shown. A list considers at most 50,000 names, the first in alphabetical ' +
      'order, for a key that is not bound to tags: if there are more, give `q` or `user_id`. ' +
      CUT,
    query: entitiesQuery,
    replies: { 200: { description: 'A page of names.', json: entityPage } },
    async handle({ tenant, query: { q, l, u, user_id }, send }) {
      const { items, isCut } = await tenant.listEntities({ prefix: q, userId: user_id }, { limit: l, offset: u });
      send(200, { items, ...cutMark(isCut) });
    },
  }),
  route({
    method: 'get',
    path: '/entities/:name',
    name: 'getEntity',
    access: 'read',
    forBoundKeys: true,
    summary: 'Shows one entity with the relations that memories state about it',
    description: 'Any known spelling finds the name: `k8s` is `kubernetes`. ' + CUT,
    params: { name: { description: 'The name, percent-encoded.', example: 'jwt' } },
    query: z.strictObject({
      user_id: userId.optional().describe("Only this user's memories count; those of all users if left out."),
    }),
    replies: { 200: { description: 'The name.', json: entityDetails } },
    errors: { not_found: 'No memory that a query could find mentions the name.' },
    async handle({ tenant, params, query: { user_id }, send }) {
      const { memoryIds, isCut, ...entity } = await tenant.getEntity(params.name, user_id);
      send(200, { ...entity, memory_ids: memoryIds, ...cutMark(isCut) });
    },
  }),
];
