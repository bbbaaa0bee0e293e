import { expect, test } from 'vitest';
import { listGatherable } from '../../../src/engine/store/gatherable.ts';
import { startOfUser, type RunPlace } from '../../../src/engine/store/consolidations.ts';
import { newMemory, openTestEngine } from '../../support/engine-fixture.ts';

test('memories with much metadata are gathered in pages of a megabyte, each memory once', async () => {
  await using fixture = await openTestEngine();
  const { tenant, store } = fixture;
  const note = (no: number) => ({ a: 'x'.repeat(12_000), no });
  const memories = Array.from({ length: 200 }, (_, no) =>
    newMemory({ content: `The ferry ${no} leaves.`, userId: 'ana', metadata: note(no) }),
  );
  await tenant.addMemories(memories);
  const userNo = fixture.get<number>(`SELECT user_no FROM users WHERE user_id = 'ana'`);
  const pages: number[][] = [];
  for (let place: RunPlace | null = startOfUser(userNo); place !== null;) {
    const slice = listGatherable(store, place, { looked: 1_000, again: false });
    pages.push(slice.memories.map(({ memoryNo }) => memoryNo));
    expect(new Set(slice.memories.map(({ key }) => key)).size).toBe(slice.memories.length);
    place = slice.next;
  }
  expect(pages.map(({ length }) => length)).toEqual([88, 88, 24]);
  expect(pages.flat()).toEqual(fixture.all<{ no: number }>('SELECT seq AS no FROM memories').map(({ no }) => no));
});
