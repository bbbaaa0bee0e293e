import { describe, expect, test } from 'vitest';
import {
  averagePrecisionAt,
  discountedGainAt,
  mean,
  pairedDifference,
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

describe('a paired difference', () => {
  const pairs = (better: number, worse: number, equal: number) => {
    const ours = [...Array<number>(better).fill(1), ...Array<number>(worse).fill(0), ...Array<number>(equal).fill(1)];
    const theirs = [...Array<number>(better).fill(0), ...Array<number>(worse).fill(1), ...Array<number>(equal).fill(1)];
    return pairedDifference(ours, theirs);
  };

  test('is as probable by chance as the exact sign test says', () => {
    // Of 2^5 equally likely splits, 1 + 5 have at most one pair on this side, and as many on the other.
    expect(pairs(1, 4, 20).chance).toBeCloseTo((2 * 6) / 32, 12);
    expect(pairs(0, 8, 0).chance).toBeCloseTo(2 / 256, 12);
    expect([pairs(3, 3, 4).chance, pairs(0, 0, 9).chance]).toEqual([1, 1]);
  });

  test('lies within its interval, which a larger sample narrows, and is the same each time', () => {
    const [small, large] = [pairs(6, 4, 10), pairs(600, 400, 1000)];
    expect([small.mean, large.mean]).toEqual([0.1, 0.1]);
    // 1.96 standard errors of the mean.
    expect(large.high - large.low).toBeCloseTo((2 * 1.96 * Math.sqrt(0.5 - 0.01)) / Math.sqrt(2000), 2);
    expect(small.low).toBeLessThan(large.low);
    expect(small.high).toBeGreaterThan(large.high);
    expect(pairs(6, 4, 10)).toEqual(small);
  });

  test('of equal systems is none', () => {
    expect(pairs(0, 0, 40)).toEqual({ mean: 0, low: 0, high: 0, chance: 1 });
  });
});
