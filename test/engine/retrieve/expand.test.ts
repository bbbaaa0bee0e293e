import { expect, test } from 'vitest';
import { spread } from '../../../src/engine/retrieve/expand.ts';

const step = (origin: number, reached: number, weight: number) => ({
  origin,
  reached,
  weight,
  type: 'waypoint' as const,
});

test('what arrives is source × weight × one half', () => {
  const arrivals = spread([{ seq: 1, activation: 0.8 }], [step(1, 2, 0.5)]);
  expect(arrivals.get(2)).toEqual({ seq: 2, activation: 0.2, from: 1, weight: 0.5 });
});

test('of several arrivals the strongest counts, not their sum', () => {
  const origins = [
    { seq: 1, activation: 1 },
    { seq: 2, activation: 0.9 },
  ];
  const arrivals = spread(origins, [step(1, 3, 0.4), step(2, 3, 0.6)]);
  expect(arrivals.get(3)).toMatchObject({ from: 2, activation: 0.27 });
});

test('a tie goes to the lower number, in whatever order the links come', () => {
  const origins = [1, 2].map((seq) => ({ seq, activation: 1 }));
  for (const steps of [
    [step(1, 3, 0.5), step(2, 3, 0.5)],
    [step(2, 3, 0.5), step(1, 3, 0.5)],
  ]) {
    expect(spread(origins, steps).get(3)!.from).toBe(1);
  }
});
