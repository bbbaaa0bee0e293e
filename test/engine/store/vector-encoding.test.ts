import Database from 'better-sqlite3';
import fc from 'fast-check';
import * as sqliteVec from 'sqlite-vec';
import { expect, test } from 'vitest';
import { isEngineError } from '../../../src/engine/errors.ts';
import {
  assertValidVector,
  compareInt5,
  compareStored,
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

test('int5 keeps the direction, whatever the length of the vector', () => {
  fc.assert(
    fc.property(vectors, fc.float({ min: Math.fround(0.001), max: 1000, noNaN: true }), (vector, factor) => {
      const scaled = vector.map((value) => value * factor);
      if (!scaled.some((value) => value !== 0)) return;
      const decoded = decodeVector(encodeVector(scaled, 'int5'), 'int5', DIMENSIONS);
      // Worst case: one large component and 63 that are zero, each of which is half a step from what is stored.
      expect(cosine(decoded, scaled)).toBeGreaterThan(31 / Math.hypot(31, Math.sqrt(63)) - 1e-6);
      expect(Math.max(...decoded.map(Math.abs))).toBe(31);
      const step = Math.max(...scaled.map(Math.abs)) / 32;
      for (const [i, value] of scaled.entries())
        expect(Math.abs(decoded[i]! * step - value)).toBeLessThan(1.001 * step);
    }),
  );
});

test('a vector in int5 begins with its sign bits, and no component is lost', () => {
  fc.assert(
    fc.property(vectors, (vector) => {
      const blob = encodeVector(vector, 'int5');
      const decoded = decodeVector(blob, 'int5', DIMENSIONS);
      expect([...blob.subarray(0, DIMENSIONS / 8)]).toEqual([...signBits(vector)]);
      expect([...decoded].map((value) => value > 0)).toEqual([...vector].map((value) => value > 0));
    }),
  );
});

test('stored vectors are compared without decoding, to the cosine of the decoded vectors', () => {
  fc.assert(
    fc.property(vectors, vectors, fc.constantFrom('int5', 'float32'), (first, second, encoding) => {
      const [own, other] = [first, second].map((vector) => encodeVector(vector, encoding)) as [Buffer, Buffer];
      const decoded = [own, other].map((blob) => decodeVector(blob, encoding, DIMENSIONS));
      const cosineWith = compareStored(decoded[0]!, encoding);
      const similarity = cosineWith(Buffer.concat([own, other]), own.length, encoding);
      const expected = cosine(decoded[0]!, decoded[1]!);
      // Floats are added up in another order, whole numbers give the same sum in any.
      if (encoding === 'int5') expect(similarity).toBe(expected);
      else expect(similarity).toBeCloseTo(expected, 12);
    }),
  );
});

test('vectors in int5 are compared as they lie, to the cosine of what they stand for', () => {
  fc.assert(
    fc.property(vectors, fc.array(vectors, { minLength: 1, maxLength: 4 }), (query, others) => {
      const stored = others.map((vector) => encodeVector(vector, 'int5'));
      const cosineOf = compareInt5(query);
      for (const [place, blob] of stored.entries()) {
        const expected = cosine(query, decodeVector(blob, 'int5', DIMENSIONS));
        expect(cosineOf(Buffer.concat(stored), place * blob.length)).toBeCloseTo(expected, 3);
      }
      expect(() => cosineOf(stored[0]!, 1)).toThrow('beyond the end');
    }),
  );
  // The largest that all sums can become.
  const most = new Float32Array(4_096).fill(1);
  expect(compareInt5(most)(encodeVector(most, 'int5'), 0)).toBeCloseTo(1, 12);
  expect(
    compareInt5(most)(
      encodeVector(
        most.map(() => -1),
        'int5',
      ),
      0,
    ),
  ).toBeCloseTo(-1, 12);
});

test('encoded vectors have the length that is announced', () => {
  for (const encoding of ['int5', 'float32'] as const) {
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
  for (const encoding of ['int5', 'float32'] as const) {
    expect(() => encodeVector(new Float32Array(8), encoding)).toThrow(expect.objectContaining({ code: 'internal' }));
    expect(() => encodeVector(Float32Array.of(NaN, 1), encoding)).toThrow(
      expect.objectContaining({ code: 'internal' }),
    );
  }
});

test('decoding refuses a blob of another size', () => {
  const blob = encodeVector(new Float32Array(DIMENSIONS).fill(1), 'int5');
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
