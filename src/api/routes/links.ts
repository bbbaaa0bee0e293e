import { assert, EngineError, isEngineError } from '../../engine/errors.ts';
import type { Tenant } from '../../engine/engine.ts';
import { hasBody, readJson } from '../read-body.ts';
import { sendJson } from '../reply.ts';
import type { Route, TenantCall } from '../route.ts';
import { contradictSchema, linkSchema, parse, supersedeSchema, unlinkSchema } from '../schemas.ts';
import { linkItem } from '../wire.ts';

/** They stand before `/memory/:id`, which would take `link` for an id. */
export const linkRoutes: readonly Route[] = [
  { method: 'post', path: '/memory/link', access: 'write', handle: link },
  { method: 'delete', path: '/memory/link', access: 'write', handle: unlink },
  { method: 'post', path: '/memory/supersede', access: 'write', handle: supersede },
  { method: 'post', path: '/memory/contradict', access: 'write', handle: contradict },
];

async function link({ tenant, request, response }: TenantCall): Promise<void> {
  const { user_id, src, dst, type, weight } = parse(linkSchema, (await readJson(request)).value);
  requireOwned(tenant, user_id, { src, dst });
  const { id, direction, ...stated } = linkItem(
    await tenant.linkMemories({ src, dst, type, weight: weight ?? undefined }),
  );
  assert(id === dst && direction === 'out', 'a link that was stated leads from src to dst');
  sendJson(response, 200, { ok: true, src, dst, ...stated });
}

/** The link stands in the query string or in a body, never half in each. */
async function unlink({ tenant, request, response }: TenantCall): Promise<void> {
  const inBody = hasBody(request);
  if (inBody && Object.keys(request.query).length > 0)
    throw new EngineError('invalid', 'give the link in the query string or in the body, not in both');
  const { user_id, src, dst, type } = parse(unlinkSchema, inBody ? (await readJson(request)).value : request.query);
  requireOwned(tenant, user_id, { src, dst });
  await tenant.unlinkMemories({ src, dst, type });
  sendJson(response, 200, { ok: true, src, dst, type });
}

async function supersede({ tenant, request, response }: TenantCall): Promise<void> {
  const { user_id, old_id, new_id } = parse(supersedeSchema, (await readJson(request)).value);
  requireOwned(tenant, user_id, { old_id, new_id });
  const old = await tenant.supersedeMemory({ oldId: old_id, newId: new_id });
  sendJson(response, 200, {
    ok: true,
    old_id,
    new_id,
    status: old.status,
    valid_to: old.validTo,
    version: old.version,
  });
}

async function contradict({ tenant, request, response }: TenantCall): Promise<void> {
  const { user_id, a, b, winner } = parse(contradictSchema, (await readJson(request)).value);
  requireOwned(tenant, user_id, { a, b });
  const stated = linkItem(await tenant.contradictMemories({ a, b, winner: winner ?? undefined }));
  const { weight, created_at, updated_at } = stated;
  sendJson(response, 200, { ok: true, a, b, weight, created_at, updated_at });
}

/**
 * Another user's memory is as absent as none; without a user, whoever has the key sees all.
 * @throws EngineError `not_found`, naming the field
 */
function requireOwned(tenant: Tenant, userId: string | null | undefined, ids: Readonly<Record<string, string>>): void {
  if (userId == null) return;
  for (const [field, id] of Object.entries(ids)) {
    if (findOwner(tenant, id) !== userId) throw new EngineError('not_found', `${field}: no memory with this id`);
  }
}

function findOwner(tenant: Tenant, id: string): string | undefined {
  try {
    return tenant.getMemory(id).userId;
  } catch (error) {
    if (isEngineError(error, 'not_found')) return undefined;
    throw error;
  }
}
