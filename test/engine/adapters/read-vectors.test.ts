import { describe, expect, test } from 'vitest';
import { readVectors } from '../../../src/engine/adapters/read-vectors.ts';

const refused = (what: string) => Object.assign(new Error(what), { name: 'refused' }) as never;

function read(...items: readonly unknown[]): Float32Array[] {
  return readVectors(items, { count: items.length, dimensions: 4, refused });
}

const base64 = (...numbers: readonly number[]) => Buffer.from(Float32Array.from(numbers).buffer).toString('base64');

describe('a vector in base64', () => {
  test('is the same as in numbers', () => {
    expect(read(base64(3, 0, -4, 0))).toEqual(read([3, 0, -4, 0]));
    expect(read([3, 0, -4, 0])).toEqual([Float32Array.of(0.6, 0, -0.8, 0)]);
  });

  test.each([
    ['NaN', base64(1, NaN, 0, 0), /too large/],
    ['infinity', base64(1, -Infinity, 0, 0), /too large/],
    ['zeros', base64(0, -0, 0, 0), /zeros/],
    ['another length', base64(1, 2, 3), /3 dimensions where OM_VEC_DIM is 4/],
    ['half a number', Buffer.alloc(15, 1).toString('base64'), /no vector/],
    ['nothing', '', /0 dimensions/],
  ])('is refused when it holds %s', (_, item, message) => {
    expect(() => read([1, 0, 0, 0], item)).toThrow(message);
  });
});

describe('a vector in numbers', () => {
  test('of any length becomes one of length 1', () => {
    for (const scale of [1e-30, 1e-9, 1, 1e9, 3e38]) {
      const [vector] = read([scale, -scale, scale, scale]);
      vector!.forEach((value, d) => expect(value).toBeCloseTo(d === 1 ? -0.5 : 0.5, 6));
    }
  });

  test.each([
    ['a number beyond float32', [1, 1e39, 0, 0]],
    ['nothing but numbers below float32', [1e-50, 1e-60, 0, 0]],
    ['zeros', [0, 0, 0, 0]],
    ['a string', [1, '0', 0, 0]],
    ['null', [1, null, 0, 0]],
    ['too few', [1, 0, 0]],
    ['too many', [1, 0, 0, 0, 0]],
    ['a list', [[1, 0, 0, 0]]],
  ])('is refused when it holds %s', (_, item) => {
    expect(() => read(item)).toThrow(expect.objectContaining({ name: 'refused' }));
  });
});
