import { charactersOf, EngineError, type Memory, type Revision, type Timeline } from '../../engine/index.ts';
import { changeControl } from '../control-turn.ts';
import { sendInPieces } from '../json-reply.ts';
import { answerTurn } from '../read-turn.ts';
import { takePlaceOfTexts, writePlaces } from '../reply-places.ts';
import { route, type Route, type TenantCall } from '../route.ts';
import { deletedReply } from '../schemas/deleted-reply.ts';
import {
  deleteSchema,
  historyQuery,
  listQuery,
  type PatchBody,
  patchSchema,
  reinforceSchema,
  timelineQuery,
} from '../schemas/memories.ts';
import {
  historyReply,
  memoryPage,
  memorySchema,
  patchedMemory,
  reinforcedReply,
  timelineReply,
} from '../schemas/memory-replies.ts';
import { ownerQuery } from '../schemas/values.ts';
import { tenantWhileAdmitted } from '../watch-admission.ts';
import { deletedItem, memoryItem, revisionItem, screenedItem, toPatch } from '../wire/memories.ts';
import { PAGE_END, pageEnd, sendMemories } from './memory-list.ts';
import { getOwnedMemory, MEMORY_ID, readForReply, readOwnedMemory } from './owned-memory.ts';
import { expectedVersion, setVersionTag } from './version-tag.ts';

/** Salience (0 to 1) that a reinforcement adds if the request has no `boost`. */
const DEFAULT_BOOST = 0.1;
/**
 * Greatest memory that the reply with a timeline takes (bytes): the memories before, the memory itself and those after.
 */
const TIMELINE_BYTES = 7 * 1024 * 1024;
const NO_MEMORY = 'No memory of this user has this id, or it has expired.';

/**
 * Routes of memories. `/memory/all` must stand before `/memory/:id`, since Express would otherwise take `all` for an
 * id. Deleting by filter needs the same role as deleting one by one, as it only saves requests.
 */
