import { test } from 'vitest';
import { EXPIRED_NAMES } from '../../conformance/expired-names.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

test.each(EXPIRED_NAMES)('what has got the name of an expired memory %s', async (_, check) => {
  await using fixture = await openTestEngine();
  await check(fixture);
});
