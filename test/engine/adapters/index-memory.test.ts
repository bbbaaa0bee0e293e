import { expect, test } from 'vitest';
import { createIndexMemory } from '../../../src/engine/adapters/following-index/index-memory.ts';

test('of several indexes those asked longest ago give their memory back when it is short', () => {
  const dropped: number[] = [];
  const memory = createIndexMemory(100);
  const holders = [0, 1, 2].map((number) => ({ drop: () => void dropped.push(number) }));
  memory.use(holders[0]!, 40);
  memory.use(holders[1]!, 40);
  memory.use(holders[0]!, 50);
  expect(dropped).toEqual([]);
  memory.use(holders[2]!, 30);
  expect(dropped).toEqual([1]);
  memory.release(holders[0]!);
  // Alone above the bound, but in use.
  memory.use(holders[2]!, 130);
  expect(dropped).toEqual([1]);
  memory.use(holders[0]!, 10);
  expect(dropped).toEqual([1, 2]);
});
