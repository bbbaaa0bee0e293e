/** What a key that is bound to tags is not told of memories that were, or are by now, outside of its tags. */
import assert from 'node:assert/strict';
import { text as textOf } from 'node:stream/consumers';
import { expect } from 'vitest';
import type { Tenant } from '../../src/engine/engine.ts';
import { isEngineError } from '../../src/engine/errors.ts';
import { type LanguageModel, silentLogger } from '../../src/engine/ports.ts';
import { retrieve } from '../../src/engine/retrieve/retrieve.ts';
import { readMemories } from '../../src/engine/store/memories.ts';
import { boundTenant } from '../../src/engine/tenant/bound-tenant.ts';
import { joined } from '../../src/engine/tenant/memory-lists.ts';
import type { MemoryQuery, RecallPage, StageTrace } from '../../src/engine/types.ts';
import { linkInPairs } from '../support/link-in-pairs.ts';
import { newMemory, START, type TestEngine } from '../support/engine-fixture.ts';
import { importDocument } from '../support/import-document.ts';

const TAGS = ['work'];
const DAY = 86_400_000;
const QUERY: MemoryQuery = { query: 'harbour', k: 10, filter: {}, minScore: 0, relativeFloor: 0 };
const notFound = (error: unknown) => isEngineError(error, 'not_found');

/** Checks that an explanation tells nothing of the fields that a memory had before it came into the bounds. */
async function hidesEarlierFields({ tenant, clock, add }: TestEngine): Promise<void> {
  const { id } = await add({ content: 'The harbour.', tags: ['hr'], metadata: { salary: 91_000 } });
  const recorded = clock.now();
  clock.advance(1_000);
  await tenant.patchMemory(id, { tags: TAGS });
  const bound = boundTenant(tenant, { tags: TAGS });
  for (const least of [90_000, 92_000]) {
    const query = { ...QUERY, filter: { metadata: { salary: { $gt: least } } }, asOf: { recorded } };
    await expect(bound.explain(query, id)).rejects.toSatisfy(notFound);
    const { failedFilters } = await tenant.explain(query, id);
    expect(failedFilters).toEqual(least === 90_000 ? [] : ['filters.metadata.salary']);
  }
  // From the time on at which it has the tags, it is explained.
  expect(await bound.explain({ ...QUERY, asOf: { recorded: clock.now() } }, id)).toMatchObject({ failedFilters: [] });
}

/** Checks that no remedy names a time that a memory told of before it came into the bounds. */
async function proposesNothingEarlier({ tenant, clock, add }: TestEngine): Promise<void> {
  const validFrom = START + 3 * DAY;
  const { id } = await add({ content: 'The harbour.', tags: ['hr'], eventTime: START + 2 * DAY, validFrom });
  clock.advance(10 * DAY);
  await tenant.patchMemory(id, { tags: TAGS, validFrom: START, validTo: START + DAY });
  const bound = boundTenant(tenant, { tags: TAGS });
  const explained = await bound.explain(QUERY, id);
  expect(explained).toMatchObject({ outcome: 'filtered', failedFilters: ['validity'], changes: null });
  expect(explained.remedies.join()).not.toContain(`${validFrom}`);
  expect((await tenant.explain(QUERY, id)).changes).toMatchObject({ as_of: { valid: validFrom } });
}

