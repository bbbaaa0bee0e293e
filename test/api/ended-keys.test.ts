/** Work of many commits ends with the key that asked for it: once that is revoked, nothing more is erased or moved. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TenantCall } from '../../src/api/route.ts';
import type { Tenant } from '../../src/engine/engine.ts';
import { boundTenant } from '../../src/engine/tenant/bound-tenant.ts';
import { callRoute } from '../support/call-route.ts';
import { openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { newMemory } from '../support/new-memory.ts';

let fixture: TestEngine;
beforeAll(async () => (fixture = await openTestEngine()));
afterAll(() => fixture.close());

const ENDED = { code: 'unauthenticated', message: 'this key or session has ended or was revoked' };

/** Makes a key, and what a route is called with for it. */
function newKey() {
  const { control } = fixture.engine;
  const { id: keyId } = control.createKey({ tenantId: 'default', role: 'write' }).record;
  const principal = { tenantId: 'default', tenantIds: ['default'], keyId, role: 'write', expiresAt: null } as const;
  const parts = { api: { engine: fixture.engine } as TenantCall['api'], principal };
  return { parts, revoke: () => control.revokeKey(keyId) };
}

/** Returns how many memories of a user are stored. */
const count = (userId: string) =>
  fixture.batch
    .open()
    .store.prepare('SELECT count(*) FROM memories m JOIN users u ON u.user_no = m.user_no WHERE u.user_id = ?')
    .pluck()
    .get(userId) as number;

test.each([
  ['of a tenant', (tenant: Tenant) => tenant],
  ['of a bound key', (tenant: Tenant) => boundTenant(tenant, { userId: 'many' })],
])('a delete by filter %s stops between two slices', async (_, viewOf) => {
  const { tenant } = fixture;
  await tenant.addMemories(
    Array.from({ length: 350 }, (_, no) => newMemory({ content: `Number ${no}.`, userId: 'many' })),
  );
  const { parts, revoke } = newKey();
  const revokedAfterOne: Tenant = {
    ...tenant,
    whileAdmitted: (check) =>
      tenant.whileAdmitted(() => {
        if (count('many') < 350) revoke();
        check();
      }),
  };
  const erase = { method: 'DELETE', path: '/memory', body: { user_id: 'many' } };
  await expect(callRoute(viewOf(revokedAfterOne), { ...erase, parts })).rejects.toMatchObject(ENDED);
  expect(count('many')).toBe(250);
  // Another key does the rest.
  await callRoute(tenant, { ...erase, parts: newKey().parts });
  expect(count('many')).toBe(0);
});

test.each([
  ['DELETE', '/memory', { body: { user_id: 'ann' } }],
  ['DELETE', '/users/ann/memories', { params: { id: 'ann' } }],
  ['DELETE', '/namespaces/of', { params: { name: 'of' }, query: { user_id: 'ann' } }],
  ['PATCH', '/namespaces/of', { params: { name: 'of' }, body: { user_id: 'ann', to: 'to' } }],
  ['POST', '/consolidations/x/undo', { params: { id: '01a1ff55-50c1-7421-a45c-cf733ddd36c3' } }],
  ['POST', '/webhooks/x/retry', { params: { id: '01a1ff55-50c1-7421-a45c-cf733ddd36c3' } }],
])('%s %s makes no commit once its key has ended', async (method, path, call) => {
  const { tenant } = fixture;
  const item = { ...newMemory({ content: '' }), content: null, value: 1, userId: 'ann' };
  await tenant.putItem({ ...item, namespace: 'of', key: 'k' });
  const { parts, revoke } = newKey();
  revoke();
  await expect(callRoute(tenant, { method, path, ...call, parts })).rejects.toMatchObject(ENDED);
  expect(await tenant.getItem({ userId: 'ann', namespace: 'of', key: 'k' })).toMatchObject({ value: 1 });
});
