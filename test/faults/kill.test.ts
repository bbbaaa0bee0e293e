import { test } from 'vitest';
import { chooseSeed } from '../support/add-checker.ts';
import { addUnderKills } from '../support/kill-loop.ts';

test('50 kills during 5,000 adds lose and double nothing', async () => {
  await addUnderKills({ seed: chooseSeed(), kills: 50, adds: 5_000, concurrency: 16 });
});