/** Checks that lists leave out what leaves the bounds after it was listed and before it is read. */
async function readsListsWithinBounds({ tenant }: TestEngine): Promise<void> {
  // Two of them fill a slice.
  const content = 'words '.repeat(40_000);
  for (const no of [1, 2, 3, 4, 5]) {
    await tenant.addMemories([newMemory({ content: `${no} ${content}`, tags: TAGS, sessionId: 'talk' })]);
    const item = { ...newMemory({ content: '' }), content: null, namespace: 'n', key: `${no}`, tags: TAGS };
    await tenant.putItem({ ...item, value: `${no} ${content}` });
  }
  const bound = boundTenant(tenant, { tags: TAGS });
  const filter = { sessionIds: ['talk'] };
  const pageOf = { limit: 100 };
  const place = { userId: '', namespace: 'n' };
  const memories = () => tenant.listMemories(filter, { ...pageOf, offset: 0 });
  const items = async () => (await tenant.listItems(place, pageOf)).items;
  const lists = [
    { whole: memories, open: async () => bound.streamMemories(filter, { ...pageOf, offset: 0 }) },
    { whole: memories, open: async () => listed((await bound.pageMemories(filter, pageOf)).slices) },
    { whole: items, open: async () => listed((await bound.streamItems(place, pageOf)).slices) },
  ];
  for (const { whole, open } of lists) {
    const slices = (await open())[Symbol.asyncIterator]();
    const first = await slices.next();
    assert(first.done !== true);
    const ids = first.value.map(({ id }) => id);
    const leaving = (await whole()).find(({ id }) => !ids.includes(id))!.id;
    await tenant.patchMemory(leaving, { tags: ['private'] });
    for (let slice = await slices.next(); slice.done !== true; slice = await slices.next())
      ids.push(...slice.value.map(({ id }) => id));
    expect(ids).not.toContain(leaving);
    expect(ids).toHaveLength(4);
    await tenant.patchMemory(leaving, { tags: TAGS });
  }
  expect(await bound.listMemories(filter, { ...pageOf, offset: 0 })).toHaveLength(5);
  expect((await bound.listItems(place, pageOf)).items).toHaveLength(5);
}

/** The memories of the slices of a page. */
async function* listed<Item>(slices: AsyncIterable<readonly { readonly memory: Item }[]>) {
  for await (const slice of slices) yield slice.map(({ memory }) => memory);
}

/** Checks that an answer leaves out what leaves the bounds while a language model orders the candidates. */
async function answersWithinBounds(fixture: TestEngine): Promise<void> {
  const { tenant, clock } = fixture;
  const { id: leaving } = await fixture.add({ content: 'A harbour of the team.', tags: TAGS });
  const { id: staying } = await fixture.add({ content: 'The harbour in the rain.', tags: TAGS });
  await fixture.drain();
  const languageModel: LanguageModel = {
    provider: 'test',
    model: 'test',
    async complete() {
      await tenant.patchMemory(leaving, { content: 'A private harbour.', tags: ['private'] });
      return { text: '[1, 2]', inputTokens: 1, outputTokens: 1 };
    },
  };
  const context = {
    ...{ store: fixture.batch.open().store, embedder: null, modelNo: null, index: null, readMemories, languageModel },
    ...{ embedQuery: async () => null, logger: silentLogger, clock, defaults: [], newId: () => 'recall' },
  };
  const query = { ...QUERY, filter: { withinTags: TAGS }, rerank: 'llm' } as const;
  const { hits } = await retrieve(context, query);
  expect(hits.map(({ memory }) => memory.id)).toEqual([staying]);
  const { hits: all } = await retrieve({ ...context, languageModel: null }, QUERY);
  expect(all.map(({ memory }) => memory.id).toSorted()).toEqual([leaving, staying].toSorted());
}

/** Checks that a chunk which was given other tags than its document is not read through the document. */
async function readsChunksWithinBounds({ tenant }: TestEngine): Promise<void> {
  const bound = boundTenant(tenant, { tags: TAGS });
  const readAll = async (reader: Tenant, id: string) => {
    const slices = reader.streamDocumentChunks(id, { limit: 100, offset: 0 });
    return { text: await textOf(await reader.documentContent(id)), chunks: await joined(slices) };
  };
  // The last chunk is in the second slice of the text.
  for (const count of [2, 20]) {
    const { id, chunks } = await importDocument(tenant, TAGS, count);
    const whole = await readAll(tenant, id);
    expect(await readAll(bound, id)).toEqual(whole);
    expect(await bound.documentReceipt(id, { limit: 1, offset: 0 })).toMatchObject({ documentId: id });
    expect(whole.chunks.map(({ memoryId }) => memoryId)).toEqual(chunks);
    await tenant.patchMemory(chunks.at(-1)!, { tags: ['board'] });
    const pieces: string[] = [];
    const read = async () => {
      for await (const piece of await bound.documentContent(id)) pieces.push(piece);
    };
    await expect(read()).rejects.toSatisfy(notFound);
    expect(pieces.join('')).not.toContain(`Text ${count - 1} of the team`);
    const slices = bound.streamDocumentChunks(id, { limit: 100, offset: 0 });
    await expect(joined(slices)).rejects.toSatisfy(notFound);
    await expect(bound.documentReceipt(id, { limit: 1, offset: 0 })).rejects.toSatisfy(notFound);
    expect(await readAll(tenant, id)).toEqual(whole);
  }
}

