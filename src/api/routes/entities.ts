import { sendJson } from '../reply.ts';
import type { Route, TenantCall } from '../route.ts';
import { entitiesSchema, ownerSchema, parse } from '../schemas.ts';

/** The names that memories mention and what they state about them. */
export const entityRoutes: readonly Route[] = [
  { method: 'get', path: '/entities', access: 'read', handle: list },
  { method: 'get', path: '/entities/:name', access: 'read', handle: get },
];

function list({ tenant, request, response }: TenantCall): void {
  const { q, l, u, user_id } = parse(entitiesSchema, request.query);
  sendJson(response, 200, { items: tenant.listEntities({ prefix: q, userId: user_id }, { limit: l, offset: u }) });
}

function get({ tenant, request, response }: TenantCall): void {
  const { user_id } = parse(ownerSchema, request.query);
  const { memoryIds, ...entity } = tenant.getEntity(request.params['name'] as string, user_id);
  sendJson(response, 200, { ...entity, memory_ids: memoryIds });
}
