import { expect, test } from 'vitest';
import { listStandingQueries } from '../../../src/engine/store/standing.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

const ALL = { limit: 1_000, offset: 0 };

test('a page of standing queries is read in slices, and is the same where queries are deleted or added meanwhile', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const { store } = fixture.batch.open();
  const create = async (no: number, length = 0, userId?: string) =>
    (await tenant.createStandingQuery({ query: `query ${no} ${'x'.repeat(length)}`, filter: {}, given: {}, userId }))
      .id;
  const ids: string[] = [];
  for (let no = 0; no < 150; no += 1) ids.unshift(await create(no, 0, no % 3 === 0 ? 'ana' : undefined));
  const idsOf = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id);

  const page = await tenant.listStandingQueries({ limit: 130, offset: 5 });
  expect([idsOf(page.items), page.total]).toEqual([ids.slice(5, 135), 150]);
  expect(await tenant.listStandingQueries({ limit: 40, offset: 20, userId: 'ana' })).toMatchObject({ total: 50 });
  expect(idsOf((await tenant.listStandingQueries({ ...ALL, offset: 30, userId: 'ana' })).items)).toHaveLength(20);
  for (const limit of [0, 1, 64, 128, 150])
    expect(idsOf((await tenant.listStandingQueries({ limit, offset: 0 })).items)).toEqual(ids.slice(0, limit));

  const first = listStandingQueries(store, ALL);
  expect([first.items.length, first.total]).toEqual([64, 150]);
  await tenant.deleteStandingQuery(ids[3]!);
  await create(150);
  const second = listStandingQueries(store, { ...ALL, before: first.next! });
  expect(idsOf(second.items)).toEqual(ids.slice(64, 128));
  expect(listStandingQueries(store, { ...ALL, before: second.next! })).toMatchObject({ next: null });

  for (let no = 0; no < 40; no += 1) await create(no, 8_000);
  expect(listStandingQueries(store, ALL).items.length).toBeLessThan(20);
  expect(idsOf((await tenant.listStandingQueries(ALL)).items)).toHaveLength(190);
});
