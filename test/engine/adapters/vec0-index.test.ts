import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createVec0Index, openVec0Index, rebuildVectorIndex } from '../../../src/engine/adapters/vec0-index.ts';
import type { IndexSearch, VectorIndex } from '../../../src/engine/ports.ts';
import { modelNumber } from '../../../src/engine/store/embeddings.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import { insertVector, MEAN_WINDOW, roleOf, type VectorSpace } from '../../../src/engine/store/vectors.ts';
import { describeVectorIndex, DIMENSIONS, randomVectors } from '../../conformance/vector-index.ts';

const MODEL = { provider: 'test', model: 'random', dimensions: DIMENSIONS, encoding: 'int8' } as const;

function openTemporaryStore(): Store & { remove(): void } {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-'));
  const store = openStore(path.join(folder, 'tenant.sqlite'), { role: 'worker', create: true });
  return {
    ...store,
    remove() {
      store.close();
      fs.rmSync(folder, { recursive: true });
    },
  };
}

describeVectorIndex('vec0', () => {
  const store = openTemporaryStore();
  const index = store.write(() => createVec0Index(store, { modelNo: 1, dimensions: DIMENSIONS }));
  return { index, write: (work) => store.write(work), close: () => store.remove() };
});

describe('vec0 in a tenant file', () => {
  let store: ReturnType<typeof openTemporaryStore>;
  beforeEach(() => (store = openTemporaryStore()));
  afterEach(() => store.remove());

  test('each model has an index of its own', () => {
    const random = randomVectors(2);
    const embedding = random();
    const [a, b] = [1, 2].map((modelNo) =>
      store.write(() => createVec0Index(store, { modelNo, dimensions: DIMENSIONS })),
    );
    store.write(() => a!.add([{ vectorNo: 1, userNo: 0, role: 'whole', embedding }]));
    expect(a!.search({ embedding, purpose: 'rank', k: 5 })).toEqual([1]);
    expect(b!.search({ embedding, purpose: 'rank', k: 5 })).toEqual([]);
  });

  test('another connection, also one that cannot write, sees what was committed', () => {
    const random = randomVectors(3);
    const embedding = random();
    const index = store.write(() => createVec0Index(store, { modelNo: 1, dimensions: DIMENSIONS }));
    store.write(() => createVec0Index(store, { modelNo: 1, dimensions: DIMENSIONS }));
    const reader = openStore(store.path, { role: 'reader' });
    try {
      const seen = openVec0Index(reader, { modelNo: 1, dimensions: DIMENSIONS });
      expect(seen.search({ embedding, purpose: 'rank', k: 5 })).toEqual([]);
      store.write(() => index.add([{ vectorNo: 1, userNo: 0, role: 'whole', embedding }]));
      expect(seen.search({ embedding, purpose: 'rank', k: 5 })).toEqual([1]);
      store.write(() => index.clear());
      expect(seen.search({ embedding, purpose: 'rank', k: 5 }), 'a table made anew is noticed').toEqual([]);
    } finally {
      reader.close();
    }
  });

  describe('rebuilt from the canonical vectors', () => {
    const random = randomVectors(4);
    let space: VectorSpace;
    let index: VectorIndex;
    beforeEach(() => {
      const modelNo = store.write(() => modelNumber(store, MODEL, 1));
      space = { modelNo, dimensions: DIMENSIONS, encoding: MODEL.encoding };
      index = store.write(() => createVec0Index(store, { modelNo, dimensions: DIMENSIONS }));
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
        const vectorNo = insertVector(store, into, { memory, windowNo, embedding, textHash: null });
        indexed?.add([{ vectorNo, userNo, role: roleOf(windowNo, windows.length), embedding }]);
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
      expect(store.prepare(`SELECT count(*) AS n FROM vector_index_${space.modelNo}`).get()).toEqual(all);
    });

    test('it is empty where there are none', () => {
      expect(rebuildVectorIndex(store, index, space.modelNo)).toBe(0);
    });
  });
});
