import { test } from 'vitest';
import { CHANGED_LINKS } from '../../conformance/changed-links.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

test.each(CHANGED_LINKS)('%s', async (_, check) => {
  await using fixture = await openTestEngine();
  await check(fixture);
});
