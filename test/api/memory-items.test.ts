import { expect, test } from 'vitest';
import { memoryItem, memoryItems } from '../../src/api/wire/memories.ts';
import type { Memory } from '../../src/engine/types.ts';

test('a long list of items lets other requests in, and keeps its order', async () => {
  const sentence = 'Ada Lovelace met Charles Babbage in London and wrote about the Analytical Engine. ';
  const memories = Array.from(
    { length: 500 },
    (_, no) =>
      ({ id: String(no), content: sentence.repeat(50), title: '', gist: '', entities: [] }) as unknown as Memory,
  );
  let turns = 0;
  let isDone = false;
  const count = () => {
    turns += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const items = await memoryItems(memories);
  isDone = true;
  expect(turns).toBeGreaterThan(0);
  expect(items).toEqual(memories.map(memoryItem));
});
