import { test } from 'vitest';
import { chooseSeed } from '../support/add-checker.ts';
import { addUnderKills } from '../support/kill-loop.ts';

test('killed outright during adds, the service loses and doubles nothing and finishes everything', async () => {
  await addUnderKills({ seed: chooseSeed(), kills: 6, adds: 600, concurrency: 16 });
});
