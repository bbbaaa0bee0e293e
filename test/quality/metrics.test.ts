import { expect, test } from 'vitest';
import {
  averagePrecisionAt,
  discountedGainAt,
  mean,
  precision,
  recallAt,
  reciprocalRank,
} from '../../bench/metrics.ts';

/** Worked by hand: b and d are relevant and found at places 2 and 4, e is relevant and not found. */
const FOUND = ['a', 'b', 'c', 'd'];
const RELEVANT = new Set(['b', 'd', 'e']);

test('recall is the share of the relevant among the first k', () => {
  expect([1, 2, 4, 100].map((k) => recallAt(k, FOUND, RELEVANT))).toEqual([0, 1 / 3, 2 / 3, 2 / 3]);
});

test('reciprocal rank looks at the first relevant one, and is 0 without any', () => {
  expect(reciprocalRank(FOUND, RELEVANT)).toBe(1 / 2);
  expect(reciprocalRank(['a', 'c'], RELEVANT)).toBe(0);
});

test('discounted gain is 1 for the best order and falls with the places', () => {
  expect(discountedGainAt(10, ['b', 'd', 'e', 'a'], RELEVANT)).toBe(1);
  const ideal = 1 + 1 / Math.log2(3) + 1 / 2;
  expect(discountedGainAt(10, FOUND, RELEVANT)).toBeCloseTo((1 / Math.log2(3) + 1 / Math.log2(5)) / ideal, 12);
  // With fewer places than relevant memories the best order fills the places.
  expect(discountedGainAt(1, ['b', 'a'], RELEVANT)).toBe(1);
});

test('average precision counts what was not found as 0', () => {
  expect(averagePrecisionAt(100, FOUND, RELEVANT)).toBeCloseTo((1 / 2 + 2 / 4) / 3, 12);
  expect(averagePrecisionAt(3, FOUND, RELEVANT)).toBeCloseTo(1 / 2 / 3, 12);
});

test('precision and mean say nothing about nothing', () => {
  expect(precision(FOUND, RELEVANT)).toBe(1 / 2);
  expect([precision([], RELEVANT), mean([])]).toEqual([NaN, NaN]);
});
