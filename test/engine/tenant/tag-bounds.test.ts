import { expect, test } from 'vitest';
import { EngineError } from '../../../src/engine/errors.ts';
import { boundTenant } from '../../../src/engine/tenant/bound-tenant.ts';
import { TAG_BOUNDS } from '../../conformance/tag-bounds.ts';
import { newMemory, openTestEngine } from '../../support/engine-fixture.ts';

test.each(TAG_BOUNDS)('a key that is bound to tags is not told of %s', async (_, check) => {
  await using fixture = await openTestEngine();
  await check(fixture);
});

test('an add of a bound key that names no other memory waits for no read', async () => {
  await using fixture = await openTestEngine();
  const listPresent = () => Promise.reject(new EngineError('unavailable', 'too many queries wait'));
  const bound = boundTenant({ ...fixture.tenant, listPresent }, { tags: ['work'] });
  const { outcomes } = await bound.addMemories([newMemory({ content: 'The harbour.' })]);
  expect(outcomes).toMatchObject([{ kind: 'accepted' }]);
});
