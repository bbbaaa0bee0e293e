import { test } from 'vitest';
import { leastSalience } from '../../conformance/least-salience.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

test('the least saliences and rates of decay fade to 0, or not at all', async () => {
  await using fixture = await openTestEngine();
  await leastSalience(fixture);
});
