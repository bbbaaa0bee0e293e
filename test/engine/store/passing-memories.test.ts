import { expect, onTestFinished, test } from 'vitest';
import { compileFilter } from '../../../src/engine/store/filter.ts';
import { firstPassingWithin } from '../../../src/engine/store/passing-memories.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

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

test('a page of a list ends with its signal', async () => {
  const { fixture } = await filled();
  onTestFinished(() => fixture.close());
  const gone = AbortSignal.abort(new Error('the client has left'));
  await expect(fixture.tenant.pageMemories({}, { limit: 10 }, gone)).rejects.toThrow('the client has left');
  await expect(fixture.tenant.streamItems({ userId: '', namespace: '' }, { limit: 10 }, gone)).rejects.toThrow('left');
});
