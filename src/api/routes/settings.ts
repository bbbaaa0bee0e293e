import { route, type Route } from '../route.ts';
import { retrievalReply, retrievalSchema } from '../schemas/query.ts';
import { noQuery } from '../schemas/values.ts';
import { retrievalItem, toRetrievalOptions } from '../wire/query.ts';

/** Routes of a tenant's defaults for its queries. */
export const settingsRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/settings/retrieval',
    name: 'getRetrievalDefaults',
    access: 'read',
    summary: "Shows this tenant's defaults for its queries",
    query: noQuery,
    replies: {
      200: { description: 'Only the defaults that were set; an empty object at first.', json: retrievalReply },
    },
    async handle({ tenant, send }) {
      send(200, retrievalItem(await tenant.retrievalDefaults()));
    },
  }),
  route({
    method: 'put',
    path: '/settings/retrieval',
    name: 'putRetrievalDefaults',
    access: 'admin',
    summary: "Replaces all of this tenant's defaults, from the next query on",
    description:
      "The fields of a query have priority over its tenant's defaults, these over the settings of the service, and " +
      "those over the built-in defaults. `weights` and `column_weights` are merged by name; a tenant's `weights` may " +
      'name weights of all profiles.',
    query: noQuery,
    body: { json: retrievalSchema, example: { profile: 'activation', weights: { recency: 0.1 }, max_hops: 1 } },
    replies: { 200: { description: 'The defaults that were set.', json: retrievalReply } },
    async handle({ tenant, readBody, send }) {
      await tenant.putRetrievalDefaults(toRetrievalOptions(await readBody()));
      send(200, retrievalItem(await tenant.retrievalDefaults()));
    },
  }),
];
