import { route, type Route } from '../route.ts';
import { memoryListReply, memoryListSchema } from '../schemas/lists.ts';
import { noQuery } from '../schemas/values.ts';
import { clientGone } from '../wait-for-writes.ts';
import { toListPage } from '../wire/lists.ts';
import { memoryItem } from '../wire/memories.ts';
import { toAsOf, toFilter } from '../wire/query.ts';
import { CURSOR_END, sendPage } from './send-page.ts';

/** Routes that list memories page by page. */
export const memoryPageRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/memory/list',
    name: 'pageMemories',
    access: 'read',
    forBoundKeys: true,
    repeatable: true,
    summary: 'Lists memories by filters, page by page, newest or oldest first',
    description:
      'The filters are those of `POST /memory/query`, and as there only active memories are listed without ' +
      `\`filters.statuses\`. ${CURSOR_END}\n\nA page costs the same wherever it begins. It ends early after some ` +
      '4 MiB of text, and after 50,000 memories that do not pass the filters.',
    query: noQuery,
    body: {
      json: memoryListSchema,
      example: { user_id: 'ana', filters: { tags: ['deploy'] }, order_by: 'event_time', order: 'asc', limit: 1 },
      optional: true,
    },
    replies: { 200: { description: 'A page of memories.', json: memoryListReply } },
    async handle(call) {
      const body = await call.readBody();
      const page = {
        ...toListPage(body),
        asOf: toAsOf(body.as_of),
        order: { by: body.order_by ?? 'id', direction: body.order ?? 'desc' },
      } as const;
      const gone = clientGone(call.response);
      await sendPage(call, await call.tenant.pageMemories(toFilter(body), page, gone), memoryItem);
    },
  }),
];
