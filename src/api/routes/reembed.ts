import { route, type Route } from '../route.ts';
import { reembedSchema, reembedStatus } from '../schemas/providers.ts';
import { noQuery } from '../schemas/values.ts';
import { reembedItem } from '../wire/providers.ts';

const STATUS = { description: 'How far it is.', json: reembedStatus } as const;

/** A change of the embedding model. It is the tenant's of the key. */
export const reembedRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/admin/reembed',
    name: 'getReembedStatus',
    access: 'admin',
    summary: 'Shows how far a change of the embedding model is, or what it would take',
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
    summary: 'Begins a change of the embedding model, or goes on with one',
    description:
      'A repeat changes nothing. A change to another model that has not gone live is given up for it. Where the ' +
      'configured model is live, memories without vectors get them, and what other models left behind goes. Unless ' +
      '`without_refused` is set, a model that refuses more than one memory in a hundred, or a single one, ends the ' +
      'change as `failed`, and the old model stays live.',
    query: noQuery,
    body: { json: reembedSchema, optional: true, example: { without_refused: true } },
    replies: { 202: STATUS },
    errors: { conflict: 'Another model has gone live and its change is not finished.' },
    async handle({ tenant, readBody, send }) {
      const { without_refused } = await readBody();
      send(202, reembedItem(await tenant.startReembed({ withoutRefused: without_refused ?? false })));
    },
  }),
  route({
    method: 'post',
    path: '/admin/reembed/pause',
    name: 'pauseReembed',
    access: 'admin',
    summary: 'Stops a change of the embedding model; what was embedded stays',
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
    summary: 'Gives up a change of the embedding model; the old model stays live',
    description: 'What was embedded is kept for a later start.',
    query: noQuery,
    replies: { 200: STATUS },
    errors: { conflict: 'No change is under way, or the new model is live already.' },
    async handle({ tenant, send }) {
      send(200, reembedItem(await tenant.cancelReembed()));
    },
  }),
];
