import { test } from 'vitest';
import { derivedIsNoDuplicate } from '../../conformance/changed-links.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

test.each([['an add of the text of a derived memory is no duplicate of it', derivedIsNoDuplicate]])(
  '%s',
  async (_, check) => {
    await using fixture = await openTestEngine();
    await check(fixture);
  },
);
