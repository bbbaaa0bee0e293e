import { route, type Route } from '../route.ts';
import {
  itemListReply,
  itemListSchema,
  moveReply,
  moveSchema,
  namespaceListQuery,
  namespaceListReply,
  namespaceOwnerQuery,
  namespaceSchema,
} from '../schemas/lists.ts';
import { deletedReply } from '../schemas/deleted-reply.ts';
import { parse } from '../schemas/parse.ts';
import { noQuery } from '../schemas/values.ts';
import { clientGone } from '../wait-for-writes.ts';
import { tenantWhileAdmitted } from '../watch-admission.ts';
import { itemOf } from '../wire/items.ts';
import { namespaceItem, toListPage } from '../wire/lists.ts';
import { deletedItem } from '../wire/memories.ts';
import { CURSOR_END, sendPage } from './send-page.ts';

const NAMESPACE = { description: 'Path of the namespace.', example: 'settings.editor' } as const;
const WITHOUT_ONE = 'Without such a namespace the counts are 0.';

/** Routes of namespaces and the items in them. */
export const namespaceRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/items/list',
    name: 'listItems',
    access: 'read',
    forBoundKeys: true,
    repeatable: true,
    summary: "Lists a user's items by namespace and key",
    description:
      `Items in no namespace are not listed. ${CURSOR_END}\n\nA page ends early after some 4 MiB of text and values, ` +
      'and after 50,000 items that do not pass the conditions on the value.',
    query: noQuery,
    body: {
      json: itemListSchema,
      example: { user_id: 'ana', namespace: 'settings', value: { theme: { $in: ['dark', 'light'] } }, limit: 10 },
      optional: true,
    },
    replies: { 200: { description: 'A page of items.', json: itemListReply } },
    async handle(call) {
      const body = await call.readBody();
      const filter = {
        userId: body.user_id ?? '',
        namespace: body.namespace ?? '',
        value: body.value ?? undefined,
      };
      const gone = clientGone(call.response);
      await sendPage(call, await call.tenant.streamItems(filter, toListPage(body), gone), itemOf);
    },
  }),
  route({
    method: 'get',
    path: '/namespaces',
    name: 'listNamespaces',
    access: 'read',
    forBoundKeys: true,
    summary: 'Lists namespaces that hold items, with their number',
    description: `Namespaces are sorted label by label: what lies below a path follows it. ${CURSOR_END}`,
    query: namespaceListQuery,
    replies: { 200: { description: 'A page of namespaces.', json: namespaceListReply } },
    async handle({ tenant, query, send }) {
      const { user_id: userId, prefix, suffix, max_depth: maxDepth } = query;
      const { items, next } = await tenant.listNamespaces({ userId, prefix, suffix, maxDepth }, toListPage(query));
      send(200, { items: items.map(namespaceItem), next_cursor: next });
    },
  }),
  route({
    method: 'patch',
    path: '/namespaces/:name',
    name: 'moveNamespace',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Gives a namespace, and everything below it, another path',
    description:
      'A namespace that is there already takes the items in. Items keep their ids, versions and histories. All keys ' +
      'are checked before anything moves. Up to 1,000 items and namespaces move at once, or none of them; more move ' +
      `1,000 at a time, and after a failure the same request moves the rest. ${WITHOUT_ONE}`,
    params: { name: NAMESPACE },
    body: { json: moveSchema, example: { user_id: 'ana', to: 'preferences.editor' } },
    replies: {
      200: { description: 'What was moved.', json: moveReply, example: { items: 2, namespaces: 1 } },
    },
    errors: {
      conflict:
        'The target holds an item with one of the keys; nothing was moved, unless it was put there during the move.',
    },
    async handle(call) {
      const { user_id, to } = await call.readBody();
      const namespace = parse(namespaceSchema, call.params.name);
      call.send(200, await tenantWhileAdmitted(call).moveNamespace({ userId: user_id ?? '', namespace, to }));
    },
  }),
  route({
    method: 'delete',
    path: '/namespaces/:name',
    name: 'deleteNamespace',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Erases all items of a namespace and of those below it',
    description:
      'The work is done in commits of at most 100 items; after a failure, the same request does the rest. ' +
      WITHOUT_ONE,
    params: { name: NAMESPACE },
    query: namespaceOwnerQuery,
    replies: { 200: { description: 'What was removed.', json: deletedReply } },
    async handle(call) {
      const place = { userId: call.query.user_id ?? '', namespace: parse(namespaceSchema, call.params.name) };
      call.send(200, deletedItem(await tenantWhileAdmitted(call).deleteNamespace(place)));
    },
  }),
];