/** Checks that a refused supersession does not name a successor outside of the bounds. */
async function namesNoOtherSuccessor({ tenant, add }: TestEngine): Promise<void> {
  const { id: older } = await add({ content: 'The harbour.', tags: TAGS });
  const { id: newer } = await add({ content: 'A private harbour.', tags: ['private'] });
  const { id } = await add({ content: 'Another harbour.', tags: TAGS });
  await tenant.supersedeMemory({ oldId: older, newId: newer });
  const bound = boundTenant(tenant, { tags: TAGS });
  const message = (field: string) => ({ code: 'conflict', message: `${field}: already superseded by another memory` });
  await expect(bound.supersedeMemory({ oldId: older, newId: id })).rejects.toMatchObject(message('old_id'));
  for (const content of ['A third harbour.', 'Another harbour.']) {
    const { outcomes } = await bound.addMemories([newMemory({ content, tags: TAGS, supersedes: older })]);
    expect(outcomes).toMatchObject([{ kind: 'rejected', error: message('supersedes') }]);
  }
  await expect(tenant.supersedeMemory({ oldId: older, newId: id })).rejects.toThrow(newer);
}

/** Checks that a name has the spelling and the count of the memories within the bounds. */
async function countsNamesWithinBounds(fixture: TestEngine): Promise<void> {
  const { tenant } = fixture;
  for (const content of ['One.', 'Two.']) await fixture.add({ content, entities: ['HARBOUR', 'Pier'], tags: ['hr'] });
  await fixture.add({ content: 'Three.', entities: ['Harbour'], tags: TAGS });
  await fixture.drain();
  const bound = boundTenant(tenant, { tags: TAGS });
  const harbour = { name: 'harbour', label: 'Harbour', type: 'other', mentions: 1 };
  const list = await bound.listEntities({ prefix: '', userId: undefined }, { limit: 10, offset: 0 });
  expect(list).toEqual({ items: [harbour], isCut: false });
  expect(await bound.getEntity('harbour', undefined)).toMatchObject(harbour);
}

/** Checks that a difference neither lists nor counts memories that came into the bounds later. */
async function countsChangesWithinBounds({ tenant, clock, add }: TestEngine): Promise<void> {
  const start = clock.now() - 1;
  const { id: pier } = await add({ content: 'The pier.', tags: ['hr'] });
  const { id: harbour } = await add({ content: 'The harbour.', tags: ['hr'] });
  clock.advance(1_000);
  const middle = clock.now();
  clock.advance(1_000);
  await tenant.patchMemory(harbour, { content: 'The harbour at night.', tags: TAGS });
  clock.advance(1_000);
  const end = clock.now();
  clock.advance(1_000);
  await tenant.patchMemory(pier, { tags: TAGS });
  const bound = boundTenant(tenant, { tags: TAGS });
  const options = { axis: 'recorded', filter: {}, fadedBelow: 0.1, limit: 10 } as const;
  const added = { ...options, from: start, to: middle };
  expect((await tenant.diff(added)).counts).toMatchObject({ added: 2 });
  expect(await bound.diff(added)).toMatchObject({ added: [], counts: { added: 0 } });
  const changed = { ...options, from: middle, to: end };
  expect((await tenant.diff(changed)).counts).toMatchObject({ changed: 1 });
  expect(await bound.diff(changed)).toMatchObject({ changed: [], counts: { changed: 0 } });
  // From the time on at which both have the tags, both count.
  const present = { ...options, from: start, to: clock.now() };
  expect((await bound.diff(present)).counts).toMatchObject({ added: 2 });
}

