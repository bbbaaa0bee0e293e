import { expect, onTestFinished, test } from 'vitest';
import { compileFilter } from '../../../src/engine/store/filter.ts';
import { firstPassingWithin } from '../../../src/engine/store/passing-memories.ts';
import type { Store } from '../../../src/engine/store/open-store.ts';
import { readTimeline } from '../../../src/engine/store/timeline.ts';
import { newMemory, openTestEngine } from '../../support/engine-fixture.ts';

const MEMORIES = 90;

async function filled() {
  const fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const inOrder: { readonly memoryNo: number }[] = [];
  for (let no = 0; no < MEMORIES; no += 1) {
    const { memoryNo } = await fixture.add({ content: `number ${no}`, metadata: { third: no % 3 === 0 } });
    inOrder.push({ memoryNo });
  }
  return { fixture, inOrder };
}

test('a list whose filter takes long is filtered from its beginning, piece by piece', async () => {
  const { fixture, inOrder } = await filled();
  onTestFinished(() => fixture.close());
  const filter = compileFilter({ metadata: { third: { $eq: true } } }, fixture.clock.now());
  const thirds = inOrder.filter((_, no) => no % 3 === 0);
  const look = (rest: typeof inOrder, limit: number, msPerLook: number) => {
    let now = 0;
    return firstPassingWithin(fixture.store, filter, rest, limit, () => (now += msPerLook));
  };
  expect(look(inOrder, 100, 0)).toEqual({ looked: inOrder, passing: thirds });
  expect(look(inOrder, 2, 0).passing).toEqual(thirds.slice(0, 2));
  expect(look([], 2, 1_000)).toEqual({ looked: [], passing: [] });
  // However long it takes, some of the list is looked at, and all of it in the end.
  const found: typeof inOrder = [];
  let looks = 0;
  for (let rest = inOrder; rest.length > 0; looks += 1) {
    const { looked, passing } = look(rest, 100, 1_000);
    expect(looked.length).toBeGreaterThan(0);
    found.push(...passing);
    rest = rest.slice(looked.length);
  }
  expect(looks).toBeGreaterThan(5);
  expect(found).toEqual(thirds);
});

test('no statement parses the metadata or tags of more than 200 memories of a list, or beside a memory', async () => {
  const { fixture, inOrder } = await filled();
  onTestFinished(() => fixture.close());
  const { store, clock, tenant } = fixture;
  const more = Array.from({ length: 500 }, (_, no) => newMemory({ content: `more ${no}`, tags: ['blue'] }));
  await tenant.addMemories(more);
  const lists: unknown[] = [];
  const spied: Store = {
    ...store,
    prepare(sql) {
      const statement = store.prepare(sql);
      if (!/(tags|metadata)_pass/.test(sql)) return statement;
      const noted = () => ({
        pluck: noted,
        all: (...given: never[]) => (lists.push(given[0]), statement.all(...given)),
      });
      return noted() as unknown as typeof statement;
    },
  };
  const many = Array.from({ length: 2_000 }, (_, no) => inOrder[no] ?? { memoryNo: 10_000 + no });
  const filter = compileFilter({ metadata: { third: { $eq: true } } }, clock.now());
  firstPassingWithin(spied, filter, many, many.length, () => 0);
  const id = fixture.get<string>('SELECT id FROM memories ORDER BY seq LIMIT 1');
  const around = { before: 5, after: 5, sameSession: false, tags: ['red'], now: clock.now() };
  expect(readTimeline(spied, id, around)).toMatchObject({ before: [], after: [] });
  const lengths = lists.map((list) => (JSON.parse(list as string) as unknown[]).length);
  expect(lengths.length).toBeGreaterThan(12);
  expect(Math.max(...lengths)).toBe(200);
});

test('a page of a list ends with its signal', async () => {
  const { fixture } = await filled();
  onTestFinished(() => fixture.close());
  const gone = AbortSignal.abort(new Error('the client has left'));
  await expect(fixture.tenant.pageMemories({}, { limit: 10 }, gone)).rejects.toThrow('the client has left');
  await expect(fixture.tenant.streamItems({ userId: '', namespace: '' }, { limit: 10 }, gone)).rejects.toThrow('left');
});
