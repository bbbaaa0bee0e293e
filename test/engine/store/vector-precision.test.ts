import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createShapedVectors } from '../../../bench/shaped-vectors.ts';
import { VECTOR_PRECISIONS } from '../../../src/engine/ports.ts';
import {
  compareParts,
  cosine,
  decodeVector,
  encodedLength,
  encodeVector,
  signBits,
} from '../../../src/engine/store/vector-encoding.ts';

const DIMENSIONS = 64;
const component = fc.float({ min: -8, max: 8, noNaN: true });
const vectors = fc
  .array(component, { minLength: DIMENSIONS, maxLength: DIMENSIONS })
  .map((components) => Float32Array.from(components))
  .filter((vector) => vector.some((value) => Math.abs(value) > 1e-20));
/** A few components that are up to 1,000 times as large as the others. */
const anisotropic = fc
  .tuple(vectors, fc.array(fc.tuple(fc.nat(DIMENSIONS - 1), fc.integer({ min: -8_000, max: 8_000 })), { maxLength: 8 }))
  .map(([vector, strong]) => {
    for (const [place, value] of strong) vector[place] = value || 1;
    return vector;
  });

describe.each(['int8', 'float16'] as const)('%s', (precision) => {
  const stored = (vector: Float32Array) => encodeVector(vector, precision);
  const decoded = (vector: Float32Array) => decodeVector(stored(vector), precision, vector.length);

  test('keeps the direction, whatever the length of the vector', () => {
    // In int8 a component is off by half a step, of which the largest one-byte component has 127.5. Here 8 are strong.
    const bound = precision === 'int8' ? 1 - (DIMENSIONS * 0.5 ** 2) / 127.5 ** 2 : 1 - 1e-6;
    fc.assert(
      fc.property(anisotropic, fc.float({ min: Math.fround(1e-3), max: 1e6, noNaN: true }), (vector, factor) => {
        const scaled = vector.map((value) => value * factor);
        expect(cosine(decoded(scaled), vector)).toBeGreaterThan(bound);
      }),
    );
  });

  test('keeps the cosine of two vectors', () => {
    fc.assert(
      fc.property(anisotropic, anisotropic, (one, other) => {
        const bound = precision === 'int8' ? 0.05 : 1e-3;
        expect(Math.abs(cosine(one, decoded(other)) - cosine(one, other))).toBeLessThan(bound);
      }),
    );
  });

  // In float16 a component that is 2 ** 28 times as small as the largest loses bits, and one of 2 ** 40 is zero.
  const without = anisotropic
    .map((vector) => vector.map((value) => (Math.abs(value) < 1e-4 ? 0 : value)))
    .filter((vector) => vector.some((value) => value !== 0));

  test('keeps every sign, so that the sign bits of what is stored are those of the vector', () => {
    fc.assert(
      fc.property(without, (vector) => {
        expect([...signBits(decoded(vector))]).toEqual([...signBits(vector)]);
      }),
    );
  });

  test('stores what it decoded as it was stored, but for the length', () => {
    const inUnits = (vector: Float32Array) => vector.map((value) => value / Math.max(...vector.map(Math.abs)));
    fc.assert(
      fc.property(without, (vector) => {
        const once = decoded(vector);
        expect(inUnits(decoded(once))).toEqual(inUnits(once));
      }),
    );
  });
});

test('in int8 no component is off by more than half a step, however strong a few are', () => {
  fc.assert(
    fc.property(vectors, (vector) => {
      const strong = vector.map((value, place) => (place < 8 ? 8_000 * (place % 2 === 0 ? 1 : -1) : value));
      const [largest] = vector.subarray(8).map(Math.abs).sort().subarray(-1);
      const step = Math.max(largest! / 127.5, 8_000 / 32_639.5);
      const stored = decodeVector(encodeVector(strong, 'int8'), 'int8', DIMENSIONS);
      for (const [place, value] of strong.entries()) {
        expect(Math.abs((stored[place]! / 2) * step - value)).toBeLessThan(0.501 * step);
      }
    }),
  );
});

