import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { IndexedVector, IndexSearch, VectorIndex, VectorRole } from '../../src/engine/ports.ts';

/** An empty index for vectors of `DIMENSIONS` numbers, with the transactions of the store that holds it. */
export interface VectorIndexFixture {
  readonly index: VectorIndex;
  write<T>(work: () => T): T;
  close(): void;
}

export const DIMENSIONS = 256;

/** Declares the tests that every vector index must pass. @param open makes the index, once for each test */
export function describeVectorIndex(name: string, open: () => VectorIndexFixture): void {
  describe(`${name} as a vector index`, () => {
    let fixture: VectorIndexFixture;
    let index: VectorIndex;
    beforeEach(() => {
      fixture = open();
      index = fixture.index;
    });
    afterEach(() => fixture.close());
    const add = (...vectors: IndexedVector[]) => fixture.write(() => index.add(vectors));
    const random = randomVectors(1);
    const entry = (vectorNo: number, changes: Partial<IndexedVector> = {}): IndexedVector => ({
      vectorNo,
      memory: vectorNo,
      userNo: 0,
      role: 'whole',
      embedding: random(),
      ...changes,
    });

    test('finds each vector by itself, and by a vector near it', () => {
      const entries = Array.from({ length: 200 }, (_, i) => entry(i + 1));
      add(...entries);
      for (const { vectorNo, embedding } of entries) {
        expect(index.search({ embedding, purpose: 'rank', k: 1 })).toEqual([vectorNo]);
        const nearby = embedding.map((value, d) => (d < 10 ? -value : value));
        expect(index.search({ embedding: nearby, purpose: 'rank', k: 1 })).toEqual([vectorNo]);
      }
    });

    test('returns the nearest first', () => {
      const embedding = random();
      const flipped = (count: number) => embedding.map((value, d) => (d < count ? -value : value));
      add(...[90, 10, 50, 0, 70, 30].map((count) => entry(count + 1, { embedding: flipped(count) })));
      expect(index.search({ embedding, purpose: 'rank', k: 4 })).toEqual([1, 11, 31, 51]);
      expect(index.search({ embedding, purpose: 'rank', k: 100 })).toEqual([1, 11, 31, 51, 71, 91]);
    });

    test('filters by user before top-k: ten vectors among 5,000 foreign ones are all found', () => {
      const target = random();
      add(...Array.from({ length: 5_000 }, (_, i) => entry(i + 1, { userNo: 1 + (i % 7), embedding: target })));
      add(...Array.from({ length: 10 }, (_, i) => entry(9_001 + i, { userNo: 8 })));
      const found = index.search({ embedding: target, userNo: 8, purpose: 'rank', k: 10 });
      expect(found.toSorted()).toEqual(Array.from({ length: 10 }, (_, i) => 9_001 + i));
      expect(index.search({ embedding: target, userNo: 99, purpose: 'rank', k: 10 })).toEqual([]);
    });

    test('ranks by windows and links by means', () => {
      const embedding = random();
      const roles: VectorRole[] = ['whole', 'window', 'mean'];
      add(...roles.map((role, i) => entry(i + 1, { role, embedding })));
      const sorted = (purpose: 'rank' | 'link', userNo?: number) =>
        index.search({ embedding, purpose, userNo, k: 10 }).toSorted();
      expect(sorted('rank')).toEqual([1, 2]);
      expect(sorted('link')).toEqual([1, 3]);
      expect(sorted('link', 0)).toEqual([1, 3]);
    });

    test('finds nothing of memories above a number', () => {
      const embedding = random();
      add(...[5, 9, 2, 7].map((memory, i) => entry(i + 1, { memory, embedding, userNo: i % 2 })));
      const found = (upTo: number, userNo?: number) =>
        index.search({ embedding, purpose: 'link', upTo, userNo, k: 10 });
      expect(found(9)).toEqual([1, 2, 3, 4]);
      expect(found(7)).toEqual([1, 3, 4]);
      expect(found(7, 0)).toEqual([1, 3]);
      expect(found(1)).toEqual([]);
    });

    test('answers several searches as it answers each alone', () => {
      add(
        ...Array.from({ length: 500 }, (_, i) => entry(i + 1, { userNo: i % 3, role: i % 5 === 0 ? 'mean' : 'whole' })),
      );
      const searches = Array.from({ length: 11 }, (_, i): IndexSearch => ({
        embedding: random(),
        purpose: i % 2 === 0 ? 'rank' : 'link',
        userNo: i % 4 === 3 ? undefined : i % 4,
        upTo: i % 5 === 0 ? 300 : undefined,
        k: 1 + 7 * i,
      }));
      expect(index.searchAll(searches)).toEqual(searches.map((search) => index.search(search)));
      expect(index.searchAll([])).toEqual([]);
    });

    test('answers the same before and after it was loaded', async () => {
      add(...Array.from({ length: 2_500 }, (_, i) => entry(i + 1)));
      const search: IndexSearch = { embedding: random(), purpose: 'rank', k: 20 };
      const loads = [index.load(), index.load()];
      const before = index.search(search);
      await Promise.all(loads);
      expect(index.search(search)).toEqual(before);
      expect(before).toHaveLength(20);
    });

    test('gives its memory back, and is there again when it is asked', () => {
      const [one] = [entry(1), add(entry(2))];
      add(entry(3, { embedding: one.embedding }));
      const search: IndexSearch = { embedding: one.embedding, purpose: 'rank', k: 1 };
      expect(index.search(search)).toEqual([3]);
      index.close();
      expect(index.search(search)).toEqual([3]);
    });

    test('forgets what is removed, and nothing else', () => {
      const entries = [1, 2, 3, 4].map((vectorNo) => entry(vectorNo));
      add(...entries);
      fixture.write(() => index.remove([2, 4, 77]));
      expect(index.search({ embedding: entries[1]!.embedding, purpose: 'rank', k: 10 }).toSorted()).toEqual([1, 3]);
      add({ ...entries[1]!, vectorNo: 5 });
      expect(index.search({ embedding: entries[1]!.embedding, purpose: 'rank', k: 1 })).toEqual([5]);
    });

    test('is empty after a clear, and can be filled again', () => {
      const embedding = random();
      add(...Array.from({ length: 1_500 }, (_, i) => entry(i + 1)));
      fixture.write(() => index.clear());
      expect(index.search({ embedding, purpose: 'rank', k: 10 })).toEqual([]);
      add(entry(1), entry(2_000));
      expect(index.search({ embedding, purpose: 'rank', k: 10 }).toSorted()).toEqual([1, 2_000]);
    });

    test.each(['add', 'remove', 'clear'] as const)(
      'a rollback takes back its part of the transaction: %s',
      (change) => {
        const entries = [1, 2, 3].map((vectorNo) => entry(vectorNo));
        add(entries[0]!, entries[1]!);
        const changes = {
          add: () => index.add([entries[2]!]),
          remove: () => index.remove([1]),
          clear: () => index.clear(),
        };
        const failing = () => {
          changes[change]();
          throw new Error('after the change');
        };
        expect(() => fixture.write(failing)).toThrow('after the change');
        expect(index.search({ embedding: entries[0]!.embedding, purpose: 'rank', k: 10 }).toSorted()).toEqual([1, 2]);
        add(entries[2]!);
        expect(index.search({ embedding: entries[2]!.embedding, purpose: 'rank', k: 1 })).toEqual([3]);
      },
    );

    test('holds k to 1..4096 and vectors to their length', () => {
      const embedding = random();
      add(entry(1));
      for (const k of [0, -1, 1.5, 4_097, NaN]) {
        expect(() => index.search({ embedding, purpose: 'rank', k })).toThrow(/k = /);
      }
      expect(index.search({ embedding, purpose: 'rank', k: 4_096 })).toEqual([1]);
      const short = embedding.slice(8);
      expect(() => index.search({ embedding: short, purpose: 'rank', k: 1 })).toThrow(/dimensions/);
      expect(() => add(entry(2, { embedding: short }))).toThrow(/dimensions/);
      const unusable = new Float32Array(embedding.length);
      expect(() => index.search({ embedding: unusable, purpose: 'link', k: 1 })).toThrow(/zeros/);
      expect(() => index.search({ embedding: unusable.fill(NaN), purpose: 'link', k: 1 })).toThrow(/NaN/);
    });
  });
}

/** Makes a function that returns unit vectors in random directions (mulberry32). Equal seeds give equal vectors. */
export function randomVectors(seed: number, dimensions = DIMENSIONS): () => Float32Array {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32 - 0.5;
  };
  return () => {
    const vector = Float32Array.from({ length: dimensions }, next);
    const norm = Math.hypot(...vector);
    return vector.map((value) => value / norm);
  };
}
