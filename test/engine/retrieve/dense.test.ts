import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { createHashedEmbedder } from '../../../src/engine/adapters/hashed-embedder.ts';
import { openBitIndex } from '../../../src/engine/adapters/bit-index/bit-index.ts';
import { type DenseResult, searchVectors } from '../../../src/engine/retrieve/dense.ts';
import { NARROW_SCOPE, planQuery } from '../../../src/engine/retrieve/plan.ts';
import { modelNumber } from '../../../src/engine/store/embeddings.ts';
import { openStore } from '../../../src/engine/store/open-store.ts';
import { cosine } from '../../../src/engine/store/vector-encoding.ts';
import { insertVector, MEAN_WINDOW } from '../../../src/engine/store/vectors.ts';
import type { MemoryQuery } from '../../../src/engine/types.ts';
import { type SeedMemory, seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2025, 0, 1);
const LIMIT = 10;

test('a large scope is scanned where all that the index finds lies outside it', async () => {
  const embedder = createHashedEmbedder({ dimensions: 256 });
  const store = openStore(path.join(tempFolder(), 'dense.sqlite'), { role: 'worker', create: true });
  const modelNo = store.write(() => modelNumber(store, embedder, NOW));
  const index = openBitIndex(store, { modelNo, dimensions: 256, encoding: embedder.encoding });
  // 1,000 near and outside the filter, more than the index gives when asked again; inside it one that is less near, and
  // the crowd.
  const outside = Array.from({ length: 1_000 }, (_, number): SeedMemory => ({
    content: `baking rye bread at home ${number}`,
  }));
  const crowd = Array.from({ length: NARROW_SCOPE + 100 }, (_, number): SeedMemory => ({
    content: `lantern ${number} on the glacier`,
    tags: ['trip'],
  }));
  const [best] = await seedMemories(
    store,
    [{ content: 'rye bread for the trip to the glacier', tags: ['trip'] }, ...outside, ...crowd],
    NOW,
    { embedder, index },
  );

  const query = 'baking rye bread at home';
  const plan = planQuery(store, { query, k: LIMIT, filter: { tags: ['trip'] } }, NOW);
  expect(plan.scope.kind).toBe('wide');
  const vector = { ...embedder, embedding: embedder.embedOne(query, 'query'), modelNo };
  const found = searchVectors(store, { plan, query: vector, index, limit: LIMIT });
  expect(found.hits).toHaveLength(LIMIT);
  expect(found.hits[0]!.memoryNo).toBe(best!.memoryNo);
  expect(found.hits).toEqual(searchVectors(store, { plan, query: vector, index: null, limit: LIMIT }).hits);
  expect(found.note).toContain('exact scan');
  store.close();
});

/** A file with an index, searched by `ask`. */
async function vectorStore(memories: readonly SeedMemory[]) {
  const embedder = createHashedEmbedder({ dimensions: 256 });
  const store = openStore(path.join(tempFolder(), 'vectors.sqlite'), { role: 'worker', create: true });
  const modelNo = store.write(() => modelNumber(store, embedder, NOW));
  const index = openBitIndex(store, { modelNo, dimensions: 256, encoding: embedder.encoding });
  const memoryNos = (await seedMemories(store, memories, NOW, { embedder, index })).map(({ memoryNo }) => memoryNo);
  const vectorOf = (query: string) => ({ ...embedder, embedding: embedder.embedOne(query, 'query'), modelNo });
  const ask = (query: Partial<MemoryQuery> & { readonly query: string }, limit = LIMIT) => {
    const plan = planQuery(store, { k: limit, filter: {}, ...query }, NOW);
    return { plan, ...searchVectors(store, { plan, query: vectorOf(query.query), index, limit }) };
  };
  return { store, embedder, modelNo, index, memoryNos, ask, [Symbol.dispose]: () => store.close() };
}

test('a long memory stands where its best window does, not where its mean does', async () => {
  using fixture = await vectorStore([
    { content: 'lamps and tables and chairs' },
    { content: 'a walk along the harbour wall in the evening' },
  ]);
  const { store, embedder, modelNo, index, memoryNos, ask } = fixture;
  const [long, short] = memoryNos as [number, number];
  const space = { modelNo, dimensions: 256, encoding: embedder.encoding };
  const add = (windowNo: number, text: string, role: 'window' | 'mean') => {
    const embedding = embedder.embedOne(text, 'document');
    const vector = { memory: long, userNo: 0, windowNo, role, embedding, textHash: null };
    index.add([{ ...vector, vectorNo: insertVector(store, space, vector) }]);
  };
  store.write(() => {
    add(1, 'the harbour wall', 'window');
    add(MEAN_WINDOW, 'lamps and tables and chairs the harbour wall', 'mean');
  });
  const { hits } = ask({ query: 'the harbour wall' });
  expect(hits.map(({ memoryNo, window }) => [memoryNo, window])).toEqual([
    [long, 1],
    [short, 0],
  ]);
  const exact = cosine(
    embedder.embedOne('the harbour wall', 'query'),
    embedder.embedOne('the harbour wall', 'document'),
  );
  expect(Math.abs(hits[0]!.similarity - exact)).toBeLessThan(0.01);
});

