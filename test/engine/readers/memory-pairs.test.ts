import { expect, onTestFinished, test } from 'vitest';
import { readNearDuplicates } from '../../../src/engine/readers/near-duplicates.ts';
import { pairsWork } from '../../conformance/pairs-work.ts';
import { newMemory, openTestEngine, START, type TestMemory } from '../../support/engine-fixture.ts';
import { newDocument, upload } from '../../support/new-document.ts';
import { linkInPairs } from '../../support/link-in-pairs.ts';

const WORK = ['work'];

/** Memories of which each two that follow each other are near duplicates and a proposed contradiction. */
async function withPairs(memories: readonly TestMemory[]) {
  const fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  onTestFinished(() => fixture.close());
  await fixture.tenant.addMemories(memories.map((memory) => newMemory(memory)));
  linkInPairs(fixture.store, (at) => ({ similarity: 0.99 - at / 10_000, foundAt: START - at }));
  return fixture;
}

test('lists of pairs count what they leave out, and end with their work', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  await pairsWork(fixture);
});

test('pairs with an expired memory do not take the place of others', async () => {
  const expiresAt = START + 1_000;
  const { tenant, clock } = await withPairs([
    { content: 'a', expiresAt },
    { content: 'b' },
    { content: 'c' },
    { content: 'd', expiresAt },
    { content: 'e' },
    { content: 'f' },
  ]);
  const first = async () => [
    ...(await tenant.listProposals({ limit: 1 })),
    ...(await tenant.listNearDuplicates({ leastSimilarity: 0.8, limit: 1 })).items,
  ];
  const pair = (earlier: string, later: string) => ({ earlier: { content: earlier }, later: { content: later } });
  expect(await first()).toMatchObject([pair('a', 'b'), pair('a', 'b')]);
  clock.set(expiresAt);
  expect(await first()).toMatchObject([pair('e', 'f'), pair('e', 'f')]);
});

test('pairs with a part of a document that queries do not find are not listed', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const { tenant, store } = fixture;
  await tenant.addDocument(newDocument(await upload(tenant, 'Herons eat frogs.')));
  await fixture.drain();
  store.prepare('DELETE FROM edges').run();
  linkInPairs(store, () => ({ similarity: 0.99, foundAt: START }));
  const lists = async () => [
    ...(await tenant.listProposals({ limit: 5 })),
    ...(await tenant.listNearDuplicates({ leastSimilarity: 0.8, limit: 5 })).items,
  ];
  expect(await lists()).toHaveLength(2);
  store.prepare('UPDATE document_generations SET hidden = 1').run();
  expect(await lists()).toEqual([]);
});

test('a proposal within tags is found behind any number of others', async () => {
  const { tenant, store } = await withPairs(
    Array.from({ length: 152 }, (_, no) => ({ content: `${no}`, tags: no < 2 ? WORK : ['hr'] })),
  );
  const others = store.prepare(
    `INSERT OR IGNORE INTO edges (src, dst, type, similarity, weight, automatic, winner, created_at, updated_at)
     SELECT a.seq, b.seq, 'contradicts', 0.9, 0.9, 1, NULL, ?, ? FROM memories a CROSS JOIN memories b
     WHERE a.seq < b.seq AND a.seq > (SELECT min(seq) + 1 FROM memories)`,
  );
  expect(others.run(START + 1, START + 1).changes).toBeGreaterThan(10_000);
  const own = { earlier: { content: '0' }, later: { content: '1' } };
  expect(await tenant.listProposals({ limit: 5, withinTags: WORK })).toMatchObject([own]);
});

test('near duplicates within tags are found though there are too many to look at', async () => {
  const { batch } = await withPairs(
    Array.from({ length: 400 }, (_, no) => ({ content: `${no}`, tags: no < 2 ? WORK : ['hr'] })),
  );
  // Bytes for some 190 of the 200 pairs.
  const context = { ...batch, tracing: null, querySourceOf: () => null, threads: 1 };
  const config = { ...batch.config, OM_QUERY_WORK_MB: 6_000 / 1_048_576 };
  const asked = { leastSimilarity: 0.8, limit: 5, withinTags: WORK };
  expect(readNearDuplicates({ ...context, config }, asked)).toMatchObject({
    items: [{ earlier: { content: '0' }, later: { content: '1' } }],
    isCut: true,
  });
});
