import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import fc from 'fast-check';
import { openBitIndex } from '../../../src/engine/adapters/bit-index/bit-index.ts';
import { COMPONENT_BITS } from '../../../src/engine/adapters/bit-index/kernels.ts';
import { createIndexMemory } from '../../../src/engine/adapters/bit-index/index-memory.ts';
import { rebuildVectorIndex } from '../../../src/engine/admin/rebuild-vector-index.ts';
import type { IndexedVector, IndexSearch, VectorIndex } from '../../../src/engine/ports.ts';
import { modelNumber } from '../../../src/engine/store/embeddings.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import { insertVector, MEAN_WINDOW, roleOf, type VectorSpace } from '../../../src/engine/store/vectors.ts';
import { describeVectorIndex, DIMENSIONS, randomVectors } from '../../conformance/vector-index.ts';
import { openStoredIndex } from '../../support/stored-index.ts';

const MODEL = { provider: 'test', model: 'random', dimensions: DIMENSIONS, encoding: 'float32' } as const;

function openTemporaryStore(): Store & Disposable & { remove(): void } {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-'));
  const store = openStore(path.join(folder, 'tenant.sqlite'), { role: 'worker', create: true });
  const remove = () => {
    store.close();
    fs.rmSync(folder, { recursive: true });
  };
  return Object.assign(store, { remove, [Symbol.dispose]: remove });
}

/** What the signs of one vector say about its dot product with another. */
function estimateOf(query: Float32Array, vector: Float32Array): number {
  const scale = (2 ** (COMPONENT_BITS - 1) - 1) / Math.max(...query.map(Math.abs));
  return query.reduce((sum, value, i) => sum + (vector[i]! > 0 ? 1 : -1) * Math.round(value * scale), 0);
}

// Their codes stand in a table of their own, or in front of the vectors.
const ENCODINGS = ['float32', 'int5'] as const;

describe.each(ENCODINGS)('over vectors in %s', (encoding) => {
  describeVectorIndex('the bit index', () => {
    const store = openTemporaryStore();
    const index = openStoredIndex(store, { modelNo: 1, dimensions: DIMENSIONS, encoding });
    return { index, write: (work) => store.write(work), close: () => store.remove() };
  });

  describe('the bit index of a tenant file', () => {
    const SPACE: VectorSpace = { modelNo: 1, dimensions: DIMENSIONS, encoding };
    let store: ReturnType<typeof openTemporaryStore>;
    beforeEach(() => (store = openTemporaryStore()));
    afterEach(() => store.remove());

    test('each model has an index of its own', () => {
      const random = randomVectors(2);
      const embedding = random();
      const [a, b] = [1, 2].map((modelNo) => openStoredIndex(store, { ...SPACE, modelNo }));
      store.write(() => a!.add([{ vectorNo: 1, memory: 1, userNo: 0, role: 'whole', embedding }]));
      expect(a!.search({ embedding, purpose: 'rank', k: 5 })).toEqual([1]);
      expect(b!.search({ embedding, purpose: 'rank', k: 5 })).toEqual([]);
    });

    describe('beside another connection, that cannot write', () => {
      const random = randomVectors(3);
      const entry = (vectorNo: number): IndexedVector => ({
        ...{ vectorNo, memory: vectorNo, userNo: 0, role: 'whole' },
        embedding: random(),
      });
      let reader: Store;
      let index: VectorIndex;
      let seen: VectorIndex;
      beforeEach(() => {
        index = openStoredIndex(store, SPACE);
        reader = openStore(store.path, { role: 'reader' });
        seen = openStoredIndex(reader, SPACE);
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
        const loading = openStoredIndex(again, SPACE).load();
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

    test('of several indexes those asked longest ago give their memory back when it is short', () => {
      const dropped: number[] = [];
      const memory = createIndexMemory(100);
      const holders = [0, 1, 2].map((number) => ({ drop: () => void dropped.push(number) }));
      memory.use(holders[0]!, 40);
      memory.use(holders[1]!, 40);
      memory.use(holders[0]!, 50);
      expect(dropped).toEqual([]);
      memory.use(holders[2]!, 30);
      expect(dropped).toEqual([1]);
      memory.release(holders[0]!);
      // Alone above the bound, but in use.
      memory.use(holders[2]!, 130);
      expect(dropped).toEqual([1]);
      memory.use(holders[0]!, 10);
      expect(dropped).toEqual([1, 2]);
    });

    test('what gave its memory back answers as before', () => {
      const random = randomVectors(6);
      const embeddings = Array.from({ length: 20 }, random);
      const memory = createIndexMemory(1);
      const indexes = [1, 2].map((modelNo) => openStoredIndex(store, { ...SPACE, modelNo }, memory));
      store.write(() => {
        for (const [i, embedding] of embeddings.entries()) {
          indexes[i % 2]!.add([{ vectorNo: i + 1, memory: i + 1, userNo: 0, role: 'whole', embedding }]);
        }
      });
      for (const [i, embedding] of embeddings.entries()) {
        expect(indexes[i % 2]!.search({ embedding, purpose: 'rank', k: 1 })).toEqual([i + 1]);
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
          const indexes = stores.map((one) => openStoredIndex(one, SPACE));
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
                .map((vector) => ({ vectorNo: vector.vectorNo, estimate: estimateOf(embedding, vector.embedding) }))
                .sort((a, b) => b.estimate - a.estimate || a.vectorNo - b.vectorNo);
              expect(found).toEqual(wanted.slice(0, one.k).map(({ vectorNo }) => vectorNo));
            }
          }
        }),
        { numRuns: 60 },
      );
    });
  });
});

