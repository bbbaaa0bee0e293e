import { takeTurn } from '../../engine/index.ts';
import { answerTurn } from '../read-turn.ts';
import { route, type Route } from '../route.ts';
import { itemPlaceQuery, itemReply, itemSchema, putReply } from '../schemas/items.ts';
import { deletedReply } from '../schemas/deleted-reply.ts';
import { itemOf, toItemPlace, toNewItem } from '../wire/items.ts';
import { deletedItem } from '../wire/memories.ts';
import { readForReply } from './owned-memory.ts';
import { expectedItem, setVersionTag } from './version-tag.ts';

const NO_ITEM = 'No item has this key, or it has expired.';

/** Routes of items: memories that callers store, read and delete under keys of their own choice. */
export const itemRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/items',
    name: 'getItem',
    access: 'read',
    forBoundKeys: true,
    summary: 'Shows the item with a key, whatever its status',
    query: itemPlaceQuery,
    replies: { 200: { description: 'The item.', json: itemReply, headers: ['etag'] } },
    errors: { not_found: NO_ITEM },
    async handle(call) {
      const { tenant, query, response, send } = call;
      const memory = await readForReply(call, () => tenant.getItem(toItemPlace(query)));
      setVersionTag(response, memory);
      send(200, itemOf(memory));
    },
  }),
  route({
    method: 'put',
    path: '/items',
    name: 'putItem',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Stores an item under a key, or replaces the item that has the key',
    description:
      'The item is a memory: queries find it by its text, and its `id` works on all routes of memories. It is ' +
      'replaced as a whole; what it was stays in `GET /memory/:id/history`. Only an `event_time` that is left out ' +
      'stays. Two items with the same text stay two. Putting the same again changes nothing.',
    headers: ['if-match'],
    body: {
      json: itemSchema,
      example: { user_id: 'ana', namespace: 'settings', key: 'editor', value: { theme: 'dark' } },
    },
    replies: {
      201: { description: 'The item was stored.', json: putReply, headers: ['etag'] },
      200: { description: 'The item was there, and is as it was put now.', json: putReply, headers: ['etag'] },
    },
    errors: {
      conflict:
        'The item is at another version than `If-Match` or was stored anew since, does not have the tags of your ' +
        'key, or was superseded in the middle of a chain with over 500 memories on either side.',
      too_large: 'The content is over 256 KiB.',
      unprocessable: "The tenant's privacy policy refuses a text of the item.",
    },
    async handle({ tenant, request, response, readBody, send }) {
      const expected = expectedItem(request.headers['if-match']);
      const item = toNewItem(await readBody());
      await takeTurn();
      const { memory, created, changed } = await tenant.putItem(item, expected);
      await answerTurn();
      const shown = itemOf(memory);
      await takeTurn();
      setVersionTag(response, memory);
      send(created ? 201 : 200, { ...shown, created, changed });
    },
  }),
  route({
    method: 'delete',
    path: '/items',
    name: 'deleteItem',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Erases the item with a key, and everything derived from it',
    description: 'The item is erased at once and for good, with its earlier values. A second delete is a 404.',
    query: itemPlaceQuery,
    headers: ['if-match'],
    replies: { 200: { description: 'What was removed.', json: deletedReply } },
    errors: {
      not_found: NO_ITEM,
      conflict: 'The item is at another version than `If-Match`, or was stored anew since.',
    },
    async handle({ tenant, request, query, send }) {
      const expected = expectedItem(request.headers['if-match']);
      send(200, deletedItem(await tenant.deleteItem(toItemPlace(query), expected)));
    },
  }),
];
