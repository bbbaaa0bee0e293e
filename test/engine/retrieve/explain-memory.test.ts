import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/engine/ports.ts';
import { explainMemory } from '../../../src/engine/retrieve/explain-memory.ts';
import { inspect } from '../../../src/engine/retrieve/inspect.ts';
import { createTrials, MAX_TRIALS } from '../../../src/engine/retrieve/remedy-trials.ts';
import { runStages, type RetrieveContext } from '../../../src/engine/retrieve/retrieve.ts';
import { readMemories } from '../../../src/engine/store/memories.ts';
import { createWorkBudget } from '../../../src/engine/store/work-budget.ts';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import type { AsOf, MemoryQuery } from '../../../src/engine/types.ts';
import { dumpTables, openTestEngine, START, type TestEngine } from '../../support/engine-fixture.ts';
import { newMemory } from '../../support/new-memory.ts';

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
    // All hold the words; the one asked for holds them once in the longest text, so that it is last of 40 in either
    // list.
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
    const metadata = Object.fromEntries(Array.from({ length: 32 }, (_, place) => [`key ${place}`, 'no']));
    const filter = { userIds: ['bounded'], tags: ['b'], types: ['none'], sessionIds: ['none'], metadata };
    const explanation = await explainMemory(counting, ask('bounded', 'bounded', { filter }), id);
    expect(explanation.failedFilters).toHaveLength(3 + 32);
    expect(explanation.changes).toBeNull();
    expect(reads).toBeLessThanOrEqual(MAX_TRIALS + 2);
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

