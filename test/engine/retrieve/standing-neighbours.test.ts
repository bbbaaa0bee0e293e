import { expect, test } from 'vitest';
import { createRandom } from '../../../src/engine/random.ts';
import { bitsWithin, createStandingNeighbours } from '../../../src/engine/retrieve/standing-neighbours.ts';
import type { PreparedQuery } from '../../../src/engine/retrieve/standing-index.ts';
import { cosine, signBits } from '../../../src/engine/store/vector-encoding.ts';

const DIMENSIONS = 256;

const random = createRandom(3);
/** A direction at random: the sum of twelve even numbers is nearly normal. */
const direction = () =>
  Float32Array.from({ length: DIMENSIONS }, () => Array.from({ length: 12 }, random).reduce((a, b) => a + b, -6));
const mixed = (a: Float32Array, b: Float32Array, share: number) => a.map((value, i) => value + share * b[i]!);
const query = (queryNo: number, userId: string | null, minScore: number | null = null) =>
  ({ queryNo, userId, minScore, forms: 'stemmed' }) as PreparedQuery;

function neighboursOf(placed: readonly { readonly query: PreparedQuery; readonly code: Uint8Array }[]) {
  const neighbours = createStandingNeighbours(DIMENSIONS);
  for (const one of placed) neighbours.place(one);
  return neighbours;
}

test('finds the vectors within a cosine among thousands of others, whoever they belong to', () => {
  const memory = direction();
  const near = Array.from({ length: 20 }, () => mixed(memory, direction(), 0.6));
  const far = Array.from({ length: 5_000 }, direction);
  const placed = [...near, ...far].map((vector, no) => ({
    query: query(no, no % 2 === 0 ? null : 'ana'),
    code: signBits(vector),
  }));
  const { near: nearOf } = neighboursOf(placed);
  expect(Math.min(...near.map((vector) => cosine(vector, memory)))).toBeGreaterThan(0.75);
  const reach = bitsWithin(0.75, DIMENSIONS);
  const found = nearOf([signBits(memory)], 'ana', () => reach).map(({ queryNo }) => queryNo);
  expect(found.filter((no) => no < 20).length).toBe(20);
  expect(found.length).toBeLessThan(25);
  const ofBen = nearOf([signBits(memory)], 'ben', () => reach).map(({ queryNo }) => queryNo);
  expect(ofBen.filter((no) => no < 20)).toEqual(found.filter((no) => no < 20 && no % 2 === 0));
  expect(nearOf([signBits(memory)], 'ana', () => -1)).toEqual([]);
  expect(nearOf([], 'ana', () => reach)).toEqual([]);
});

test('any window of a memory may be near, and each group of queries has its own reach', () => {
  const [one, other] = [direction(), direction()];
  const placed = [
    { query: query(1, null), code: signBits(one) },
    { query: query(2, null, 0.9), code: signBits(other) },
  ];
  const { near } = neighboursOf(placed);
  const numbers = (codes: Uint8Array[], reachOf: (query: PreparedQuery) => number) =>
    near(codes, '', reachOf).map(({ queryNo }) => queryNo);
  expect(numbers([signBits(other), signBits(one)], () => 0)).toEqual([1, 2]);
  expect(numbers([signBits(other), signBits(one)], ({ minScore }) => (minScore === null ? 0 : -1))).toEqual([1]);
});

test('a smaller cosine allows more bits to differ', () => {
  expect(bitsWithin(1, DIMENSIONS)).toBe(0);
  expect(bitsWithin(-1, DIMENSIONS)).toBe(DIMENSIONS);
  expect(bitsWithin(0.5, DIMENSIONS)).toBeGreaterThan(bitsWithin(0.8, DIMENSIONS));
});
