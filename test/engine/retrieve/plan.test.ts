import { expect, test } from 'vitest';
import { openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';

const DEPARTMENTS = [
  'sales',
  'design',
  'support',
  'legal',
  'finance',
  'press',
  'travel',
  'kitchen',
  'garage',
  'archive',
];

test('what was deleted does not make the words of what is left seem rarer', async () => {
  await using used = await openTestEngine();
  await using fresh = await openTestEngine();
  for (let number = 0; number < 500; number += 1) {
    await used.add({ content: `draft ${number} of a plan`, userId: 'ann' });
  }
  await used.tenant.deleteMemories({ userIds: ['ann'] });

  const top = async ({ add, drain, tenant }: TestEngine) => {
    for (const department of DEPARTMENTS) await add({ content: `the ${department} team meets on Monday` });
    await add({ content: 'Ruth serviced the boiler in the cellar' });
    await drain();
    const { hits } = await tenant.query({ query: 'Who serviced the boiler?', k: 3, filter: {}, vectorWeight: 0 });
    return { content: hits[0]!.memory.content, score: hits[0]!.score };
  };
  expect(await top(used)).toEqual(await top(fresh));
});
