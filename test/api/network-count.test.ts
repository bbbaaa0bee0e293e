import { expect, test } from 'vitest';
import { createNetworkCount } from '../../src/api/network-count.ts';

test('what is counted is bounded for each network and in all, until it is taken off', () => {
  const MIB = 1024 * 1024;
  const waiting = createNetworkCount({ ofNetwork: 64 * MIB, ofAll: 160 * MIB });
  expect([waiting.add('a', 64 * MIB), waiting.add('a', 1)]).toEqual([true, false]);
  expect([waiting.add('a', -1), waiting.add('b', 64 * MIB), waiting.add('c', 32 * MIB)]).toEqual([true, true, true]);
  expect(waiting.add('d', 1)).toBe(false);
  for (const [network, bytes] of [
    ['a', 64 * MIB],
    ['d', 1],
  ] as const)
    waiting.add(network, -bytes);
  expect(waiting.add('d', 64 * MIB)).toBe(true);
});
