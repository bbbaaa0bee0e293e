import { expect, test } from 'vitest';
import { fuseMembers } from '../../../src/engine/retrieve/fuse-members.ts';

const hit = (name: string, score: number) => ({ name, score });
const namesOf = (hits: readonly { readonly name: string }[]) => hits.map(({ name }) => name).join(' ');

test('the better score comes first, whichever store it is from', () => {
  const answers = [[hit('a1', 0.9), hit('a2', 0.4)], [], [hit('b1', 0.7), hit('b2', 0.6), hit('b3', 0.3)]];
  expect(namesOf(fuseMembers(answers, 10))).toBe('a1 b1 b2 a2 b3');
  expect(namesOf(fuseMembers(answers, 2))).toBe('a1 b1');
  expect(fuseMembers([], 5)).toEqual([]);
});

test('of equal scores the better place comes first, then the store that was named first', () => {
  const answers = [[hit('a1', 0.5), hit('a2', 0.5)], [hit('b1', 0.5)]];
  expect(namesOf(fuseMembers(answers, 10))).toBe('a1 b1 a2');
});

test('the order of each store is kept, even where a later hit has a higher score', () => {
  const answers = [[hit('a1', 0.5), hit('a2', 0.8)], [hit('b1', 0.6)]];
  expect(namesOf(fuseMembers(answers, 10))).toBe('b1 a1 a2');
});
