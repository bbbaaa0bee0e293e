import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { VectorIndexChoice } from '../../src/engine/adapters/vector-index/open-vector-index.ts';
import { createIndexMemory, type IndexMemory } from '../../src/engine/adapters/following-index/index-memory.ts';
import type { IndexedVector, VectorEncoding, VectorIndex } from '../../src/engine/ports.ts';
import { openStore, type Store } from '../../src/engine/store/open-store.ts';
import type { VectorSpace } from '../../src/engine/store/vectors.ts';
import { openStoredIndex, shareVectors } from '../support/stored-index.ts';
import { openTemporaryStore } from '../support/temporary-store.ts';
import { describeVectorIndex, DIMENSIONS, randomVectors } from './vector-index.ts';

export interface StoredIndexSuite {
  readonly choice: VectorIndexChoice;
  /** Whether all indexes of a file share one copy of its vectors, as threads of a process do. */
  readonly isShared?: boolean;
  readonly encoding: VectorEncoding;
  /** The measure by which the index orders stored vectors: the greater, the nearer. */
  readonly measure: (query: Float32Array, vector: Float32Array) => number;
}

/** Declares the tests for an index that is held in memory and follows a tenant's file. */
export function describeStoredIndex({ choice, encoding, measure, isShared = false }: StoredIndexSuite): void {
  const share = isShared && choice !== 'vec0' && choice !== 'auto' ? shareVectors(choice) : undefined;
  const name = isShared ? `shared ${choice}` : choice;
  describeVectorIndex(`${name} over vectors in ${encoding}`, () => {
    const store = openTemporaryStore();
    const space = { modelNo: 1, dimensions: DIMENSIONS, encoding };
    const index = openStoredIndex(store, space, { choice, shared: share?.(store, space) });
    return { index, write: (work) => store.write(work), close: () => store.remove() };
  });

  describe(`${name} over the vectors in ${encoding} of a tenant file`, () => {
    const SPACE: VectorSpace = { modelNo: 1, dimensions: DIMENSIONS, encoding };
    let store: ReturnType<typeof openTemporaryStore>;
    beforeEach(() => (store = openTemporaryStore()));
    afterEach(() => store.remove());
    const openIndex = (on: Store, changes: Partial<VectorSpace> = {}, indexMemory?: IndexMemory) => {
      const space = { ...SPACE, ...changes };
      return openStoredIndex(on, space, { choice, shared: share?.(on, space), ...(indexMemory && { indexMemory }) });
    };

    test('each model has an index of its own', () => {
      const random = randomVectors(2);
      const embedding = random();
      const [a, b] = [1, 2].map((modelNo) => openIndex(store, { modelNo }));
      store.write(() => a!.add([{ vectorNo: 1, memory: 1, userNo: 0, role: 'whole', embedding }]));
      expect(a!.search({ embedding, purpose: 'rank', k: 5 })).toEqual([1]);
      expect(b!.search({ embedding, purpose: 'rank', k: 5 })).toEqual([]);
    });

    describe('beside another connection, that cannot write', () => {
      const random = randomVectors(3);
      const entry = (vectorNo: number): IndexedVector => ({
        vectorNo,
        memory: vectorNo,
        userNo: 0,
        role: 'whole',
        embedding: random(),
      });
      let reader: Store;
      let index: VectorIndex;
      let seen: VectorIndex;
      beforeEach(() => {
        index = openIndex(store);
        reader = openStore(store.path, { role: 'reader' });
        seen = openIndex(reader);
      });
      afterEach(() => reader.close());
      const found = ({ embedding }: IndexedVector) => seen.search({ embedding, purpose: 'rank', k: 5 });

      test('what was committed there is seen here', () => {
        const [one, other] = [entry(1), entry(2)];
        expect(found(one)).toEqual([]);
        store.write(() => index.add([one, other]));
        expect(found(one)).toEqual([1, 2]);
        store.write(() => index.remove([1]));
        expect(found(one)).toEqual([2]);
        store.write(() => index.clear());
        expect(found(one)).toEqual([]);
        // As a rebuild does it.
        store.write(() => index.add([one, other]));
        expect(found(one)).toEqual([1, 2]);
      });

      test('an answer fits the snapshot that it is asked on', () => {
        const [one, other] = [entry(1), entry(2)];
        store.write(() => index.add([one]));
        reader.read(() => {
          expect(found(one)).toEqual([1]);
          store.write(() => {
            index.add([other]);
            index.remove([1]);
          });
          expect(found(one)).toEqual([1]);
        });
        expect(found(one)).toEqual([2]);
      });

      test('what was removed before the log of removals begins is not found either', () => {
        const entries = Array.from({ length: 10_050 }, (_, i) => entry(i + 1));
        store.write(() => index.add(entries));
        expect(found(entries[0]!)).toHaveLength(5);
        for (let at = 0; at < 10_040; at += 502) {
          store.write(() => index.remove(entries.slice(at, at + 502).map(({ vectorNo }) => vectorNo)));
        }
        const log = store.prepare('SELECT count(*) FROM vector_removals').pluck().get() as number;
        expect(log).toBeLessThan(10_040);
        expect(found(entries[0]!).every((vectorNo) => vectorNo > 10_040)).toBe(true);
      });

      test('a load takes turns with others, and ends quietly where the file is closed meanwhile', async () => {
        store.write(() => index.add(Array.from({ length: 3_000 }, (_, i) => entry(i + 1))));
        const turns: string[] = [];
        setImmediate(() => turns.push('another'));
        await seen.load();
        turns.push('loaded');
        expect(turns).toEqual(['another', 'loaded']);
        const again = openStore(store.path, { role: 'reader' });
        const loading = openIndex(again).load();
        again.close();
        await expect(loading).resolves.toBeUndefined();
      });

      test('a search inside a write is refused, as a rollback would go unnoticed', () => {
        const { embedding } = entry(1);
        expect(() => store.write(() => index.search({ embedding, purpose: 'rank', k: 1 }))).toThrow(/inside a write/);
      });

      test('many removals make it read all codes again', async () => {
        const entries = Array.from({ length: 14_000 }, (_, i) => entry(i + 1));
        store.write(() => index.add(entries));
        expect(found(entries[0]!)[0]).toBe(1);
        for (let at = 0; at < 13_990; at += 5_000) {
          store.write(() =>
            index.remove(entries.slice(at, Math.min(13_990, at + 5_000)).map(({ vectorNo }) => vectorNo)),
          );
          found(entries[0]!);
        }
        await seen.load();
        expect(
          found(entries[0]!)
            .toSorted((a, b) => a - b)
            .every((vectorNo) => vectorNo > 13_990),
        ).toBe(true);
      });
    });

    test('what gave its memory back answers as before', () => {
      const random = randomVectors(6);
      const embeddings = Array.from({ length: 20 }, random);
      const memory = createIndexMemory(1);
      const indexes = [1, 2].map((modelNo) => openIndex(store, { modelNo }, memory));
      store.write(() => {
        for (const [i, embedding] of embeddings.entries()) {
          indexes[i % 2]!.add([{ vectorNo: i + 1, memory: i + 1, userNo: 0, role: 'whole', embedding }]);
        }
      });
      for (const [i, embedding] of embeddings.entries()) {
        expect(indexes[i % 2]!.search({ embedding, purpose: 'rank', k: 1 })).toEqual([i + 1]);
      }
    });

    test('of equally near vectors it finds those with the lowest numbers', () => {
      const embedding = randomVectors(8)();
      const index = openIndex(store);
      const equal = Array.from({ length: 9 }, (_, i) => ({
        vectorNo: i + 1,
        memory: i + 1,
        userNo: 0,
        role: 'whole' as const,
        embedding,
      }));
      store.write(() => index.add(equal));
      for (const k of [1, 2, 5, 9]) {
        expect(index.search({ embedding, purpose: 'rank', k })).toEqual(equal.slice(0, k).map((one) => one.vectorNo));
      }
    });

    // The law of the index: it is nothing but the rows that the snapshot holds.
    test('whatever two connections add and remove, each finds what a plain scan of its snapshot finds', () => {
      const vectorOf = randomVectors(7);
      // Whole numbers, which add up to the same in whatever order and precision.
      const vectors = Array.from({ length: 40 }, () => vectorOf().map((value) => Math.round(100 * value)));
      const step = fc.oneof(
        {
          weight: 4,
          arbitrary: fc.record({
            kind: fc.constant('add' as const),
            by: fc.nat(1),
            userNo: fc.nat(2),
            role: fc.constantFrom('whole' as const, 'window' as const, 'mean' as const),
            vector: fc.nat(39),
          }),
        },
        { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), by: fc.nat(1), nth: fc.nat(50) }) },
        { weight: 1, arbitrary: fc.record({ kind: fc.constant('fail' as const), by: fc.nat(1), vector: fc.nat(39) }) },
        {
          weight: 3,
          arbitrary: fc.record({
            kind: fc.constant('search' as const),
            by: fc.nat(1),
            userNo: fc.option(fc.nat(3), { nil: undefined }),
            purpose: fc.constantFrom('rank' as const, 'link' as const),
            upTo: fc.option(fc.nat(40), { nil: undefined }),
            vector: fc.nat(39),
            k: fc.integer({ min: 1, max: 8 }),
          }),
        },
      );
      fc.assert(
        fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
          using fixture = openTemporaryStore();
          const second = openStore(fixture.path, { role: 'worker' });
          onTestFinished(() => second.close());
          const stores = [fixture, second];
          const indexes = stores.map((one) => openIndex(one));
          const model: IndexedVector[] = [];
          let last = 0;
          for (const one of steps) {
            const [at, index] = [stores[one.by]!, indexes[one.by]!];
            if (one.kind === 'add') {
              last += 1;
              const added = {
                vectorNo: last,
                memory: last,
                userNo: one.userNo,
                role: one.role,
                embedding: vectors[one.vector]!,
              };
              at.write(() => index.add([added]));
              model.push(added);
            } else if (one.kind === 'remove') {
              const [gone] = model.splice(one.nth % Math.max(1, model.length), 1);
              at.write(() => index.remove([gone?.vectorNo ?? 99]));
            } else if (one.kind === 'fail') {
              const added = {
                vectorNo: last + 1,
                memory: 1,
                userNo: 0,
                role: 'whole' as const,
                embedding: vectors[one.vector]!,
              };
              const failing = () =>
                at.write(() => {
                  index.add([added]);
                  index.remove(model.map(({ vectorNo }) => vectorNo));
                  throw new Error('taken back');
                });
              expect(failing).toThrow('taken back');
            } else {
              const embedding = vectors[one.vector]!;
              const found = index.search({
                embedding,
                userNo: one.userNo,
                purpose: one.purpose,
                upTo: one.upTo,
                k: one.k,
              });
              const wanted = model
                .filter(
                  ({ userNo, role, memory }) =>
                    (one.userNo === undefined || userNo === one.userNo) &&
                    role !== (one.purpose === 'rank' ? 'mean' : 'window') &&
                    memory <= (one.upTo ?? Infinity),
                )
                .map((vector) => ({ vectorNo: vector.vectorNo, estimate: measure(embedding, vector.embedding) }))
                .sort((a, b) => b.estimate - a.estimate || a.vectorNo - b.vectorNo);
              expect(found).toEqual(wanted.slice(0, one.k).map(({ vectorNo }) => vectorNo));
            }
          }
        }),
        { numRuns: 25 },
      );
    });
  });
}