describe('looking back, a remedy speaks of what was recorded then', () => {
  const day = (number: number) => START + number * DAY_MS;
  /** Asks, checks that the changes bring it back, and returns them. */
  async function changesFor({ tenant }: TestEngine, id: string, asOf: AsOf | undefined) {
    const query = { query: 'chairs', k: 3, filter: {}, ...NO_FLOORS, reinforce: false };
    const explanation = await tenant.explain({ ...query, asOf }, id);
    expect(explanation.outcome).toBe('filtered');
    expect(Object.keys(explanation.changes!)).toEqual(['as_of']);
    const { as_of: changed } = explanation.changes as unknown as { as_of: AsOf };
    const { hits } = await tenant.query({ ...query, asOf: changed });
    expect(hits.map(({ memory }) => memory.id)).toContain(id);
    return { changed, remedies: explanation.remedies };
  }

  test('when it was to hold, before that was corrected', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: 'Sale of chairs.', eventTime: day(0), validFrom: day(30) });
    await fixture.drain();
    fixture.clock.set(day(10));
    await fixture.tenant.patchMemory(id, { validFrom: day(0) });
    expect(await changesFor(fixture, id, { recorded: day(5) })).toEqual({
      changed: { valid: day(30), recorded: day(5) },
      remedies: [`it did not hold then: set as_of.valid to ${day(30)}`],
    });
  });

  test('where it never held by what was recorded then, what was recorded later', async () => {
    await using fixture = await openTestEngine();
    const span = { eventTime: day(3), validFrom: day(0), validTo: day(1) };
    const { id } = await fixture.add({ content: 'Sale of chairs.', ...span });
    await fixture.drain();
    fixture.clock.set(day(10));
    await fixture.tenant.patchMemory(id, { validTo: null });
    expect((await changesFor(fixture, id, { recorded: day(5) })).changed).toEqual({ valid: day(3) });
  });

  test('where it never held by what is recorded now, what was recorded before the change', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: 'Sale of chairs.', eventTime: day(3) });
    await fixture.drain();
    fixture.clock.set(day(10));
    await fixture.tenant.patchMemory(id, { validFrom: day(0), validTo: day(1) });
    const changed = { valid: day(3), recorded: day(10) - 1 };
    expect((await changesFor(fixture, id, undefined)).changed).toEqual(changed);
    expect((await changesFor(fixture, id, { recorded: day(11) })).changed).toEqual(changed);
  });

  test('what was recorded before the change, without the sectors that do not go with it', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const { id } = await fixture.add({ content: 'Sale of chairs.', eventTime: day(3), validTo: day(9) });
    const ended = await fixture.add({ content: 'Sale of chairs in the hall.', eventTime: day(3), validTo: day(1) });
    await fixture.drain();
    clock.set(day(10));
    await tenant.patchMemory(id, { validTo: day(1) });
    await tenant.patchMemory(ended.id, { tags: ['hall'] });
    const { primarySector } = await tenant.getMemory(id);
    const query = { query: 'chairs', k: 3, filter: { sectors: [primarySector] }, ...NO_FLOORS, reinforce: false };
    const { outcome, changes, remedies } = await tenant.explain(query, id);
    const asOf = { valid: day(3), recorded: day(10) - 1 };
    expect(outcome).toBe('filtered');
    expect(changes).toEqual({ as_of: asOf, 'filters.sectors': null, 'filters.sector': null });
    expect(remedies).toEqual([expect.stringContaining('remove filters.sectors')]);
    const { hits } = await tenant.query({ ...query, filter: {}, asOf });
    expect(hits.map(({ memory }) => memory.id)).toContain(id);
    // No state that was recorded of the other one helps.
    expect(await tenant.explain(query, ended.id)).toMatchObject({
      outcome: 'filtered',
      failedFilters: ['validity'],
      remedies: ['it ended before it happened: no as_of reaches it'],
      changes: null,
    });
  });

  test('where one that was stored later had held before it, what was recorded until then', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const old = await fixture.add({ content: 'Sale of chairs.', eventTime: day(5) });
    clock.set(day(10));
    const newer = await fixture.add({ content: 'Nothing is for sale.', eventTime: day(2) });
    clock.set(day(11));
    await tenant.supersedeMemory({ oldId: old.id, newId: newer.id });
    await fixture.drain();
    expect((await changesFor(fixture, old.id, { valid: day(6) })).changed).toEqual({
      valid: day(5),
      recorded: day(11) - 1,
    });
  });

  test('a status counts as it was', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: 'Sale of chairs.' });
    await fixture.drain();
    fixture.clock.set(day(10));
    await fixture.tenant.patchMemory(id, { status: 'archived' });
    fixture.clock.set(day(20));
    const query = { query: 'chairs', k: 3, filter: { statuses: ['superseded' as const] }, ...NO_FLOORS };
    const { changes } = await fixture.tenant.explain({ ...query, asOf: { recorded: day(5) } }, id);
    expect(changes).toEqual({ 'filters.statuses': ['superseded', 'active'] });
  });
});

test('changes that only help together are found together, and none that is not needed', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  // All hold the word, and the longest text fits worst. Only a link from it leads to the one asked for, which is found
  // in no list.
  for (let place = 0; place < 10; place += 1) await fixture.add({ content: `Tide ${place}.` });
  const last = await fixture.add({ content: `A tide, ${'and many words that say nothing of it '.repeat(10)}` });
  const { id } = await fixture.add({ content: 'Bread rises slowly.' });
  await fixture.drain();
  await fixture.tenant.linkMemories({ src: id, dst: last.id, type: 'supports' });
  const query: MemoryQuery = {
    query: 'tide',
    k: 3,
    kSparse: 5,
    filter: {},
    minScore: 0.9,
    relativeFloor: 0,
    entityGraph: false,
  };
  const { outcome, changes, remedies } = await fixture.tenant.explain(query, id);
  expect(outcome).toBe('no_match');
  expect(changes).toEqual({ min_score: 0, k_sparse: 1_000, k: 200 });
  expect(remedies).toEqual(['lower min_score to 0', 'raise k_sparse to 1000', 'raise k to 200']);
  const returns = async (changed: Partial<MemoryQuery>) =>
    (await fixture.tenant.query({ ...query, reinforce: false, ...changed })).hits.some(
      ({ memory }) => memory.id === id,
    );
  expect(await returns({ minScore: 0, kSparse: 1_000, k: 200 })).toBe(true);
  expect(await returns({ minScore: 0, kSparse: 1_000 })).toBe(false);
  expect(await returns({ minScore: 0, k: 200 })).toBe(false);
});

