import fs from 'node:fs';
import { DEFAULT_TENANT, EngineError, nextTurn } from '../../engine/index.ts';
import { requireOperator } from '../operator.ts';
import { route, type Route } from '../route.ts';
import { newTenant, tenantGone, tenantPage, tenantReply } from '../schemas/admin.ts';
import { noQuery, pageQuery } from '../schemas/values.ts';

const WHAT = 'the list of tenants';

/**
 * The routes by which operators list and create the tenants of the service. Erasing one is refused: only the command
 * line does that.
 */
export const tenantRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/tenants',
    name: 'listTenants',
    access: 'admin',
    summary: 'Lists the tenants of the service, oldest first',
    description: 'Needs an admin key of the default tenant.',
    query: pageQuery,
    replies: { 200: { description: 'A page of tenants.', json: tenantPage } },
    handle({ api: { engine }, principal, query: { l, u }, send }) {
      requireOperator(principal, WHAT);
      const { control } = engine;
      const tenants = control.listTenants();
      const keys = control.countKeys();
      const items = tenants.slice(u, u + l).map(({ id, createdAt }) => ({
        id,
        created_at: createdAt,
        keys: keys.get(id) ?? 0,
        bytes: sizeOf(control.findTenantPath(id)),
      }));
      send(200, { items, total: tenants.length });
    },
  }),
  route({
    method: 'post',
    path: '/tenants',
    name: 'createTenant',
    access: 'admin',
    summary: 'Creates a tenant',
    description:
      'Needs an admin key of the default tenant. All processes know the tenant within a second; `POST /admin/keys` ' +
      'gives it a key.',
    query: noQuery,
    body: { json: newTenant, example: { id: 'acme' } },
    replies: { 201: { description: 'The tenant.', json: tenantReply } },
    errors: { conflict: 'The tenant, or a file of its name, exists.' },
    async handle({ api, principal, readBody, send }) {
      requireOperator(principal, 'a new tenant');
      const wanted = await readBody();
      await nextTurn();
      const { id, createdAt } = api.engine.control.createTenant(wanted.id, principal.keyId);
      send(201, { id, created_at: createdAt });
    },
  }),
  route({
    method: 'delete',
    path: '/tenants/:id',
    name: 'eraseTenant',
    access: 'admin',
    summary: 'Says how to erase a tenant, which only the command line can do',
    description:
      'Processes that serve a tenant hold its files open, so its erasure needs a service that is stopped. This route ' +
      'erases nothing: it answers 409 for a tenant that exists, and 200 once it is gone.',
    params: { id: { description: 'Id of the tenant.', example: 'acme' } },
    query: noQuery,
    replies: { 200: { description: 'There is no such tenant.', json: tenantGone } },
    errors: { conflict: 'The tenant exists; the answer names the command that erases it.' },
    handle({ api, principal, params: { id }, send }) {
      requireOperator(principal, 'the erasure of a tenant');
      if (api.engine.control.findTenantPath(id) !== undefined) refuseErasure(id);
      send(200, { exists: false });
    },
  }),
];

function refuseErasure(id: string): never {
  if (id === DEFAULT_TENANT) throw new EngineError('invalid', 'the default tenant cannot be erased');
  throw new EngineError(
    'conflict',
    `a tenant cannot be erased while the service runs: stop it, then run cairn tenants erase ${id} --yes`,
  );
}

function sizeOf(path: string | undefined): number {
  return path === undefined ? 0 : (fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0);
}
