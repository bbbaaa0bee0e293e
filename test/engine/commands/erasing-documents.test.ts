/** Receipts of deletes of documents name what these deletes have erased, and nothing else. */
import { expect, test } from 'vitest';
import { ERASING_CHECKS } from '../../conformance/erasing-documents.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

test.each(ERASING_CHECKS)('%s', async (_, check) => {
  await using fixture = await openTestEngine();
  expect.hasAssertions();
  await check(fixture);
});