test('of two that say nearly the same and are in no list, the second comes back with changes together', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  for (let place = 0; place < 10; place += 1) await fixture.add({ content: `Tide ${place}.` });
  const last = await fixture.add({ content: `A tide, ${'and many words that say nothing of it '.repeat(10)}` });
  const told = (oven: number) =>
    newMemory({ content: `Bread of all bakers in town rises slowly every morning before seven in oven ${oven}.` });
  const { outcomes } = await fixture.tenant.as('ann').addMemories([told(1), told(2)]);
  const twins = outcomes.filter((added) => added.kind === 'accepted').map(({ id }) => id);
  await fixture.drain();
  for (const src of twins) await fixture.tenant.linkMemories({ src, dst: last.id, type: 'supports' });
  const query: MemoryQuery = { query: 'tide', k: 3, kSparse: 5, filter: {}, minScore: 0.9, relativeFloor: 0 };
  const wide = { k: 200, kSparse: 1_000, minScore: 0 };
  const { hits } = await fixture.tenant.query({ ...query, ...wide, reinforce: false });
  const [second, ...others] = twins.filter((id) => !hits.some(({ memory }) => memory.id === id));
  expect(others).toEqual([]);
  const { outcome, changes } = await fixture.tenant.explain({ ...query, entityGraph: false }, second!);
  expect(outcome).toBe('no_match');
  expect(changes).toEqual({ collapse_similar: false, min_score: 0, k_sparse: 1_000, k: 200 });
});

test('what found no room in a text without a token budget comes back with one', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const ids: string[] = [];
  for (let place = 0; place < 5; place += 1) {
    ids.push((await fixture.add({ content: `Ledger ${place}. `.padEnd(250 * 1024, 'tide ') })).id);
  }
  await fixture.drain();
  const query: MemoryQuery = { query: 'ledger', k: 5, filter: {}, ...NO_FLOORS, format: 'prompt', reinforce: false };
  const { hits } = await fixture.tenant.query(query);
  expect(hits).toHaveLength(4);
  const missing = ids.find((id) => !hits.some(({ memory }) => memory.id === id))!;
  const { outcome, remedies, changes } = await fixture.tenant.explain(query, missing);
  expect([outcome, remedies]).toEqual([
    'over_budget',
    [expect.stringMatching(/^others fill the text that is made without a token_budget: set it to \d+$/)],
  ]);
  const { token_budget: tokenBudget } = changes as { token_budget: number };
  const wider = await fixture.tenant.query({ ...query, tokenBudget });
  expect(wider.hits.map(({ memory }) => memory.id)).toContain(missing);
});

test('a budget that ends while a second change is tried names that change alone', async () => {
  await using fixture = await openTestEngine();
  const { id } = await fixture.add({ content: 'The tram runs at night.', userId: 'trials' });
  await fixture.drain();
  let now = 0;
  const budget = createWorkBudget({ bytes: 1_000_000_000, deadlineMs: 100 }, () => now);
  const context: RetrieveContext = { ...contextOf(fixture, async () => null), budget };
  const request = ask('night tram', 'trials', { k: 1, filter: { userIds: ['trials'], tags: ['missing'] } });
  const recall = await runStages(context, request);
  const inspection = context.store.read(() => inspect(context, recall, id));
  const { attempt, notTried } = createTrials(context, { request, recall, inspection, signal: undefined });
  const widened = { ...request, filter: { userIds: ['trials'] } };
  expect((await attempt(widened))?.inspection.outcome).toBe('returned');
  now = 101;
  budget.spend(2_000_000);
  expect(await attempt({ ...widened, k: 2 })).toBeUndefined();
  expect([...notTried]).toEqual(['k']);
  expect(await attempt({ ...request, k: 2, minScore: 0.5, filter: {} })).toBeUndefined();
  expect([...notTried].sort()).toEqual(['filters', 'k', 'min_score']);
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
