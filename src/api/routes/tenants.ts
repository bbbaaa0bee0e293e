import fs from 'node:fs';
import { DEFAULT_TENANT, type Engine, EngineError, HOME_DATABASE, type TenantRecord } from '../../engine/index.ts';
import { changeControl } from '../control-turn.ts';
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
      const items = tenants.slice(u, u + l).map((tenant) => ({
        id: tenant.id,
        created_at: tenant.createdAt,
        keys: keys.get(tenant.id) ?? 0,
        bytes: sizeOf(control.findTenantPath(tenant.id)),
        database: databaseOf(engine, tenant),
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
    errors: {
      invalid: 'The id has another form, or the database is not known.',
      conflict: 'The tenant, or a file or rows of its name, exist.',
    },
    async handle({ api, principal, readBody, send }) {
      requireOperator(principal, 'a new tenant');
      const wanted = await readBody();
      const { engine } = api;
      const by = principal.keyId;
      const tenant = await changeControl({ api, principal }, 'createTenant', wanted.id, by, wanted.database);
      send(201, { id: tenant.id, created_at: tenant.createdAt, database: databaseOf(engine, tenant) });
    },
  }),
  route({
    method: 'delete',
    path: '/tenants/:id',
    name: 'eraseTenant',
    access: 'admin',
    summary: 'Refuses with 409 to erase a tenant, and names the command that does; 200 if there is no such tenant',
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

/** Returns the name of the database of a tenant; null for a tenant in a file. */
function databaseOf({ config }: Engine, { database }: TenantRecord): string | null {
  return config.OM_DATABASE_URL === undefined ? null : (database ?? HOME_DATABASE);
}

function sizeOf(path: string | undefined): number {
  return path === undefined ? 0 : (fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0);
}
