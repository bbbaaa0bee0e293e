/** Callers who do not reach the whole tenant are told no numbers of it, also where a part of their add was stored. */
import { expect, test } from 'vitest';
import { addOnlyTenant } from '../../../src/engine/tenant/add-only-tenant.ts';
import { boundTenant } from '../../../src/engine/tenant/bound-tenant.ts';
import { newMemory, openTestEngine } from '../../support/engine-fixture.ts';

const words = (from: number) => Array.from({ length: 9_000 }, (_, no) => `word${from + no}`).join(' ');

test('an add whose rest has no room names the quota to a bound key without numbers', async () => {
  await using fixture = await openTestEngine({ settings: { OM_TENANT_MAX_MB: '2' } });
  const messages = async (tenant: typeof fixture.tenant, first: number) => {
    const items = Array.from({ length: 12 }, (_, no) =>
      newMemory({ content: words(10_000 * (first + no)), userId: 'ana' }),
    );
    const { outcomes } = await tenant.addMemories(items);
    return [
      outcomes[0]!.kind,
      outcomes.flatMap((outcome) => (outcome.kind === 'rejected' ? [outcome.error.message] : [])),
    ];
  };
  const [kind, refused] = await messages(boundTenant(fixture.tenant, { userId: 'ana', tags: [] }), 0);
  expect(kind).toBe('accepted');
  expect(new Set(refused)).toEqual(
    new Set(['quota max_mb (OM_TENANT_MAX_MB): the tenant has no room for this; deletes still work']),
  );
  await expect(messages(addOnlyTenant(fixture.tenant, 'writer'), 20)).rejects.toThrow(/^[^\d]*$/);
});
