import { expect, test } from 'vitest';
import { conflict } from '../../src/engine/reasoning/conflict-forms.ts';
import { COMPATIBLE, CONFLICTING, type Pair } from './conflict-pairs.ts';
import { OWN_SET } from './own-set.ts';

const half = (pairs: readonly Pair[], parity: number) => pairs.filter((_, place) => place % 2 === parity);

test.each([
  ['that the rules were written on', 0, 34],
  ['that was set aside', 1, 31],
])('the half %s: what is found is right, and most is found', (_, parity, least) => {
  const found = (pairs: readonly Pair[]) => half(pairs, parity).filter(([a, b]) => conflict(a, b));
  expect(found(COMPATIBLE)).toEqual([]);
  expect(found(CONFLICTING).length).toBeGreaterThanOrEqual(least);
});

test('the order of the two makes no difference', () => {
  for (const [a, b] of [...CONFLICTING, ...COMPATIBLE]) expect([a, b, conflict(a, b)]).toEqual([a, b, conflict(b, a)]);
});

test('a time is compared by its meaning, however it is written', () => {
  const standup = (time: string) => `The weekly standup is at ${time}.`;
  const same = ['3 pm', '3pm', '3:00 pm', '15:00', '15.00', '3:00'];
  for (const a of same) for (const b of same) expect([a, b, conflict(standup(a), standup(b))]).toEqual([a, b, false]);
  for (const [a, b] of [
    ['3:30 am', '3:30 pm'],
    ['12 am', '12 pm'],
    ['9:30', '14:00'],
    ['09:00', '9 pm'],
    ['9:30', '9:45'],
  ] as const)
    expect([a, b, conflict(standup(a), standup(b))]).toEqual([a, b, true]);
  expect(conflict('The ticket costs 9.99.', 'The ticket costs 21.99.')).toBe(true);
});

test('no two memories of one user of the project’s own set are taken for a contradiction', () => {
  for (const { memories } of OWN_SET.users) {
    const texts = memories.map(({ content }) => content);
    const found = texts.flatMap((a, place) => texts.slice(place + 1).filter((b) => conflict(a, b)));
    expect(found).toEqual([]);
  }
});
