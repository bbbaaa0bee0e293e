/** Receipts of deletes of documents name what these deletes have erased, and nothing else. */
import { expect, test } from 'vitest';
import { goesOnAfterBreak, leavesToOthers } from '../../conformance/erasing-documents.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

test.each([
  ['others leave a document alone that a delete is erasing', leavesToOthers],
  ['the upkeep erases a document whose delete broke off, and adds it to the receipt', goesOnAfterBreak],
])('%s', async (_, check) => {
  await using fixture = await openTestEngine();
  expect.hasAssertions();
  await check(fixture);
});
