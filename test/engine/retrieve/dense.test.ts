import path from 'node:path';
import { expect, test } from 'vitest';
import { createHashedEmbedder } from '../../../src/engine/adapters/hashed-embedder.ts';
import { createVec0Index } from '../../../src/engine/adapters/vec0-index.ts';
import { searchVectors } from '../../../src/engine/retrieve/dense.ts';
import { NARROW_SCOPE, planQuery } from '../../../src/engine/retrieve/plan.ts';
import { modelNumber } from '../../../src/engine/store/embeddings.ts';
import { openStore } from '../../../src/engine/store/open-store.ts';
import { type SeedMemory, seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2025, 0, 1);
const LIMIT = 10;

test('a large scope is scanned where all that the index finds lies outside it', async () => {
  const embedder = createHashedEmbedder({ dimensions: 256 });
  const store = openStore(path.join(tempFolder(), 'dense.sqlite'), { role: 'worker', create: true });
  const modelNo = store.write(() => modelNumber(store, embedder, NOW));
  const index = store.write(() => createVec0Index(store, { modelNo, dimensions: 256 }));
  // 500 near and outside the filter, more than the index gives when asked again; inside it one that is less near, and the crowd.
  const outside = Array.from({ length: 500 }, (_, number): SeedMemory => ({
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
  const vector = { embedding: embedder.embedOne(query, 'query'), modelNo, encoding: embedder.encoding };
  const found = searchVectors(store, { plan, query: vector, index, limit: LIMIT });
  expect(found.hits).toHaveLength(LIMIT);
  expect(found.hits[0]!.seq).toBe(best!.seq);
  expect(found.hits).toEqual(searchVectors(store, { plan, query: vector, index: null, limit: LIMIT }).hits);
  expect(found.note).toContain('exact scan');
  store.close();
});
