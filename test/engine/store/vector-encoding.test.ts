import Database from 'better-sqlite3';
import fc from 'fast-check';
import * as sqliteVec from 'sqlite-vec';
import { expect, test } from 'vitest';
import { isEngineError } from '../../../src/engine/errors.ts';
import {
  assertValidVector,
  cosine,
  decodeVector,
  encodedLength,
  encodeVector,
  meanVector,
  signBits,
} from '../../../src/engine/store/vector-encoding.ts';

const DIMENSIONS = 64;
const component = fc.float({ min: -8, max: 8, noNaN: true });
const vectors = fc
  .array(component, { minLength: DIMENSIONS, maxLength: DIMENSIONS })
  .map((components) => Float32Array.from(components))
  .filter((vector) => vector.some((value) => value !== 0));

test('float32 comes back bit for bit, from any offset', () => {
  fc.assert(
    fc.property(vectors, fc.nat(7), (vector, offset) => {
      const blob = encodeVector(vector, 'float32');
      const shifted = Buffer.alloc(blob.length + offset);
      shifted.set(blob, offset);
      expect(decodeVector(shifted.subarray(offset), 'float32', DIMENSIONS)).toEqual(vector);
    }),
  );
});

test('float32 is little-endian', () => {
  expect([...encodeVector(Float32Array.of(1), 'float32')]).toEqual([0, 0, 0x80, 0x3f]);
});

test('int8 keeps the direction, whatever the length of the vector', () => {
  fc.assert(
    fc.property(vectors, fc.float({ min: Math.fround(0.001), max: 1000, noNaN: true }), (vector, factor) => {
      const scaled = vector.map((value) => value * factor);
      if (!scaled.some((value) => value !== 0)) return;
      const decoded = decodeVector(encodeVector(scaled, 'int8'), 'int8', DIMENSIONS);
      // Worst case: one large component and 63 that lie half a step from what is stored.
      expect(cosine(decoded, scaled)).toBeGreaterThan(0.998);
      expect(Math.max(...decoded.map(Math.abs))).toBe(127);
    }),
  );
});

test('encoded vectors have the length that is announced', () => {
  for (const encoding of ['int8', 'float32'] as const) {
    expect(encodeVector(new Float32Array(DIMENSIONS).fill(1), encoding)).toHaveLength(
      encodedLength(encoding, DIMENSIONS),
    );
  }
});

test('sign bits are those of sqlite-vec, zero included', () => {
  const db = new Database(':memory:');
  sqliteVec.load(db);
  const quantize = db.prepare<[Buffer], Buffer>('SELECT vec_quantize_binary(?)').pluck();
  fc.assert(
    fc.property(
      fc.array(fc.oneof(component, fc.constant(0), fc.constant(-0)), { minLength: 16, maxLength: 16 }),
      (components) => {
        const vector = Float32Array.from(components);
        const expected = quantize.get(Buffer.from(vector.buffer));
        expect([...signBits(vector)]).toEqual([...expected!]);
      },
    ),
  );
  db.close();
});

test('sign bits put dimension 0 into the lowest bit of the first byte', () => {
  const vector = new Float32Array(16).fill(-1);
  vector[0] = 1;
  vector[10] = 1;
  expect([...signBits(vector)]).toEqual([0b0000_0001, 0b0000_0100]);
});

test.each([
  ['a wrong length', new Float32Array(DIMENSIONS - 1).fill(1)],
  ['NaN', new Float32Array(DIMENSIONS).fill(1).fill(NaN, 3, 4)],
  ['infinity', new Float32Array(DIMENSIONS).fill(1).fill(-Infinity, 63)],
  ['zeros', new Float32Array(DIMENSIONS)],
])('refuses %s', (_, vector) => {
  expect(() => assertValidVector(vector, DIMENSIONS)).toThrow(expect.objectContaining({ code: 'internal' }));
});

test('encoding refuses what would poison a search', () => {
  for (const encoding of ['int8', 'float32'] as const) {
    expect(() => encodeVector(new Float32Array(8), encoding)).toThrow(expect.objectContaining({ code: 'internal' }));
    expect(() => encodeVector(Float32Array.of(NaN, 1), encoding)).toThrow(
      expect.objectContaining({ code: 'internal' }),
    );
  }
});

test('decoding refuses a blob of another size', () => {
  const blob = encodeVector(new Float32Array(DIMENSIONS).fill(1), 'int8');
  const decode = () => decodeVector(blob, 'float32', DIMENSIONS);
  expect(decode).toThrow();
  try {
    decode();
  } catch (error) {
    expect(isEngineError(error, 'internal')).toBe(true);
  }
});

test('cosine is symmetric, bounded, and 1 with itself', () => {
  fc.assert(
    fc.property(vectors, vectors, (a, b) => {
      const value = cosine(a, b);
      expect(value).toBeGreaterThanOrEqual(-1);
      expect(value).toBeLessThanOrEqual(1);
      expect(cosine(b, a)).toBe(value);
      expect(cosine(a, a)).toBeCloseTo(1, 5);
    }),
  );
  expect(cosine(Float32Array.of(1, 0), Float32Array.of(0, 0))).toBe(0);
});

test('the mean is normalised, knows no order, and weighs directions, not lengths', () => {
  fc.assert(
    fc.property(fc.array(vectors, { minLength: 1, maxLength: 5 }), (several) => {
      const mean = meanVector(several);
      expect(Math.hypot(...mean)).toBeCloseTo(1, 4);
    }),
  );
  const mean = meanVector([Float32Array.of(100, 0), Float32Array.of(0, 1)]);
  expect([...mean]).toEqual([Math.fround(Math.SQRT1_2), Math.fround(Math.SQRT1_2)]);
  expect(meanVector([Float32Array.of(0, 1), Float32Array.of(100, 0)])).toEqual(mean);
  expect(meanVector([Float32Array.of(2, 0)])).toEqual(Float32Array.of(1, 0));
});

test('vectors that cancel out are represented by the first', () => {
  expect(meanVector([Float32Array.of(3, 4), Float32Array.of(-3, -4)])).toEqual(Float32Array.of(0.6, 0.8));
});
