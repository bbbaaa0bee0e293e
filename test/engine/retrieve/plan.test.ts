import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { describePlan, NARROW_SCOPE, planQuery } from '../../../src/engine/retrieve/plan.ts';
import { createWorkBudget, ROW_BYTES, runWithin } from '../../../src/engine/store/work-budget.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import type { MemoryQuery } from '../../../src/engine/types.ts';
import { openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

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

describe('the plan', () => {
  const NOW = Date.UTC(2025, 0, 1);
  const LARGE = NARROW_SCOPE + 500;
  let store: Store;
  beforeAll(async () => {
    store = openStore(path.join(tempFolder(), 'plan.sqlite'), { role: 'worker', create: true });
    const memories = Array.from({ length: LARGE }, (_, number) => ({
      content: `entry ${number}`,
      userId: 'ann',
      tags: number % 100 === 0 ? ['rare'] : ['common'],
    }));
    await seedMemories(store, [...memories, { content: 'one of few', userId: 'bob' }], NOW);
    return () => store.close();
  });
  const plan = (query: Partial<MemoryQuery>) => planQuery(store, { query: 'q', k: 10, filter: {}, ...query }, NOW);

  test.each<[string, MemoryQuery['filter'], string]>([
    // what, filter, plan
    ['a small user among large ones', { userIds: ['bob'] }, 'exact over 1'],
    ['a filter that leaves little', { tags: ['rare'] }, 'exact over 25'],
    ['a user nobody knows', { userIds: ['eve'] }, 'exact over 0'],
    ['a filter that leaves much', { tags: ['common'] }, 'index, dilution 1.0'],
    ['one who has nearly everything', { userIds: ['ann'] }, 'index, dilution 1.0'],
    ['nothing asked for', {}, 'index, dilution 1.0'],
  ])('of %s', (_, filter, expected) => {
    expect(describePlan(plan({ filter }))).toBe(`1 terms; ${expected}; all sectors`);
  });

  test('lists a scope only where that leaves most of the work to the search', () => {
    const within = (bytes: number) => {
      const budget = createWorkBudget({ bytes, deadlineMs: 1_000_000 });
      const { scope } = runWithin(budget, () => plan({ filter: { tags: ['rare'] } }));
      return { kind: scope.kind, end: budget.end };
    };
    expect(within(10 * ROW_BYTES * LARGE)).toEqual({ kind: 'narrow', end: null });
    expect(within(ROW_BYTES * LARGE)).toEqual({ kind: 'wide', end: null });
  });

  test('names the index’s user only where the file has others', () => {
    expect(plan({ filter: { userIds: ['ann'] } }).scope).toMatchObject({ kind: 'wide', userNo: expect.any(Number) });
    expect(plan({}).scope).toMatchObject({ kind: 'wide', userNo: undefined });
  });

  test.each<[string, readonly string[] | null, string]>([
    // query, sectors, why
    ['How do I install the printer driver, step by step?', ['procedural'], 'it asks for steps'],
    ['I feel so sad and lonely, and I hate it', ['emotional'], 'it speaks of feelings'],
    ['printer driver', null, 'it could be anything'],
    ['', null, 'it is nothing'],
  ])('asks for sectors where the query is sure of them: %s', (query, sectors) => {
    expect(plan({ query, denseSectors: 'candidate' }).denseSectors).toEqual(sectors);
    expect(plan({ query, denseSectors: 'all' }).denseSectors).toBeNull();
  });

  test('says which sectors it searches', () => {
    const query = 'How do I install the printer driver, step by step?';
    expect(describePlan(plan({ query, denseSectors: 'candidate' }))).toMatch(/; procedural$/);
  });

  test('takes each term once, and a phrase as one', () => {
    const { terms } = plan({ query: 'tea "green tea" TEA NEAR(a b)* tea_pot' });
    expect(terms).toEqual([
      { text: 'green tea', words: 'green tea' },
      { text: 'tea', words: 'tea' },
      { text: 'near', words: 'near' },
      { text: 'b', words: 'b' },
      { text: 'pot', words: 'pot' },
      { text: 'tea_pot', words: 'teapotǀ' },
    ]);
  });

  test('shows each term as a person writes it', () => {
    const shown = plan({ query: 'Zulu3 userName 2.6 C++ 😀' }).terms.map(({ text }) => text);
    expect(shown.join(' ')).not.toMatch(/[ǀǁǂǃ]/);
    expect(shown).toEqual(expect.arrayContaining(['zulu3', 'username', '2.6', 'C++', '😀']));
  });
});
