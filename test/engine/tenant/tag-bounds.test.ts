import { test } from 'vitest';
import { TAG_BOUNDS } from '../../conformance/tag-bounds.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

test.each(TAG_BOUNDS)('a key that is bound to tags is not told of %s', async (_, check) => {
  await using fixture = await openTestEngine();
  await check(fixture);
});
