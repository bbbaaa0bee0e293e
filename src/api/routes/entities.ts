import { z } from 'zod';
import { route, type Route } from '../route.ts';
import { entitiesQuery, entityDetails, entityPage } from '../schemas/entities.ts';
import { userId } from '../schemas/values.ts';

export const entityRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/entities',
    name: 'listEntities',
    access: 'read',
    summary: 'Lists names, the most mentioned first',
    description:
      'A name that only hidden or expired memories mention is not listed. Pages are in the order of all mentions, ' +
      'hidden ones too, so a count may be greater than one on the page before. Lists choose from 50,000 names at ' +
      'most, the first in the alphabet: where there are more, give `q` or `user_id`.',
    query: entitiesQuery,
    replies: { 200: { description: 'A page of names.', json: entityPage } },
    async handle({ tenant, query: { q, l, u, user_id }, send }) {
      send(200, { items: await tenant.listEntities({ prefix: q, userId: user_id }, { limit: l, offset: u }) });
    },
  }),
  route({
    method: 'get',
    path: '/entities/:name',
    name: 'getEntity',
    access: 'read',
    summary: 'Shows one name with what is stated about it',
    description: 'Any spelling of the name finds it: `k8s` is `kubernetes`.',
    params: { name: { description: 'The name, percent-encoded.', example: 'jwt' } },
    query: z.strictObject({ user_id: userId.optional().describe("Only what this user's memories say.") }),
    replies: { 200: { description: 'The name.', json: entityDetails } },
    errors: { not_found: 'No memory that a query could find mentions the name.' },
    async handle({ tenant, params, query: { user_id }, send }) {
      const { memoryIds, ...entity } = await tenant.getEntity(params.name, user_id);
      send(200, { ...entity, memory_ids: memoryIds });
    },
  }),
];
