import { route, type Route } from '../route.ts';
import { retrievalReply, retrievalSchema } from '../schemas/query.ts';
import { noQuery } from '../schemas/values.ts';
import { retrievalItem, toRetrievalOptions } from '../wire/query.ts';

/** What a tenant says about its queries where they say nothing themselves. */
export const settingsRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/settings/retrieval',
    name: 'getRetrievalDefaults',
    access: 'read',
    summary: "Shows what this tenant's queries take where they say nothing themselves",
    query: noQuery,
    replies: { 200: { description: 'Only what was put; an empty object at first.', json: retrievalReply } },
    async handle({ tenant, send }) {
      send(200, retrievalItem(await tenant.retrievalDefaults()));
    },
  }),
  route({
    method: 'put',
    path: '/settings/retrieval',
    name: 'putRetrievalDefaults',
    access: 'admin',
    summary: "Replaces this tenant's defaults as a whole, from the next query on",
    description:
      'What a query says comes before what its tenant says, then come the settings of the service, then the ' +
      "defaults. `weights` and `column_weights` are merged by name; a tenant's `weights` may name those of all " +
      'profiles.',
    query: noQuery,
    body: { json: retrievalSchema, example: { profile: 'activation', weights: { recency: 0.1 }, max_hops: 1 } },
    replies: { 200: { description: 'What was put.', json: retrievalReply } },
    async handle({ tenant, readBody, send }) {
      await tenant.putRetrievalDefaults(toRetrievalOptions(await readBody()));
      send(200, retrievalItem(await tenant.retrievalDefaults()));
    },
  }),
];