/** Checks that pairs within the bounds are found behind any number of others. */
async function findsPairsBehindOthers({ tenant, batch }: TestEngine): Promise<void> {
  const items = Array.from({ length: 404 }, (_, no) => newMemory({ content: `${no}`, tags: no < 2 ? TAGS : ['hr'] }));
  await tenant.addMemories(items);
  linkInPairs(batch.open().store, (at) => ({ similarity: at === 0 ? 0.91 : 0.95, foundAt: START + at }));
  const bound = boundTenant(tenant, { tags: TAGS });
  const pair = { earlier: { content: '0' }, later: { content: '1' } };
  expect(await bound.listProposals({ limit: 5 })).toMatchObject([pair]);
  const duplicates = await bound.listNearDuplicates({ leastSimilarity: 0.9, limit: 5 });
  expect(duplicates).toMatchObject({ items: [pair], isCut: false });
  expect(await tenant.listProposals({ limit: 5 })).toHaveLength(5);
}

/** Checks that recalls within the bounds are found behind any number of others, and that these are not counted. */
async function findsRecallsBehindOthers(fixture: TestEngine): Promise<void> {
  const { tenant } = fixture;
  const { id } = await fixture.add({ content: 'The harbour.', userId: 'bob', tags: TAGS });
  const bound = boundTenant(tenant, { tags: TAGS });
  const { recallId: first } = await bound.query(QUERY);
  const { recallId: second } = await bound.query(QUERY);
  // In the log, an answer of before comes first.
  await bound.getRecall(second);
  const { store } = fixture.batch.open();
  const ask = async () => tenant.query({ ...QUERY, filter: { userIds: ['bob'] } });
  await tenant.getRecall((await ask()).recallId);
  store.write(() => {
    // As many as are read together, so that the last of them ends a piece.
    const copy = store.prepare(
      `INSERT INTO recalls (recall_id, asked_at, users, sessions, head, bytes)
       SELECT recall_id || '-' || ?, asked_at, users, sessions, head, bytes FROM recalls ORDER BY recall_no DESC LIMIT 1`,
    );
    for (let copies = 1; copies < 200; copies += 1) copy.run(copies);
  });
  const idsOf = (page: RecallPage) => page.items.map(({ recallId }) => recallId);
  const page = await bound.listRecalls({ limit: 1 });
  expect(idsOf(page)).toEqual([second]);
  const last = await bound.listRecalls({ limit: 1, before: page.next! });
  expect(idsOf(last)).toEqual([first]);
  expect(last.next).toBeNull();
  expect(idsOf(await bound.listRecalls({ memoryId: id, limit: 20 }))).toEqual([second, first]);
  expect(await bound.listRecalls({ userId: 'bob', limit: 1 })).toEqual({ items: [], next: null });
  const ofBob = boundTenant(tenant, { userId: 'bob' });
  await ofBob.getRecall((await ofBob.query(QUERY)).recallId);
  const both = await tenant.query({ ...QUERY, filter: { userIds: ['ana', 'bob'] } });
  await tenant.getRecall(both.recallId);
  expect((await ofBob.listRecalls({ limit: 1 })).items).toMatchObject([{ filter: { userIds: ['bob'] } }]);
  expect((await tenant.listRecalls({ limit: 20 })).items).toHaveLength(20);
}

