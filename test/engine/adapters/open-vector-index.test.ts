import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hasWasmKernels } from '../../../src/engine/adapters/bit-index/wasm-kernels.ts';
import { requireVectorIndex } from '../../../src/engine/adapters/vector-index/open-vector-index.ts';
import { cosine, decodeVector, encodeVector } from '../../../src/engine/store/vector-encoding.ts';
import { DIMENSIONS, randomVectors } from '../../conformance/vector-index.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';
import { openStoredIndex } from '../../support/stored-index.ts';
import { openTemporaryStore } from '../../support/temporary-store.ts';

const MAIN = path.resolve(import.meta.dirname, '../../support/search-without-simd-main.ts');
const SPACE = { modelNo: 1, dimensions: DIMENSIONS, encoding: 'int5' } as const;

describe('a file of vectors', () => {
  const random = randomVectors(21);
  const vectors = Array.from({ length: 5_000 }, (_, i) => ({ vectorNo: i + 1, embedding: random() }));
  const embedding = random();
  let store: ReturnType<typeof openTemporaryStore>;
  beforeEach(() => {
    store = openTemporaryStore();
    const index = openStoredIndex(store, SPACE);
    store.write(() =>
      index.add(vectors.map((vector) => ({ ...vector, memory: vector.vectorNo, userNo: 0, role: 'whole' }))),
    );
  });
  afterEach(() => store.remove());
  const search = (choice: 'wasm' | 'js' | 'vec0', k: number) =>
    openStoredIndex(store, SPACE, { choice }).search({ embedding, purpose: 'rank', k });

  test('is searched by any index at any time: nothing in it says which', () => {
    expect(search('js', 50)).toEqual(search('wasm', 50));
    const similarityOf = (vector: Float32Array) =>
      cosine(embedding, decodeVector(encodeVector(vector, 'int5'), 'int5', DIMENSIONS));
    const exact = vectors
      .map((vector) => ({ vectorNo: vector.vectorNo, similarity: similarityOf(vector.embedding) }))
      .sort((a, b) => b.similarity - a.similarity)
      .map(({ vectorNo }) => vectorNo);
    expect(search('vec0', 50)).toEqual(exact.slice(0, 50));
    expect(exact.slice(0, 10).every((vectorNo) => search('js', 200).includes(vectorNo))).toBe(true);
  });

  // V8 needs SSE4.1 for WebAssembly's vectors on x64, and there alone a flag takes it away.
  test.runIf(process.arch === 'x64')('is searched by JavaScript on a machine without WebAssembly SIMD', () => {
    const args = ['--no-enable-sse4-1', MAIN, store.path, JSON.stringify([...embedding])];
    const answer = JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as Record<string, unknown>;
    expect(answer).toEqual({
      hasWasmKernels: false,
      found: search('wasm', 20),
      refusal: expect.stringContaining('OM_VECTOR_INDEX=wasm') as string,
    });
  });
});

test('wasm is accepted where it runs, as it does here', () => {
  expect(hasWasmKernels()).toBe(true);
  for (const choice of ['auto', 'wasm', 'js', 'vec0'] as const) expect(() => requireVectorIndex(choice)).not.toThrow();
});

test.each(['wasm', 'js', 'vec0'])('memories are linked and found with OM_VECTOR_INDEX=%s', async (choice) => {
  await using fixture = await openTestEngine({ settings: { OM_VECTOR_INDEX: choice } });
  const first = await fixture.add({ content: 'the brass lamp in the hall is lit at dusk' });
  await fixture.add({ content: 'a boat leaves the harbour at dawn' });
  const again = await fixture.add({ content: 'the brass lamp in the hall is lit at dusk again' });
  await fixture.drain();
  const { hits } = await fixture.tenant.query({ query: 'brass lamps in halls', k: 2, filter: {}, explain: true });
  expect(hits.map(({ memory }) => memory.id).sort()).toEqual([first.id, again.id].sort());
  expect(fixture.get(`SELECT count(*) FROM edges WHERE type = 'waypoint'`)).toBeGreaterThan(0);
  await fixture.tenant.deleteMemory(first.id);
  const after = await fixture.tenant.query({ query: 'brass lamps in halls', k: 5, filter: {} });
  expect(after.hits.map(({ memory }) => memory.id)).not.toContain(first.id);
});
