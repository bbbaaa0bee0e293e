import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openBitIndex } from '../../../src/engine/adapters/bit-index/bit-index.ts';
import { COMPONENT_BITS } from '../../../src/engine/adapters/bit-index/kernels.ts';
import { rebuildVectorIndex } from '../../../src/engine/admin/rebuild-vector-index.ts';
import type { IndexSearch, VectorIndex } from '../../../src/engine/ports.ts';
import { modelNumber } from '../../../src/engine/store/embeddings.ts';
import { insertVector, MEAN_WINDOW, roleOf, type VectorSpace } from '../../../src/engine/store/vectors.ts';
import { describeStoredIndex } from '../../conformance/stored-vector-index.ts';
import { DIMENSIONS, randomVectors } from '../../conformance/vector-index.ts';
import { openTemporaryStore } from '../../support/temporary-store.ts';

const MODEL = { provider: 'test', model: 'random', dimensions: DIMENSIONS, encoding: 'float32' } as const;

/** What the signs of one vector say about its dot product with another. */
function estimateOf(query: Float32Array, vector: Float32Array): number {
  const scale = (2 ** (COMPONENT_BITS - 1) - 1) / Math.max(...query.map(Math.abs));
  return query.reduce((sum, value, i) => sum + (vector[i]! > 0 ? 1 : -1) * Math.round(value * scale), 0);
}

// Codes stand in a table of their own, or in front of the vectors.
for (const encoding of ['float32', 'int5'] as const) {
  for (const choice of ['wasm', 'js'] as const) {
    for (const isShared of [false, true]) describeStoredIndex({ choice, encoding, isShared, measure: estimateOf });
  }
}

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

  /**
   * A memory of three windows and their mean every tenth time, else of one; written and indexed as the encode step
   * does.
   */
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
