import { route, type Route } from '../route.ts';
import { userIdSchema, userPageQuery } from '../schemas/memories.ts';
import { deletedReply } from '../schemas/deleted-reply.ts';
import { userMemoryPage } from '../schemas/memory-replies.ts';
import { parse } from '../schemas/parse.ts';
import { tenantWhileAdmitted } from '../watch-admission.ts';
import { deletedItem } from '../wire/memories.ts';
import { PAGE_END, sendMemories } from './memory-list.ts';

const USER_ID = { description: 'The `user_id` of the user.', example: 'ben' } as const;

/** Routes of all memories of one user. */
export const userRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/users/:id/memories',
    name: 'listMemoriesOfUser',
    access: 'read',
    forBoundKeys: true,
    summary: "Lists one user's memories, the newest first",
    description: `An unknown user has an empty list. ${PAGE_END}`,
    params: { id: USER_ID },
    query: userPageQuery,
    replies: { 200: { description: 'A page of memories.', json: userMemoryPage } },
    async handle(call) {
      const userId = parse(userIdSchema, call.params.id);
      await sendMemories(call, { user_id: userId }, { userIds: [userId] }, call.query);
    },
  }),
  route({
    method: 'delete',
    path: '/users/:id/memories',
    name: 'deleteMemoriesOfUser',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Erases all memories, documents and session logs of one user',
    description:
      'The standing queries and webhooks of the user and the items of evaluation sets with this `user_id` are ' +
      'erased, too. `deleted` is 0 for an unknown user.',
    params: { id: USER_ID },
    replies: { 200: { description: 'What was removed.', json: deletedReply } },
    async handle(call) {
      const userIds = [parse(userIdSchema, call.params.id)];
      call.send(200, deletedItem(await tenantWhileAdmitted(call).deleteMemories({ userIds })));
    },
  }),
];
