/** One commit does a bounded amount of work, since the writes of all tenants wait for it. */
import { expect, test } from 'vitest';
import {
  archivesFew,
  importsByWork,
  passesNoHidden,
  purgesFewReceipts,
  walksFewChains,
} from '../../conformance/bounded-work.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

test.each([
  ['a link between long chains', walksFewChains],
  ['a new text of a memory on which long reflections rest', archivesFew],
  ['the removal of old receipts of deletes', purgesFewReceipts],
  ['the expiry of many documents', passesNoHidden],
  ['an import of lines with long labels', importsByWork],
])('%s goes on in another commit after a bounded amount of work', async (_, check) => {
  await using fixture = await openTestEngine();
  expect.hasAssertions();
  await check(fixture);
});
