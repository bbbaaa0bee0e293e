import type { Response } from 'express';
import { EngineError } from '../../engine/errors.ts';
import type { Memory } from '../../engine/types.ts';
import { hasBody, readJson } from '../read-body.ts';
import { sendJson } from '../reply.ts';
import type { Route, TenantCall } from '../route.ts';
import {
  deleteSchema,
  listSchema,
  ownerSchema,
  pageSchema,
  parse,
  patchSchema,
  reinforceSchema,
  userIdSchema,
} from '../schemas.ts';
import { linkItem, memoryItem, receiptItem, revisionItem, toPatch } from '../wire.ts';

const DEFAULT_BOOST = 0.1;

/**
 * `/memory/all` stands before `/memory/:id`, which would take it for an id. To delete by filter asks for the same role as to
 * delete one by one: it saves requests, it permits nothing more.
 */
export const memoryRoutes: readonly Route[] = [
  { method: 'get', path: '/memory/all', access: 'read', handle: list },
  { method: 'post', path: '/memory/reinforce', access: 'write', handle: reinforce },
  { method: 'get', path: '/memory/:id', access: 'read', handle: get },
  { method: 'patch', path: '/memory/:id', access: 'write', handle: patch },
  { method: 'delete', path: '/memory/:id', access: 'write', handle: remove },
  { method: 'delete', path: '/memory', access: 'write', handle: removeMatching },
  { method: 'get', path: '/memory/:id/history', access: 'read', handle: history },
  { method: 'get', path: '/memory/:id/links', access: 'read', handle: links },
  { method: 'get', path: '/users/:id/memories', access: 'read', handle: listOfUser },
  { method: 'delete', path: '/users/:id/memories', access: 'write', handle: removeOfUser },
];

function list({ tenant, request, response }: TenantCall): void {
  const { l, u, sector, user_id } = parse(listSchema, request.query);
  const filter = { sectors: sector && [sector], userIds: user_id === undefined ? undefined : [user_id] };
  sendJson(response, 200, { items: tenant.listMemories(filter, { limit: l, offset: u }).map(memoryItem) });
}

async function reinforce({ tenant, request, response }: TenantCall): Promise<void> {
  const { id, boost } = parse(reinforceSchema, (await readJson(request)).value);
  const memory = await tenant.reinforceMemory(id, Math.min(1, boost ?? DEFAULT_BOOST));
  sendJson(response, 200, { ok: true, id: memory.id, salience: memory.salience, strength: memory.strength });
}

function get(call: TenantCall): void {
  const memory = getOwned(call);
  setVersionTag(call.response, memory);
  sendJson(call.response, 200, memoryItem(memory));
}

async function patch(call: TenantCall): Promise<void> {
  const { tenant, request, response } = call;
  const ifVersion = expectedVersion(request.headers['if-match']);
  const body = parse(patchSchema, (await readJson(request)).value);
  const { id } = getOwned(call, body.user_id);
  const memory = await tenant.patchMemory(id, toPatch(body), { ifVersion });
  setVersionTag(response, memory);
  sendJson(response, 200, { ...memoryItem(memory), updated: true });
}

async function remove(call: TenantCall): Promise<void> {
  const receipt = await call.tenant.deleteMemory(getOwned(call).id);
  sendJson(call.response, 200, { ok: true, deleted: receipt.memories, removed: receiptItem(receipt) });
}

/** The filter stands in the query string or in a body, never half in each. */
async function removeMatching({ tenant, request, response }: TenantCall): Promise<void> {
  const inQuery = Object.keys(request.query).length > 0;
  const inBody = hasBody(request);
  if (inQuery && inBody)
    throw new EngineError('invalid', 'give the filter in the query string or in the body, not in both');
  const { user_id, session_id, tags } = parse(deleteSchema, inBody ? (await readJson(request)).value : request.query);
  const receipt = await tenant.deleteMemories({
    userIds: user_id === undefined ? undefined : [user_id],
    sessionIds: session_id === undefined ? undefined : [session_id],
    tags,
  });
  sendJson(response, 200, { ok: true, deleted: receipt.memories, removed: receiptItem(receipt) });
}

function history(call: TenantCall): void {
  const { id } = getOwned(call);
  sendJson(call.response, 200, { id, items: call.tenant.listRevisions(id).map(revisionItem) });
}

function links(call: TenantCall): void {
  const { id } = getOwned(call);
  sendJson(call.response, 200, { id, items: call.tenant.listLinks(id).map(linkItem) });
}

function listOfUser(call: TenantCall): void {
  const userId = parse(userIdSchema, idOf(call));
  const { l, u } = parse(pageSchema, call.request.query);
  const items = call.tenant.listMemories({ userIds: [userId] }, { limit: l, offset: u });
  sendJson(call.response, 200, { user_id: userId, items: items.map(memoryItem) });
}

async function removeOfUser(call: TenantCall): Promise<void> {
  const receipt = await call.tenant.deleteMemories({ userIds: [parse(userIdSchema, idOf(call))] });
  sendJson(call.response, 200, { ok: true, deleted: receipt.memories, removed: receiptItem(receipt) });
}

function idOf({ request }: TenantCall): string {
  return request.params['id'] as string;
}

/**
 * The memory, if it belongs to the user that the query string names, and to the one of the body: another user's is as absent as none.
 * @throws EngineError `not_found`; `invalid` for another query parameter
 */
function getOwned(call: TenantCall, userInBody?: string | null): Memory {
  const { user_id: userInQuery } = parse(ownerSchema, call.request.query);
  const memory = call.tenant.getMemory(idOf(call));
  if ([userInQuery, userInBody].some((userId) => userId != null && userId !== memory.userId))
    throw new EngineError('not_found', 'no memory with this id');
  return memory;
}

function setVersionTag(response: Response, memory: Memory): void {
  response.setHeader('etag', `"${memory.version}"`);
}

/** @returns undefined for any version. @throws EngineError `invalid` for what no reply of ours had as its ETag */
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
