import { sendObject } from '../json-reply.ts';
import { route, type Route } from '../route.ts';
import { diffQuery, diffReply } from '../schemas/diff.ts';
import { storedExample } from '../schemas/memory-replies.ts';
import { clientGone } from '../wait-for-writes.ts';
import { diffBytes, diffItem, toDiffOptions } from '../wire/diff.ts';

const NONE = { changed: 0, superseded: 0, contradicted: 0, ended: 0, archived: 0, restored: 0, faded: 0 };

/** The route that reports what changed between two times. */
export const diffRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/diff',
    name: 'diffMemories',
    access: 'read',
    forBoundKeys: true,
    limited: ['queries'],
    summary: 'Tells what became known, was changed, replaced, contradicted, ended, faded and erased between two times',
    description:
      'Memories are shown as they were at the end of the window (with `axis=valid` as they are now), whatever their ' +
      'status; parts of documents are left out. A memory that was stored in the window is only among `added`. What ' +
      'was erased is only counted. Each list is in order of time, `faded` by falling salience, and cut to `limit`: ' +
      'ask for a smaller window to see the rest. A memory that was reinforced since the start of the window is not ' +
      'among `faded`. The request reinforces nothing.',
    query: diffQuery,
    errors: { invalid: '`to` is not later than `from`.' },
    replies: {
      200: {
        description: 'The lists.',
        json: diffReply,
        example: {
          from: 1795200000000,
          to: 1795300000000,
          axis: 'recorded',
          added: [{ memory: storedExample, at: storedExample.created_at }],
          changed: [],
          superseded: [],
          contradicted: [],
          ended: [],
          archived: [],
          restored: [],
          faded: [],
          counts: { added: 1, ...NONE },
          erased: { deleted: 0, expired: 0 },
          degraded: false,
        },
      },
    },
    async handle(call) {
      const { api, tenant, query, response } = call;
      const diff = await tenant.diff(toDiffOptions(query, api.engine.clock.now()), clientGone(response));
      await sendObject(call, diffItem(diff), diffBytes(diff));
    },
  }),
];
