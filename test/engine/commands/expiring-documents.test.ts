/** A document lives until the last of its versions expires, and what has expired is found by nobody. */
import { expect, test } from 'vitest';
import { EXPIRING_CHECKS, EXPIRING_SETTINGS } from '../../conformance/expiring-documents.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

test.each(EXPIRING_CHECKS)('%s', async (_, check) => {
  await using fixture = await openTestEngine({ settings: EXPIRING_SETTINGS });
  expect.hasAssertions();
  await check(fixture);
});
