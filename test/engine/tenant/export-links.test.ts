import { test } from 'vitest';
import { openTestEngine } from '../../support/engine-fixture.ts';
import { expectHubExported } from '../../support/export-hub.ts';

test('the links of a hub are exported in parts, and those of memories with few links together', async () => {
  await using fixture = await openTestEngine();
  await expectHubExported(fixture.tenant, fixture.store);
});