test('float16 rounds as IEEE 754 does', () => {
  // 1 + 2 ** -11 lies between two, and the even one is 1; 1 + 3 * 2 ** -11 goes up.
  const vector = Float32Array.of(
    1,
    1 + 2 ** -11,
    1 + 3 * 2 ** -11,
    -(1 + 2 ** -10),
    2 ** -20,
    0,
    -(2 ** -38),
    2 ** -42,
  );
  const stored = decodeVector(encodeVector(vector, 'float16'), 'float16', vector.length);
  const scale = stored[0]!;
  expect([...stored].map((value) => value / scale)).toEqual([
    1,
    1,
    1 + 2 ** -9,
    -(1 + 2 ** -10),
    2 ** -20,
    0,
    -(2 ** -38),
    0,
  ]);
});

test.each(VECTOR_PRECISIONS)('a query is compared with vectors in %s as with what they decode to', (precision) => {
  fc.assert(
    fc.property(anisotropic, fc.array(anisotropic, { minLength: 1, maxLength: 4 }), fc.nat(7), (query, others, gap) => {
      const stored = others.map((vector) => encodeVector(vector, precision));
      const bytes = Buffer.concat([Buffer.alloc(gap), ...stored]);
      const cosineOf = compareParts(query);
      for (const [place, blob] of stored.entries()) {
        const expected = cosine(query, decodeVector(blob, precision, DIMENSIONS));
        const found = cosineOf(bytes, gap + place * encodedLength(precision, DIMENSIONS), precision);
        expect(found).toBeCloseTo(expected, 10);
        expect(Math.abs(found)).toBeLessThanOrEqual(1);
      }
    }),
  );
});

test('precisions take as many bytes as they say, also at few dimensions', () => {
  for (const dimensions of [8, 64, 768, 1_536, 4_096]) {
    const vector = Float32Array.from({ length: dimensions }, (_, place) => Math.cos(place));
    for (const precision of VECTOR_PRECISIONS) {
      const length = encodedLength(precision, dimensions);
      expect(encodeVector(vector, precision)).toHaveLength(length);
      expect(decodeVector(encodeVector(vector, precision), precision, dimensions)).toHaveLength(dimensions);
    }
  }
  expect(encodedLength('int8', 1_536)).toBe(1_536 + 3 * 24);
});

test.each([
  [384, 3, 20],
  [1_536, 8, 20],
  [768, 5, 5],
])('of %i dimensions, %i of them %i times as strong, the ten nearest stay', (dimensions, strong, times) => {
  const next = createShapedVectors({ dimensions, strong, times, topics: 40 }, dimensions);
  const all = Array.from({ length: 1_500 }, next);
  const questions = Array.from({ length: 40 }, next);
  for (const [precision, recall, off] of [
    ['int8', 0.99, 0.002],
    ['float16', 0.995, 0.0005],
  ] as const) {
    const stored = all.map((vector) => encodeVector(vector, precision));
    let found = 0;
    let worst = 0;
    for (const question of questions) {
      const exact = all.map((vector) => cosine(question, vector));
      const compare = compareParts(question);
      const near = stored.map((bytes) => compare(bytes, 0, precision));
      const wanted = new Set(tenBest(exact));
      found += tenBest(near).filter((place) => wanted.has(place)).length;
      worst = Math.max(worst, ...near.map((similarity, place) => Math.abs(similarity - exact[place]!)));
    }
    expect(found / (10 * questions.length), precision).toBeGreaterThanOrEqual(recall);
    expect(worst, precision).toBeLessThan(off);
  }
});

function tenBest(similarities: readonly number[]): number[] {
  return [...similarities.keys()].sort((a, b) => similarities[b]! - similarities[a]! || a - b).slice(0, 10);
}
