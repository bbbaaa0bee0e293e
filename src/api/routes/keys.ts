import { DEFAULT_TENANT, EngineError, type KeyRecord, type NewKey } from '../../engine/index.ts';
import { changeControl } from '../control-turn.ts';
import { requireOperator, tenantNamed } from '../operator.ts';
import { localsOf } from '../reply.ts';
import { route, type Route, type TenantCall } from '../route.ts';
import { keyExample, keyPage, keyQuery, madeKey, newKey, type NewKeyBody, revokedKey } from '../schemas/keys.ts';
import { noQuery } from '../schemas/values.ts';
import { keyItem } from '../wire/keys.ts';

const OTHERS = 'another tenant';

/**
 * The routes by which admins list, create and revoke the keys of their tenant, as `cairn keys` does on the server's
 * machine.
 */
export const keyRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/admin/keys',
    name: 'listKeys',
    access: 'admin',
    summary: 'Lists the keys of a tenant, the newest first',
    description:
      'Revoked keys, the newest 1,000, and expired ones are listed too. ' +
      'No secret is shown, as only hashes are stored. `OM_API_KEY` and the ' +
      'owners of tokens are not listed.',
    query: keyQuery,
    replies: { 200: { description: 'A page of keys.', json: keyPage } },
    handle({ api, principal, query: { l, u, tenant }, send }) {
      const asked = tenantNamed(tenant, principal, OTHERS);
      const { items, total } = api.engine.control.pageKeys(asked, { limit: l, offset: u });
      send(200, { items: items.map(keyItem), total });
    },
  }),
  route({
    method: 'post',
    path: '/admin/keys',
    name: 'createKey',
    access: 'admin',
    summary: 'Makes a key, whose secret is shown once',
    description:
      'A key for other tenants than your own needs an admin key of the default tenant. The first key of a service ' +
      'that had none closes it: from then on every request needs a key, so let the first one be an admin’s.',
    query: noQuery,
    body: {
      json: newKey,
      example: { role: 'write', name: "Ana's laptop", user_id: 'ana', expires_at: '2027-06-01' },
    },
    replies: {
      201: {
        description: 'The key and its secret.',
        json: madeKey,
        example: { key: keyExample, secret: 'cairn_5f0c2a9d81e6b374_…' },
      },
    },
    errors: {
      not_found: 'No tenant has one of these ids.',
      conflict: 'A tenant has 1,000 keys that are not revoked.',
    },
    async handle({ api, principal, readBody, response, send }) {
      const body = await readBody();
      for (const tenant of body.tenants ?? []) tenantNamed(tenant, principal, OTHERS);
      // Whoever makes the first key without one gets its secret, though nobody without a key is admitted from then on.
      if (principal.keyId === 'anonymous') localsOf(response).onAdmissionLost = () => {};
      const made = await changeControl({ api, principal }, 'createKey', newKeyOf(body, principal), principal.keyId);
      response.setHeader('cache-control', 'no-store');
      send(201, { key: keyItem(made.record), secret: made.secret });
    },
  }),
  route({
    method: 'delete',
    path: '/admin/keys/:id',
    name: 'revokeKey',
    access: 'admin',
    summary: 'Revokes a key, which every process refuses within a second',
    description:
      'A key that also reaches other tenants is revoked by an admin key of the default tenant. Revoking a revoked ' +
      'key changes nothing.',
    params: { id: { description: 'Public id of the key, not its secret.', example: '5f0c2a9d81e6b374' } },
    query: noQuery,
    replies: { 200: { description: 'The key as it is now.', json: revokedKey } },
    errors: { not_found: 'No key that you may revoke has this id.' },
    async handle({ api, principal, params: { id }, response, send }) {
      requireRevocable(api.engine.control.findKey(id), principal);
      // A key that revokes itself is answered all the same.
      if (id === principal.keyId) localsOf(response).onAdmissionLost = () => {};
      send(200, keyItem(await changeControl({ api, principal }, 'revokeKey', id, principal.keyId)));
    },
  }),
];

type Principal = TenantCall['principal'];

function newKeyOf({ tenants, ...body }: NewKeyBody, { tenantId: own }: Principal): NewKey {
  const [tenantId = own, ...furtherTenantIds] = tenants ?? [];
  return {
    tenantId,
    furtherTenantIds,
    role: body.role,
    label: body.name,
    userId: body.user_id,
    tags: body.tags,
    expiresAt: body.expires_at,
  };
}

/**
 * Throws EngineError `not_found` if there is no such key, or it has no access to the caller's tenant; `forbidden` if it
 * also has access to other tenants and the caller is not an operator. Operators may revoke every key.
 */
function requireRevocable(key: KeyRecord | undefined, principal: Principal): void {
  const isOperator = principal.tenantId === DEFAULT_TENANT;
  if (key === undefined || !(isOperator || key.tenantIds.includes(principal.tenantId)))
    throw new EngineError('not_found', 'no key has this id');
  if (key.tenantIds.length > 1) requireOperator(principal, 'a key that also reaches other tenants');
}