/** Checks that no stage of a query tells what part of all memories its users have, or that no text has a word. */
async function countsNothingInStages({ tenant, drain }: TestEngine): Promise<void> {
  const items = Array.from({ length: 900 }, (_, no) =>
    newMemory({ content: `Pier ${no}.`, userId: no < 600 ? 'bob' : 'ana', tags: no < 500 ? TAGS : ['hr'] }),
  );
  const { outcomes } = await tenant.addMemories(items);
  const first = outcomes[0]!;
  assert(first.kind === 'accepted');
  await drain();
  const bound = boundTenant(tenant, { tags: TAGS });
  const notesOf = (trace: readonly StageTrace[] = []) => trace.map(({ note = '' }) => note).join('; ');
  for (const text of ['pier', 'zeppelin']) {
    const query = { ...QUERY, query: text, filter: { userIds: ['bob'] }, explain: true };
    for (const of of [await tenant.query(query), await tenant.explain(query, first.id)])
      for (const telling of [/dilution|known/, /\bindex|scan/]) expect(notesOf(of.trace)).toMatch(telling);
    for (const of of [await bound.query(query), await bound.explain(query, first.id)])
      expect(notesOf(of.trace)).not.toMatch(/dilution|known|\bindex|scan/);
    // The log has the number of all memories of the user.
    const { recallId } = await bound.query(query);
    expect((await tenant.getRecall(recallId)).scope).toBeCloseTo(600);
    const shown = await bound.getRecall(recallId);
    expect(shown).toMatchObject({ recallId, question: text });
    expect(shown).not.toHaveProperty('scope');
    const ofBob = boundTenant(tenant, { userId: 'bob' });
    expect((await ofBob.getRecall((await ofBob.query(query)).recallId)).scope).toBeCloseTo(600);
  }
}

/** Checks that a move tells nothing of namespaces whose items stay where they are. */
async function movesPastOtherNamespaces({ tenant }: TestEngine): Promise<void> {
  const put = (namespace: string, tags: string[]) =>
    tenant.putItem({ ...newMemory({ content: '' }), content: null, value: 1, namespace, key: 'k', tags });
  await put('pay.of.the.board', ['hr']);
  await put('pay.mine', TAGS);
  const bound = boundTenant(tenant, { tags: TAGS });
  const move = { userId: '', namespace: 'pay', to: 'x'.repeat(512 - '.mine'.length) };
  const tooLong = { code: 'invalid', message: 'to: a path below it would have more than 512 characters' };
  await expect(tenant.moveNamespace(move)).rejects.toMatchObject(tooLong);
  expect(await bound.moveNamespace(move)).toEqual({ items: 1, namespaces: 1 });
  const place = { userId: '', key: 'k' };
  expect(await bound.getItem({ ...place, namespace: `${move.to}.mine` })).toMatchObject({ value: 1 });
  expect(await tenant.getItem({ ...place, namespace: 'pay.of.the.board' })).toMatchObject({ value: 1 });
  await put('pay.of.the.team', TAGS);
  await expect(bound.moveNamespace(move)).rejects.toMatchObject(tooLong);
}

/** Checks that an add finds the memory within the bounds that says the same, behind one outside. */
async function findsDuplicatesBehindOthers({ tenant }: TestEngine): Promise<void> {
  const says = newMemory({ content: 'The harbour.' });
  const bound = boundTenant(tenant, { tags: TAGS });
  const { outcomes } = await bound.addMemories([says]);
  assert(outcomes[0]?.kind === 'accepted');
  await tenant.addMemories([{ ...says, onDuplicate: 'keep' }]);
  expect((await bound.addMemories([says])).outcomes).toMatchObject([{ kind: 'duplicate', id: outcomes[0].id }]);
}

/** The checks, each with the end of the name of its test. */
export const TAG_BOUNDS = [
  ['the fields that a memory had before it had them', hidesEarlierFields],
  ['a time that a memory named before it had them', proposesNothingEarlier],
  ['a memory that lost them after it was listed', readsListsWithinBounds],
  ['a memory that lost them while a language model was asked', answersWithinBounds],
  ['the spellings of names, and how often they are named, outside', countsNamesWithinBounds],
  ['a change before it had them, in a number', countsChangesWithinBounds],
  ['pairs outside, behind which its own are found', findsPairsBehindOthers],
  ['recalls outside, behind which its own are found', findsRecallsBehindOthers],
  ['how many memories there are outside, by the stages or the log of a query', countsNothingInStages],
  ['a chunk that lost them, through its document', readsChunksWithinBounds],
  ['a memory without them that supersedes one with them', namesNoOtherSuccessor],
  ['namespaces of items without them, by a move', movesPastOtherNamespaces],
  ['a newer memory without them that says the same as its own', findsDuplicatesBehindOthers],
] as const;
