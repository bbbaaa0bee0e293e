import { route, type Route } from '../route.ts';
import { userIdSchema } from '../schemas/memories.ts';
import { deletedReply, userMemoryPage } from '../schemas/memory-replies.ts';
import { parse } from '../schemas/parse.ts';
import { pageQuery } from '../schemas/values.ts';
import { deletedItem, memoryItems } from '../wire/memories.ts';

const USER_ID = { description: 'The user, as `user_id` names it.', example: 'ben' } as const;

/** Routes of all memories of one user. */
export const userRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/users/:id/memories',
    name: 'listMemoriesOfUser',
    access: 'read',
    summary: "Lists one user's memories, the newest first",
    description: 'An unknown user has an empty list.',
    params: { id: USER_ID },
    query: pageQuery,
    replies: { 200: { description: 'A page of memories.', json: userMemoryPage } },
    async handle({ tenant, params, query: { l, u }, send }) {
      const userId = parse(userIdSchema, params.id);
      const items = await tenant.listMemories({ userIds: [userId] }, { limit: l, offset: u });
      send(200, { user_id: userId, items: await memoryItems(items) });
    },
  }),
  route({
    method: 'delete',
    path: '/users/:id/memories',
    name: 'deleteMemoriesOfUser',
    access: 'write',
    summary: 'Erases all memories and documents of one user',
    description: '`deleted` is 0 for an unknown user.',
    params: { id: USER_ID },
    replies: { 200: { description: 'What was removed.', json: deletedReply } },
    async handle({ tenant, params, send }) {
      const receipt = await tenant.deleteMemories({ userIds: [parse(userIdSchema, params.id)] });
      send(200, deletedItem(receipt));
    },
  }),
];
