import type { Response } from 'express';
import { EngineError, type Memory } from '../../engine/index.ts';
import { route, type Route } from '../route.ts';
import { deleteSchema, listQuery, patchSchema, reinforceSchema, timelineQuery } from '../schemas/memories.ts';
import {
  deletedReply,
  historyReply,
  memoryPage,
  memorySchema,
  patchedMemory,
  reinforcedReply,
  timelineReply,
} from '../schemas/memory-replies.ts';
import { ownerQuery } from '../schemas/values.ts';
import { deletedItem, memoryItem, memoryItems, revisionItem, timelineItem, toPatch } from '../wire/memories.ts';
import { getOwnedMemory, MEMORY_ID } from './owned-memory.ts';

/** Salience that a reinforcement adds if the request names no `boost`. */
const DEFAULT_BOOST = 0.1;
const NO_MEMORY = 'No memory of this user has this id, or it has expired.';

/**
 * Routes of memories. `/memory/all` stands before `/memory/:id`, which would take `all` for an id. Deleting by filter
 * needs the same role as deleting one by one, as it only saves requests.
 */
export const memoryRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/memory/all',
    name: 'listMemories',
    access: 'read',
    summary: 'Lists memories that are active, valid and not expired, the newest first',
    query: listQuery,
    replies: { 200: { description: 'A page of memories.', json: memoryPage } },
    async handle({ tenant, query: { l, u, sector, user_id }, send }) {
      const filter = { sectors: sector && [sector], userIds: user_id === undefined ? undefined : [user_id] };
      send(200, { items: await memoryItems(await tenant.listMemories(filter, { limit: l, offset: u })) });
    },
  }),
  route({
    method: 'post',
    path: '/memory/reinforce',
    name: 'reinforceMemory',
    access: 'write',
    summary: "Raises a memory's salience, and its strength by 0.1",
    description: 'Neither rises above 1.',
    body: { json: reinforceSchema, example: { id: MEMORY_ID.example } },
    replies: {
      200: {
        description: 'Both values as they are now.',
        json: reinforcedReply,
        example: { ok: true, id: MEMORY_ID.example, salience: 0.5, strength: 1 },
      },
    },
    errors: { not_found: 'No memory has this id.' },
    async handle({ tenant, readBody, send }) {
      const { id, boost } = await readBody();
      const memory = await tenant.reinforceMemory(id, Math.min(1, boost ?? DEFAULT_BOOST));
      send(200, { ok: true, id: memory.id, salience: memory.salience, strength: memory.strength });
    },
  }),
  route({
    method: 'get',
    path: '/memory/:id',
    name: 'getMemory',
    access: 'read',
    summary: 'Shows one memory, with any status',
    params: { id: MEMORY_ID },
    query: ownerQuery,
    replies: { 200: { description: 'The memory.', json: memorySchema, headers: ['etag'] } },
    errors: { not_found: NO_MEMORY },
    async handle({ tenant, params, query, response, send }) {
      const memory = await getOwnedMemory(tenant, params.id, query.user_id);
      setVersionTag(response, memory);
      send(200, memoryItem(memory));
    },
  }),
  route({
    method: 'patch',
    path: '/memory/:id',
    name: 'patchMemory',
    access: 'write',
    summary: 'Changes the named fields of a memory and keeps the others',
    description: 'The body must name at least one field. If no value changes, the version stays the same.',
    params: { id: MEMORY_ID },
    query: ownerQuery,
    headers: ['if-match'],
    body: { json: patchSchema, example: { tags: ['deploy', 'staging'], metadata: { build: 42, team: null } } },
    replies: { 200: { description: 'The memory as it is now.', json: patchedMemory, headers: ['etag'] } },
    errors: {
      not_found: NO_MEMORY,
      conflict: 'The memory is at another version than `If-Match`, or another memory has the same text.',
      too_large: 'The content is over 256 KiB.',
    },
    async handle({ tenant, params, query, request, response, readBody, send }) {
      const ifVersion = expectedVersion(request.headers['if-match']);
      const body = await readBody();
      const { id } = await getOwnedMemory(tenant, params.id, query.user_id, body.user_id);
      const memory = await tenant.patchMemory(id, toPatch(body), { ifVersion });
      setVersionTag(response, memory);
      send(200, { ...memoryItem(memory), updated: true });
    },
  }),
  route({
    method: 'delete',
    path: '/memory/:id',
    name: 'deleteMemory',
    access: 'write',
    summary: 'Erases a memory and everything derived from it',
    description: 'The memory and the reflections on it are erased at once and for good. A second delete is a 404.',
    params: { id: MEMORY_ID },
    query: ownerQuery,
    replies: { 200: { description: 'What was removed.', json: deletedReply } },
    errors: { not_found: NO_MEMORY },
    async handle({ tenant, params, query, send }) {
      const receipt = await tenant.deleteMemory((await getOwnedMemory(tenant, params.id, query.user_id)).id);
      send(200, deletedItem(receipt));
    },
  }),
  route({
    method: 'delete',
    path: '/memory',
    name: 'deleteMemories',
    access: 'write',
    summary: 'Erases all memories that match a filter, archived and expired ones too',
    description:
      'A memory must match every named field; a request that names none is a 400. Documents are erased as a whole: a ' +
      'document is erased if its own fields match, even if it is not read yet, or if its root or one of its chunks ' +
      'matches. The work is done in slices of 100: after a failure the slices that were erased stay erased, and the ' +
      'request can be repeated.',
    body: { json: deleteSchema, orQuery: 'filter', example: { user_id: 'ana', tags: ['deploy', 'staging'] } },
    replies: { 200: { description: 'What was removed.', json: deletedReply } },
    async handle({ tenant, readBody, send }) {
      const { user_id, session_id, tags } = await readBody();
      const receipt = await tenant.deleteMemories({
        userIds: user_id === undefined ? undefined : [user_id],
        sessionIds: session_id === undefined ? undefined : [session_id],
        tags,
      });
      send(200, deletedItem(receipt));
    },
  }),
  route({
    method: 'get',
    path: '/memory/:id/history',
    name: 'getHistory',
    access: 'read',
    summary: 'Shows the earlier values of a memory, the latest change first',
    description: 'A change is a PATCH, a supersession, a decided contradiction, or archiving by decay.',
    params: { id: MEMORY_ID },
    query: ownerQuery,
    replies: {
      200: {
        description: 'The revisions of the memory.',
        json: historyReply,
        example: {
          id: MEMORY_ID.example,
          items: [{ version: 1, replaced_at: 1795265979133, replaced: { tags: ['deploy'], metadata: { build: 41 } } }],
        },
      },
    },
    errors: { not_found: NO_MEMORY },
    async handle({ tenant, params, query, send }) {
      const { id } = await getOwnedMemory(tenant, params.id, query.user_id);
      send(200, { id, items: (await tenant.listRevisions(id)).map(revisionItem) });
    },
  }),
  route({
    method: 'get',
    path: '/memory/:id/timeline',
    name: 'getTimeline',
    access: 'read',
    summary: 'Shows the memories before and after a memory in time',
    description:
      'Memories are sorted by `event_time`. Only memories that are active, valid and not expired are shown; the ' +
      'memory itself may be archived or superseded. Each side considers the nearest 5,000 memories, and may be ' +
      'incomplete if many of them are not shown.',
    params: { id: MEMORY_ID },
    query: timelineQuery,
    replies: { 200: { description: 'The memory between its neighbours.', json: timelineReply } },
    errors: { not_found: NO_MEMORY },
    async handle({ tenant, params, query: { before, after, session, user_id }, send }) {
      const around = await tenant.timeline(params.id, { before, after, sameSession: session });
      if (user_id !== undefined && user_id !== around.anchor.userId)
        throw new EngineError('not_found', 'no memory with this id');
      send(200, await timelineItem(around));
    },
  }),
];

function setVersionTag(response: Response, memory: Memory): void {
  response.setHeader('etag', `"${memory.version}"`);
}

/**
 * Reads `If-Match`.
 * @returns the expected version; undefined if any version will do
 * @throws EngineError `invalid` for a value that cannot be an ETag of this API
 */
function expectedVersion(header: string | undefined): number | undefined {
  if (header === undefined || header === '*') return undefined;
  const version = /^(?:"(\d{1,10})"|(\d{1,10}))$/.exec(header);
  if (version === null)
    throw new EngineError(
      'invalid',
      'If-Match: expected one ETag as a reply gave it, such as "3", without W/ and not in a list; or *',
    );
  return Number(version[1] ?? version[2]);
}