describe('the bit index rebuilt from the canonical vectors', () => {
  let store: ReturnType<typeof openTemporaryStore>;
  beforeEach(() => (store = openTemporaryStore()));
  afterEach(() => store.remove());
  const random = randomVectors(4);
  let space: VectorSpace;
  let index: VectorIndex;
  beforeEach(() => {
    const modelNo = store.write(() => modelNumber(store, MODEL, 1));
    space = { modelNo, dimensions: DIMENSIONS, encoding: MODEL.encoding };
    index = openBitIndex(store, space);
  });

  /** A memory of three windows and their mean every tenth time, else of one; written and indexed as the encode step does. */
  function addMemory(userNo: number, into = space, indexed: VectorIndex | null = index): Float32Array {
    const memory = Number(
      store
        .prepare(
          `INSERT INTO memories (id, user_no, event_time, event_time_given, created_at, updated_at, content_hash, content)
             VALUES (?, ?, 1, 0, 1, 1, x'00', 'text')`,
        )
        .run(crypto.randomUUID(), userNo).lastInsertRowid,
    );
    const windows = memory % 10 === 0 ? [0, 1, 2, MEAN_WINDOW] : [0];
    const embeddings = windows.map(random);
    windows.forEach((windowNo, i) => {
      const embedding = embeddings[i]!;
      const vector = { memory, userNo, windowNo, role: roleOf(windowNo, windows.length), embedding, textHash: null };
      indexed?.add([{ ...vector, vectorNo: insertVector(store, into, vector) }]);
    });
    return embeddings[0]!;
  }

  test('it answers as the index that grew with them', () => {
    const probes = store.write(() => Array.from({ length: 700 }, (_, i) => addMemory(i % 3)));
    const searches = probes
      .filter((_, i) => i % 25 === 0)
      .flatMap((embedding, i): IndexSearch[] => [
        { embedding, purpose: 'rank', k: 12, userNo: i % 3 },
        { embedding, purpose: 'link', k: 12 },
      ]);
    // Ties at the end of a list may fall either way; distances may not.
    const before = searches.map((search) => index.search(search).slice(0, 1));
    const everything: IndexSearch[] = (['rank', 'link'] as const).map((purpose) => ({
      embedding: probes[0]!,
      purpose,
      k: 4_096,
    }));
    const allBefore = everything.map((search) => index.search(search).toSorted((a, b) => a - b));

    const count = rebuildVectorIndex(store, index, space.modelNo);

    expect(count).toBe(700 + 70 * 3);
    expect(everything.map((search) => index.search(search).toSorted((a, b) => a - b))).toEqual(allBefore);
    expect(searches.map((search) => index.search(search).slice(0, 1))).toEqual(before);
  });

  test('it holds only vectors of its model, and those that were added meanwhile', () => {
    const otherNo = store.write(() => modelNumber(store, { ...MODEL, model: 'other' }, 1));
    store.write(() => {
      for (let i = 0; i < 600; i++) addMemory(0, { ...space, modelNo: otherNo }, null);
      for (let i = 0; i < 600; i++) addMemory(0);
    });
    const slices: number[] = [];
    const watched: VectorIndex = {
      ...index,
      add(vectors) {
        slices.push(vectors.length);
        index.add(vectors);
        if (slices.length === 1) addMemory(0);
      },
    };
    const canonical = 600 + 60 * 3;
    expect(rebuildVectorIndex(store, watched, space.modelNo)).toBe(canonical);
    expect(slices).toEqual([500, canonical - 500]);
    const all = store.prepare('SELECT count(*) AS n FROM vectors WHERE model_no = ?').get(space.modelNo) as {
      n: number;
    };
    expect(store.prepare('SELECT count(*) AS n FROM vector_codes').get()).toEqual(all);
  });

  test('it is empty where there are none', () => {
    expect(rebuildVectorIndex(store, index, space.modelNo)).toBe(0);
  });
});