export const memoryRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/memory/all',
    name: 'listMemories',
    access: 'read',
    forBoundKeys: true,
    summary: 'Lists memories that are active, valid and not expired, the newest first',
    description: PAGE_END,
    query: listQuery,
    replies: { 200: { description: 'A page of memories.', json: memoryPage } },
    async handle(call) {
      const { sector, user_id, written_by, ...page } = call.query;
      const filter = {
        sectors: sector && [sector],
        userIds: user_id === undefined ? undefined : [user_id],
        writtenBy: written_by === undefined ? undefined : [written_by],
      };
      await sendMemories(call, {}, filter, page);
    },
  }),
  route({
    method: 'post',
    path: '/memory/reinforce',
    name: 'reinforceMemory',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: "Raises a memory's salience, and its strength by 0.1",
    description:
      'Neither rises above 1. If `boost` is 0, or the salience has risen by `OM_REINFORCE_PER_HOUR` within this ' +
      'hour, neither rises at all; the reply is a 200 all the same.',
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
    forBoundKeys: true,
    summary: 'Shows one memory, with any status',
    params: { id: MEMORY_ID },
    query: ownerQuery,
    replies: { 200: { description: 'The memory.', json: memorySchema, headers: ['etag'] } },
    errors: { not_found: NO_MEMORY },
    async handle(call) {
      const { tenant, params, query, response, send } = call;
      const memory = await readForReply(call, () => readOwnedMemory(tenant, params.id, query.user_id));
      setVersionTag(response, memory);
      send(200, memoryItem(memory));
    },
  }),
  route({
    method: 'patch',
    path: '/memory/:id',
    name: 'patchMemory',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    alsoReads: true,
    summary: 'Changes the named fields of a memory and keeps the others',
    description:
      'The body must name at least one field. If no value changes, the version stays the same. A change of the ' +
      'text archives the reflections that were drawn from the memory. A change of text, tags, metadata or times ' +
      'erases memories that were gathered from it (`/consolidations`).',
    params: { id: MEMORY_ID },
    query: ownerQuery,
    headers: ['if-match'],
    body: { json: patchSchema, example: { tags: ['deploy', 'staging'], metadata: { build: 42, team: null } } },
    replies: { 200: { description: 'The memory as it is now.', json: patchedMemory, headers: ['etag'] } },
    errors: {
      not_found: NO_MEMORY,
      conflict:
        'The memory is at another version than `If-Match`, another memory has the same text, or the memory ' +
        'supersedes over 200 others, whose ends another start would move.',
      too_large: 'The content is over 256 KiB.',
      unprocessable: "The tenant's privacy policy refuses a text of the memory.",
    },
    async handle(call) {
      const { tenant, params, query, request, response, readBody, send } = call;
      const body = await readBody();
      const id = await reserveAnswer(call, body, await getOwnedMemory(tenant, params.id, query.user_id, body.user_id));
      const ifVersion = expectedVersion(request.headers['if-match'], id);
      const memory = await tenant.patchMemory(id, toPatch(body), { ifVersion });
      await answerTurn();
      setVersionTag(response, memory);
      send(200, { ...memoryItem(memory), ...screenedItem(memory), updated: true });
    },
  }),
  route({
    method: 'delete',
    path: '/memory/:id',
    name: 'deleteMemory',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Erases a memory and everything derived from it',
    description:
      'The memory, and the reflections and gathered memories that were drawn from it, are erased at once and for ' +
      'good. A second delete is a 404.',
    params: { id: MEMORY_ID },
    query: ownerQuery,
    replies: { 200: { description: 'What was removed.', json: deletedReply } },
    errors: {
      not_found: NO_MEMORY,
      conflict: 'The memory is a part of a document, and is erased with the document only.',
    },
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
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Erases all memories that match a filter, archived and expired ones too',
    description:
      'A memory must match every named field; a request that names none is a 400. Documents are erased as a whole: a ' +
      'document is erased if its own fields match, even if it is not read yet, or if one of its memories ' +
      'matches. The work is done in slices of 100: after a failure the slices that were erased stay erased, and the ' +
      'request can be repeated. `written_by`, alone or with `user_id`, begins with the standing queries and webhooks ' +
      'that the key stored. `written_by` alone undoes what a key did: it also removes the links that the key stated, ' +
      'and gives memories of others that it changed their former values again. What the key deleted is not brought ' +
      'back. With an admin key it begins with the other servers that the key registered for federated queries.',
    body: { json: deleteSchema, orQuery: 'filter', example: { user_id: 'ana', tags: ['deploy', 'staging'] } },
    replies: { 200: { description: 'What was removed.', json: deletedReply } },
    async handle(call) {
      const { user_id, session_id, tags, files, written_by } = await call.readBody();
      const isUndo = written_by !== undefined && [user_id, session_id, tags, files].every((by) => by === undefined);
      let servers: number | undefined;
      if (isUndo && call.principal.role === 'admin') {
        const { tenantId, keyId } = call.principal;
        servers = await changeControl(call, 'removeServersWrittenBy', tenantId, written_by, keyId);
      }
      const receipt = await tenantWhileAdmitted(call).deleteMemories({
        userIds: user_id === undefined ? undefined : [user_id],
        sessionIds: session_id === undefined ? undefined : [session_id],
        tags,
        files,
        writtenBy: written_by === undefined ? undefined : [written_by],
      });
      call.send(200, { ...deletedItem(receipt), ...(servers === undefined ? {} : { servers }) });
    },
  }),
  route({
    method: 'get',
    path: '/memory/:id/history',
    name: 'getHistory',
    access: 'read',
    forBoundKeys: true,
    summary: 'Shows the earlier values of a memory, the latest change first',
    description:
      'A change is a PATCH, a supersession, a decided contradiction, or archiving by decay. A page ends early after ' +
      '8 MiB: `truncated` then says so. `next` is the `before` of the next page, if there is one.',
    params: { id: MEMORY_ID },
    query: historyQuery,
    replies: {
      200: {
        description: 'The revisions of the memory.',
        json: historyReply,
        example: {
          id: MEMORY_ID.example,
          items: [
            {
              version: 1,
              replaced_at: 1795265979133,
              written_by: null,
              replaced: { tags: ['deploy'], metadata: { build: 41 } },
            },
          ],
        },
      },
    },
    errors: { not_found: NO_MEMORY },
    async handle(call) {
      const { tenant, params, query } = call;
      const { l: limit, before } = query;
      const { id } = await getOwnedMemory(tenant, params.id, query.user_id);
      await sendInPieces(call, async (reply) => {
        reply.add(`{"id":"${id}","items":`);
        const slices = tenant.streamRevisions(id, { limit: limit + 1, before });
        const { last, hasMore, isCut } = await reply.addList<Revision>(slices, { toJson: revisionItem, limit });
        await reply.end(pageEnd(hasMore ? last?.version : undefined, isCut));
      });
    },
  }),
  route({
    method: 'get',
    path: '/memory/:id/timeline',
    name: 'getTimeline',
    access: 'read',
    forBoundKeys: true,
    summary: 'Shows the memories before and after a memory in time',
    description:
      'Memories are sorted by `event_time`. Only memories that are active, valid and not expired are shown; the ' +
      'memory itself may be archived or superseded. Each side considers the nearest 5,000 memories, and is ' +
      'incomplete if too many of them are not shown. Of texts over 3 MiB on a side only the nearest are sent, and of ' +
      'a reply over 8 MiB only the beginning. In all three cases `truncated` is true.',
    params: { id: MEMORY_ID },
    query: timelineQuery,
    replies: { 200: { description: 'The memory between its neighbours.', json: timelineReply } },
    errors: { not_found: NO_MEMORY },
    async handle(call) {
      const { tenant, params, query } = call;
      const { before, after, session, user_id } = query;
      const around = await tenant.timeline(params.id, { before, after, sameSession: session });
      if (user_id !== undefined && user_id !== around.anchor.userId)
        throw new EngineError('not_found', 'no memory with this id');
      await sendTimeline(call, around);
    },
  }),
];

/**
 * Reserves memory for the answer to a patch, which has the whole memory, before it is written: the writer may answer
 * faster than replies are made. Returns the id of the memory, which its caller then need not hold.
 * @throws EngineError `unavailable` if no memory became free in time; nothing is written then
 */
async function reserveAnswer(call: TenantCall, { content }: PatchBody, memory: Memory): Promise<string> {
  const { id } = memory;
  await takePlaceOfTexts(call, charactersOf(memory) + (content?.length ?? 0), writePlaces);
  return id;
}

/** Answers with a memory and its neighbours in time: those before it, the memory itself, those after it. */
async function sendTimeline(call: TenantCall, { before, anchor, after, isCut }: Timeline): Promise<void> {
  await sendInPieces(
    call,
    async (reply) => {
      reply.add('{"before":');
      const earlier = await reply.addList([before], { toJson: memoryItem });
      reply.add(`,"anchor":${JSON.stringify(memoryItem(anchor))},"after":`);
      const later = await reply.addList([after], { toJson: memoryItem });
      await reply.end(pageEnd(undefined, isCut || earlier.isCut || later.isCut));
    },
    TIMELINE_BYTES,
  );
}
