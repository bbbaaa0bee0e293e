import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/engine/ports.ts';
import { explainMemory } from '../../../src/engine/retrieve/explain-memory.ts';
import { TRIALS_MOST } from '../../../src/engine/retrieve/remedies.ts';
import type { RetrieveContext } from '../../../src/engine/retrieve/retrieve.ts';
import { readMemories } from '../../../src/engine/store/memories.ts';
import type { MemoryQuery } from '../../../src/engine/types.ts';
import { dumpTables, openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';

const NO_FLOORS = { minScore: 0, relativeFloor: 0 } as const;

function ask(query: string, userId: string, more: Partial<MemoryQuery> = {}): MemoryQuery {
  return { query, k: 8, filter: { userIds: [userId] }, ...NO_FLOORS, ...more };
}

describe('with vectors', () => {
  let fixture: TestEngine;
  beforeAll(async () => void (fixture = await openTestEngine()));
  afterAll(() => fixture.close());

  test('terms are told apart by where they stand: in the memory, only in what was said before it, or nowhere', async () => {
    await fixture.add({ content: 'Shall we paint the shed?', userId: 'terms', sessionId: 's' });
    const { id } = await fixture.add({ content: 'Yes, on Saturday.', userId: 'terms', sessionId: 's' });
    await fixture.drain();
    expect((await fixture.tenant.explain(ask('paint shed Saturday zebra', 'terms'), id)).terms).toEqual({
      matched: ['saturday'],
      inContext: ['paint', 'shed'],
      missed: ['zebra'],
    });
  });

  test('one that waits for its vector says so, and has the exact cosine once it has one', async () => {
    const { id } = await fixture.add({ content: 'Marmalade recipe of my aunt.', userId: 'late' });
    const query = ask('quarterly invoices', 'late');
    expect(await fixture.tenant.explain(query, id)).toMatchObject({
      outcome: 'no_match',
      cosine: null,
      changes: null,
      remedies: ['it shares no word with the query', 'it has no vector yet: it waits for encoding'],
    });
    await fixture.drain();
    const later = await fixture.tenant.explain(query, id);
    expect(later.cosine).toBeCloseTo(later.explain!.dense!.similarity, 6);
  });

  test('one whose job was cancelled says that it will get no vector by itself', async () => {
    const { id, jobId } = await fixture.add({ content: 'Marmalade jars are in the loft.', userId: 'cancelled' });
    await fixture.tenant.cancelJob(jobId);
    expect((await fixture.tenant.explain(ask('quarterly invoices', 'cancelled'), id)).remedies).toContain(
      'it has no vector, as its job failed or was cancelled: retry the job',
    );
  });

  test('a chain of changes ends with the memory found, and each of them was needed', async () => {
    const content =
      'The lighthouse keeper wrote about the storm, the ships, the rocks and the long dark nights of winter.';
    const { id } = await fixture.add({ content, userId: 'chain', tags: ['log'] });
    for (let day = 0; day < 12; day += 1) {
      await fixture.add({ content: `Lighthouse storm, day ${day}.`, userId: 'chain', tags: ['log', 'short'] });
    }
    await fixture.drain();
    const query = ask('lighthouse storm', 'chain', {
      k: 2,
      minScore: 0.999,
      filter: { userIds: ['chain'], tags: ['short'] },
    });
    const { changes, remedies } = await fixture.tenant.explain(query, id);
    expect(Object.keys(changes!)).toEqual(['filters.tags', 'min_score', 'k']);
    expect(remedies).toHaveLength(3);
    const { min_score: minScore, k } = changes as { min_score: number; k: number };
    const returns = async (changed: Partial<MemoryQuery>) =>
      (await fixture.tenant.query({ ...query, reinforce: false, ...changed })).hits.some(
        ({ memory }) => memory.id === id,
      );
    const filter = { userIds: ['chain'] };
    expect(await returns({ filter, minScore, k })).toBe(true);
    expect(await returns({ minScore, k })).toBe(false);
    expect(await returns({ filter, k })).toBe(false);
    expect(await returns({ filter, minScore })).toBe(false);
  });

  test('one that a list of candidates was too short for comes back with a longer list', async () => {
    // All hold the words; the one asked for holds them once in the longest text, so that it is last of 40 in either list.
    for (let day = 0; day < 40; day += 1) await fixture.add({ content: `Tide table ${day}.`, userId: 'lists' });
    const { id } = await fixture.add({
      content:
        'Among many other papers that nobody had looked at for years lay a tide chart and half a table of fares.',
      userId: 'lists',
    });
    await fixture.drain();
    const query = ask('tide table', 'lists', { k: 200, kSparse: 5, kDense: 5, maxHops: 0, entityGraph: false });
    const { outcome, changes } = await fixture.tenant.explain(query, id);
    expect(outcome).toBe('not_a_candidate');
    const { k_sparse: kSparse, k_dense: kDense } = changes as { k_sparse?: number; k_dense?: number };
    const { hits } = await fixture.tenant.query({
      ...query,
      kSparse: kSparse ?? 5,
      kDense: kDense ?? 5,
      reinforce: false,
    });
    expect(hits.map(({ memory }) => memory.id)).toContain(id);
  });

  test('a provider that failed is asked once, not once a trial', async () => {
    const { id } = await fixture.add({ content: 'Violets are planted by the wall.', userId: 'down' });
    await fixture.drain();
    let calls = 0;
    const context = contextOf(fixture, async () => {
      calls += 1;
      return null;
    });
    const explanation = await explainMemory(context, ask('engine oil', 'down', { k: 1 }), id);
    expect(calls).toBe(1);
    expect(explanation).toMatchObject({
      outcome: 'no_match',
      changes: null,
      remedies: ['it shares no word with the query', 'the embedding provider did not answer: words alone decided'],
    });
  });

  test('asks a bounded number of queries, whatever keeps the memory out', async () => {
    const { id } = await fixture.add({ content: 'Bounded in every way.', userId: 'bounded', tags: ['a'] });
    await fixture.drain();
    const context = contextOf(fixture, async () => new Float32Array(fixture.engine.embedder!.dimensions).fill(1));
    let reads = 0;
    const counting: RetrieveContext = { ...context, clock: { now: () => ((reads += 1), fixture.clock.now()) } };
    const metadata = Object.fromEntries(Array.from({ length: 64 }, (_, place) => [`key ${place}`, 'no']));
    const filter = { userIds: ['other'], tags: ['b'], types: ['none'], sessionIds: ['none'], metadata };
    const explanation = await explainMemory(counting, ask('bounded', 'bounded', { filter }), id);
    expect(explanation.failedFilters).toHaveLength(4 + 64);
    expect(explanation.changes).toBeNull();
    expect(reads).toBeLessThanOrEqual(TRIALS_MOST + 2);
  });
});

test('changes nothing in the file, also where the request asks to reinforce', async () => {
  const fixture = await openTestEngine();
  const { id } = await fixture.add({ content: 'The boat is called Petrel.' });
  await fixture.drain();
  const before = dumpTables(fixture.store);
  fixture.clock.advanceDays(3);
  const { outcome } = await fixture.tenant.explain({ query: 'boat', k: 3, filter: {}, reinforce: true }, id);
  expect(outcome).toBe('returned');
  await fixture.close();
  await using again = await openTestEngine({ file: fixture.file });
  expect(dumpTables(again.store)).toEqual(before);
});

test('with words alone there is no cosine, and a memory without a shared word has no remedy', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const { id } = await fixture.add({ content: 'Tulips bloom in April.' });
  await fixture.drain();
  expect(await fixture.tenant.explain({ query: 'invoice 4711', k: 3, filter: {} }, id)).toMatchObject({
    outcome: 'no_match',
    cosine: null,
    explain: null,
    remedies: ['it shares no word with the query'],
    changes: null,
  });
});

test('what ended before it happened is beyond every as_of', async () => {
  await using fixture = await openTestEngine();
  const { id } = await fixture.add({ content: 'Sale of chairs.', eventTime: 2_000, validFrom: 0, validTo: 1_000 });
  await fixture.drain();
  expect(await fixture.tenant.explain({ query: 'sale of chairs', k: 3, filter: {} }, id)).toMatchObject({
    outcome: 'filtered',
    failedFilters: ['validity'],
    remedies: ['it ended before it happened: no as_of reaches it'],
    changes: null,
  });
});

function contextOf(fixture: TestEngine, embedQuery: RetrieveContext['embedQuery']): RetrieveContext {
  const { store, space, index } = fixture.batch.open();
  return {
    store,
    index,
    modelNo: space!.modelNo,
    embedder: fixture.engine.embedder,
    embedQuery,
    languageModel: null,
    logger: silentLogger,
    clock: fixture.clock,
    defaults: [],
    newId: () => 'recall',
    readMemories,
  };
}
