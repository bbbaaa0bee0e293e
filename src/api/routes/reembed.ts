import { route, type Route } from '../route.ts';
import { reembedSchema, reembedStatus } from '../schemas/providers.ts';
import { noQuery } from '../schemas/values.ts';
import { reembedItem } from '../wire/providers.ts';

const STATUS = { description: 'Progress of the change.', json: reembedStatus } as const;

/** Routes of a change of the embedding model, for the tenant of the key. */
export const reembedRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/admin/reembed',
    name: 'getReembedStatus',
    access: 'admin',
    summary: 'Shows the progress of a change of the embedding model, or an estimate of its size',
    query: noQuery,
    replies: { 200: STATUS },
    async handle({ tenant, send }) {
      send(200, reembedItem(await tenant.reembedStatus()));
    },
  }),
  route({
    method: 'post',
    path: '/admin/reembed',
    name: 'startReembed',
    access: 'admin',
    summary: 'Starts or resumes a change of the embedding model',
    description:
      'Repeating the request changes nothing. A running change to another model is given up if that model has not ' +
      'gone live. If the configured model is live already, memories without vectors get them, and the vectors of ' +
      'other models are deleted. The change ends as `failed`, and the old model stays live, if the new model refuses ' +
      'more than 1 % of the memories; a single refusal is allowed if there are other memories. `without_refused` ' +
      'removes this limit. Before the new model goes live, the guarded evaluation sets are run with both models; if ' +
      'the new one lowers the measures of a set, the change ends as `failed`, too, unless `force` is set.',
    query: noQuery,
    body: { json: reembedSchema, optional: true, example: { without_refused: true } },
    replies: { 202: STATUS },
    errors: { conflict: 'Another model has gone live and its change is not finished.' },
    async handle({ tenant, readBody, send }) {
      const { without_refused, force } = await readBody();
      const options = { withoutRefused: without_refused ?? false, force: force ?? false };
      send(202, reembedItem(await tenant.startReembed(options)));
    },
  }),
  route({
    method: 'post',
    path: '/admin/reembed/pause',
    name: 'pauseReembed',
    access: 'admin',
    summary: 'Pauses a change of the embedding model; new vectors are kept',
    query: noQuery,
    replies: { 200: STATUS },
    errors: { conflict: 'No change is under way.' },
    async handle({ tenant, send }) {
      send(200, reembedItem(await tenant.pauseReembed()));
    },
  }),
  route({
    method: 'delete',
    path: '/admin/reembed',
    name: 'cancelReembed',
    access: 'admin',
    summary: 'Cancels a change of the embedding model; the old model stays live',
    description: 'Vectors that were made are kept for a later start.',
    query: noQuery,
    replies: { 200: STATUS },
    errors: { conflict: 'No change is under way, or the new model is live already.' },
    async handle({ tenant, send }) {
      send(200, reembedItem(await tenant.cancelReembed()));
    },
  }),
];
