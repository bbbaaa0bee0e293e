import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  DAY_MS,
  decayed,
  decayLambdaOf,
  initialSalience,
  sectorBits,
  sectorsFromBits,
  STRENGTH_LAMBDA,
} from '../../src/engine/dynamics.ts';
import { SECTORS } from '../../src/engine/types.ts';

const unit = fc.double({ min: 0, max: 1, noNaN: true });
const lambda = fc.double({ min: 0, max: 10, noNaN: true });
const moment = fc.integer({ min: 0, max: 4_000_000_000_000 });

describe('decayed', () => {
  test.each([
    ['episodic', 0.015, 0.6376],
    ['semantic', 0.005, 0.8607],
    ['procedural', 0.008, 0.7866],
    ['emotional', 0.02, 0.5488],
    ['reflective', 0.001, 0.9704],
  ] as const)('%s memories keep e^(-%f · 30) of their salience for 30 days', (sector, perDay, kept) => {
    expect(decayLambdaOf(sector, undefined)).toBe(perDay);
    expect(decayed({ value: 1, at: 0 }, perDay, 30 * DAY_MS)).toBeCloseTo(kept, 4);
    expect(decayed({ value: 0.5, at: 0 }, perDay, 30 * DAY_MS)).toBeCloseTo(kept / 2, 4);
  });

  test('strength halves in 69 days', () => {
    expect(decayed({ value: 1, at: 0 }, STRENGTH_LAMBDA, (Math.LN2 / 0.01) * DAY_MS)).toBeCloseTo(0.5, 10);
  });

  test('composes: what a moment between is read as does not change what follows', () =>
    fc.assert(
      fc.property(unit, lambda, moment, moment, moment, (value, perDay, a, b, c) => {
        const [at, between, now] = [a, b, c].sort((x, y) => x - y) as [number, number, number];
        const direct = decayed({ value, at }, perDay, now);
        const inSteps = decayed({ value: decayed({ value, at }, perDay, between), at: between }, perDay, now);
        expect(inSteps).toBeCloseTo(direct, 12);
      }),
    ));

  test('stays in 0..1, never rises with time, and a clock that stepped back counts as no time', () =>
    fc.assert(
      fc.property(unit, lambda, moment, moment, moment, (value, perDay, at, a, b) => {
        const [earlier, later] = [
          decayed({ value, at }, perDay, Math.min(a, b)),
          decayed({ value, at }, perDay, Math.max(a, b)),
        ];
        expect(later).toBeLessThanOrEqual(earlier);
        expect(later).toBeGreaterThanOrEqual(0);
        expect(earlier).toBeLessThanOrEqual(value);
        expect(decayed({ value, at }, perDay, at - 1 - a)).toBe(value);
      }),
    ));
});

test('a new memory starts at 0.4 and 0.1 for each additional sector, unless an importance is stated', () => {
  expect([0, 1, 2, 3, 4].map((additional) => initialSalience(null, additional))).toEqual([
    0.4,
    0.5,
    expect.closeTo(0.6),
    expect.closeTo(0.7),
    0.8,
  ]);
  expect(initialSalience(0.9, 3)).toBe(0.9);
  expect(initialSalience(0, 3)).toBe(0);
});

test('a setting replaces the decay of every sector, zero included', () => {
  for (const sector of SECTORS) {
    expect(decayLambdaOf(sector, 0.5)).toBe(0.5);
    expect(decayLambdaOf(sector, 0)).toBe(0);
  }
});

test('sectors survive the way through their bits, the primary one first', () =>
  fc.assert(
    fc.property(fc.subarray([...SECTORS], { minLength: 1 }), fc.nat(), (sectors, pick) => {
      const primary = sectors[pick % sectors.length]!;
      const back = sectorsFromBits(sectorBits(sectors), primary);
      expect(back[0]).toBe(primary);
      expect(back.slice(1)).toEqual(SECTORS.filter((sector) => sector !== primary && sectors.includes(sector)));
    }),
  ));