test.each(['int5', 'float32'] as const)(
  'what a user has of a larger file is compared alike by the numbers of its vectors and memory by memory: %s',
  async (encoding) => {
    const embedder = { ...createHashedEmbedder({ dimensions: 256 }), encoding };
    const store = openStore(path.join(tempFolder(), 'users.sqlite'), { role: 'worker', create: true });
    const modelNo = store.write(() => modelNumber(store, embedder, NOW));
    const index = openBitIndex(store, { modelNo, dimensions: 256, encoding });
    const memories = Array.from({ length: 300 }, (_, number): SeedMemory => ({
      content: `${['lantern', 'harbour', 'bread'][number % 3]!} ${number} by the wall`,
      userId: `u${number % 5}`,
      tags: number % 2 === 0 ? ['even'] : [],
    }));
    await seedMemories(store, memories, NOW, { embedder, index });
    const text = 'bread by the harbour';
    const vector = { ...embedder, embedding: embedder.embedOne(text, 'query'), modelNo };
    const expectAlike = (filter: MemoryQuery['filter'], count: number) => {
      const plan = planQuery(store, { query: text, k: LIMIT, filter }, NOW);
      const [byNumber, byMemory] = [index, null].map((one) =>
        searchVectors(store, { plan, query: vector, index: one, limit: LIMIT }),
      ) as [DenseResult, DenseResult];
      expect(plan.scope).toMatchObject({ kind: 'narrow' });
      expect(byNumber.hits).toEqual(byMemory.hits);
      const inOrder = ({ compared }: DenseResult) => compared!.toSorted((a, b) => a.memoryNo - b.memoryNo);
      expect(inOrder(byNumber)).toEqual(inOrder(byMemory));
      expect(byNumber.compared).toHaveLength(count);
    };
    expectAlike({ userIds: ['u1'] }, 60);
    expectAlike({ userIds: ['u1'], tags: ['even'] }, 30);
    expectAlike({ userIds: ['u1', 'nobody'] }, 60);
    expectAlike({ userIds: ['u1', 'u2'] }, 120);
    // As in the middle of making the index anew.
    store.write(() => index.clear());
    expectAlike({ userIds: ['u1'] }, 60);
    store.close();
  },
);

test('the filter comes before the limit', async () => {
  const near = Array.from({ length: 30 }, (_, number): SeedMemory => ({
    content: `fresh rye bread ${number}`,
    userId: 'ann',
  }));
  using fixture = await vectorStore([...near, { content: 'bread, and much else besides', userId: 'bob' }]);
  const { hits, note } = fixture.ask({ query: 'fresh rye bread', filter: { userIds: ['bob'] } }, 1);
  expect(hits.map(({ memoryNo }) => memoryNo)).toEqual([fixture.memoryNos.at(-1)]);
  expect(note).toBe('exact scan');
});

describe('where the query says what kind of memory it is after', () => {
  const query = 'How do I install the printer driver, step by step?';
  const filler = Array.from({ length: NARROW_SCOPE + 50 }, (_, number): SeedMemory => ({
    content: `printer driver version ${number}`,
    sectors: ['semantic'],
  }));
  const steps: SeedMemory = { content: 'First run the setup, then plug in the printer', sectors: ['procedural'] };
  const mood: SeedMemory = { content: 'the printer driver drives me mad', sectors: ['emotional', 'procedural'] };

  test.each([
    ['a small file', 20, 'procedural: exact scan'],
    ['a large one', filler.length, 'procedural: exact scan, since little that the index found passes'],
  ])('the nearest of that sector are found in %s', async (_, size, note) => {
    using fixture = await vectorStore([...filler.slice(0, size), steps, mood]);
    const found = fixture.ask({ query, denseSectors: 'candidate' }, 2);
    expect(found.plan.denseSectors).toEqual(['procedural']);
    // A memory is of its additional sectors, too.
    expect(found.hits.map(({ memoryNo }) => memoryNo).sort()).toEqual(fixture.memoryNos.slice(-2));
    expect(found.note).toBe(note);
    // All at once, what is nearer in words takes both places.
    expect(fixture.ask({ query }, 1).hits.map(({ memoryNo }) => memoryNo)).not.toContain(fixture.memoryNos.at(-2));
  });

  test('each sector gives its own nearest, and a memory of two of them stands once', async () => {
    using fixture = await vectorStore([...filler.slice(0, 20), steps, mood]);
    const { store, embedder, modelNo, index, ask } = fixture;
    const { plan } = ask({ query });
    const vector = { ...embedder, embedding: embedder.embedOne(query, 'query'), modelNo };
    const sectors = ['procedural', 'emotional', 'semantic'] as const;
    const { hits, note } = searchVectors(store, {
      plan: { ...plan, denseSectors: sectors },
      query: vector,
      index,
      limit: 3,
    });
    // 2 procedural ones, one of them emotional, and 3 of 20 semantic ones.
    expect(hits).toHaveLength(5);
    expect(hits.map(({ similarity }) => similarity)).toEqual(
      hits.map(({ similarity }) => similarity).sort((a, b) => b - a),
    );
    expect(note).toBe('procedural: exact scan; emotional: exact scan; semantic: exact scan');
  });

  test('all sectors are searched at once if it does not', async () => {
    using fixture = await vectorStore(filler.slice(0, 20));
    const found = fixture.ask({ query: 'printer driver', denseSectors: 'candidate' });
    expect(found.plan.denseSectors).toBeNull();
    expect(found.note).toBe('exact scan');
  });
});
