import type { NameKind } from '../../engine/index.ts';
import { route, type Route } from '../route.ts';
import { nameListQuery, nameListReply, sessionListQuery } from '../schemas/lists.ts';
import { nameItem, toListPage } from '../wire/lists.ts';
import { CURSOR_END } from './send-page.ts';

const DESCRIPTION =
  `Names are sorted by their characters. ${CURSOR_END}\n\nEach memory of a name on the page is read to count ` +
  'it; a page ends early after 200,000 memories, and for a key that is bound to tags after about half a second.';

function namesRoute(kind: Exclude<NameKind, 'sessions'>, name: string, summary: string): Route {
  return route({
    method: 'get',
    path: `/${kind}`,
    name,
    access: 'read',
    forBoundKeys: true,
    summary,
    description: DESCRIPTION,
    query: nameListQuery,
    replies: { 200: { description: 'A page of names.', json: nameListReply } },
    async handle({ tenant, query, send }) {
      const { user_id: userId, prefix } = query;
      const { items, next } = await tenant.listNames(kind, { userId, prefix }, toListPage(query));
      send(200, { items: items.map(nameItem), next_cursor: next });
    },
  });
}

/** Routes that list the distinct users, sessions, types and tags of memories. */
export const nameRoutes: readonly Route[] = [
  namesRoute('users', 'listUsers', 'Lists the users who own memories, with their number'),
  route({
    method: 'get',
    path: '/sessions',
    name: 'listSessions',
    access: 'read',
    forBoundKeys: true,
    summary: "Lists a user's sessions, with the number of their memories",
    description: DESCRIPTION,
    query: sessionListQuery,
    replies: { 200: { description: 'A page of names.', json: nameListReply } },
    async handle({ tenant, query, send }) {
      const { user_id: userId, prefix } = query;
      const { items, next } = await tenant.listNames('sessions', { userId, prefix }, toListPage(query));
      send(200, { items: items.map(nameItem), next_cursor: next });
    },
  }),
  namesRoute('types', 'listTypes', 'Lists the types of memories, with their number'),
  namesRoute('tags', 'listTags', 'Lists the tags of memories, with their number'),
];
