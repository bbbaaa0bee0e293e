import { describe, expect, onTestFinished, test } from 'vitest';
import type { EngineError } from '../../../src/engine/errors.ts';
import { boundTenant } from '../../../src/engine/tenant/bound-tenant.ts';
import type { MemoryFilter, MemoryQuery } from '../../../src/engine/types.ts';
import { runDueSchedules } from '../../../src/engine/upkeep/schedules.ts';
import {
  dumpTables,
  expectNoOrphans,
  newMemory,
  openTestEngine,
  type TestEngine,
  type TestMemory,
} from '../../support/engine-fixture.ts';
import { startFakeProvider } from '../../support/fake-provider.ts';

const POOL = [
  'Ana swims every Monday morning at the city pool before work.',
  'Ana swims every Monday morning at the city pool before work with Zanzibar.',
  'Ana swims every Monday morning at the city pool before work, and in winter too.',
];
const OTHERS = ['The harbour ferry leaves at noon from berth four.', 'Ben bakes rye bread for the whole street.'];
const ASKED = 'When does Ana swim at the city pool?';

async function open(settings: Record<string, string> = {}): Promise<TestEngine> {
  const fixture = await openTestEngine({ settings });
  onTestFinished(() => fixture.close());
  return fixture;
}

async function addAll(fixture: TestEngine, contents: readonly string[], more: Partial<TestMemory> = {}) {
  const ids: string[] = [];
  for (const content of contents) {
    fixture.clock.advance(1_000);
    ids.push((await fixture.add({ content, userId: 'ana', ...more })).id);
  }
  await fixture.drain();
  return ids;
}

async function work(fixture: TestEngine): Promise<void> {
  for (let round = 0; (await fixture.askQuestions()).claimed > 0; round++) expect(round).toBeLessThan(100);
  await fixture.drain();
}

async function consolidate(fixture: TestEngine, again = false) {
  const { jobId } = await fixture.tenant.consolidate({ userId: 'ana', again });
  await work(fixture);
  expect(await fixture.tenant.getJob(jobId)).toMatchObject({ kind: 'consolidation', state: 'done' });
  const made = await fixture.tenant.listConsolidations({ runId: jobId, limit: 100 });
  return { jobId, made, memoryId: made[0]?.memoryId ?? '' };
}

async function gathered(settings: Record<string, string> = {}) {
  const fixture = await open(settings);
  const others = await addAll(fixture, OTHERS);
  const ids = await addAll(fixture, POOL);
  return { fixture, others, ids, ...(await consolidate(fixture)) };
}

async function ask({ tenant }: TestEngine, more: Partial<MemoryQuery> = {}) {
  const { hits } = await tenant.query({
    query: ASKED,
    k: 10,
    minScore: 0,
    explain: true,
    reinforce: false,
    ...more,
    filter: { userIds: ['ana'], ...more.filter },
  });
  return hits.map(({ memory: { id, updatedAt: _, ...memory }, ...hit }) => ({ id, memory, ...hit }));
}

describe('memories that say nearly the same', () => {
  test('are gathered into one that points to them, and stay as they are', async () => {
    const { fixture, ids, jobId, made, memoryId } = await gathered();
    expect(made).toMatchObject([{ runId: jobId, userId: 'ana', sourceIds: ids, method: 'sentences' }]);
    const memory = await fixture.tenant.getMemory(memoryId);
    expect(memory).toMatchObject({ type: 'consolidation', userId: 'ana', sessionId: '', state: 'ready', tags: [] });
    expect(memory.content).toBe(`${POOL[1]}\n${POOL[2]}`);
    const links = (await fixture.tenant.listLinks(memoryId)).map(({ id, type, automatic }) => ({
      id,
      type,
      automatic,
    }));
    expect(links).toEqual(ids.map((id) => ({ id, type: 'derived_from', automatic: true })));
    for (const [place, id] of ids.entries())
      expect(await fixture.tenant.getMemory(id)).toMatchObject({ content: POOL[place], status: 'active', version: 1 });
    expectNoOrphans(fixture.store);
    const { values } = await fixture.batch.metrics.gatheredMemories.get();
    expect(values.map(({ labels, value }) => [labels.method, value])).toEqual([
      ['sentences', 1],
      ['model', 0],
    ]);
  });

  test('give way to it in an answer, which says why, and are never hidden', async () => {
    const { fixture, ids, memoryId } = await gathered();
    const hits = await ask(fixture);
    expect(hits.map(({ id }) => id).sort()).toEqual(expect.arrayContaining([memoryId, ...ids].sort()));
    expect(hits[0]!.id).toBe(memoryId);
    const steppedBack = hits.filter(({ explain }) =>
      explain!.adjustments.some(({ by, because }) => by === 'consolidated' && because === memoryId),
    );
    expect(steppedBack.map(({ id }) => id).sort()).toEqual([...ids].sort());
    const without = await ask(fixture, { penalties: { consolidated: 1 } });
    expect(without.flatMap(({ explain }) => explain!.adjustments.map(({ by }) => by))).not.toContain('consolidated');
  });

  test.each([
    ['types', ['filters.types']],
    ['created_at', ['filters.created_at', 'startTime', 'endTime', 'filters.startTime', 'filters.endTime']],
  ] as const)('one that is left out as its sources fail %s is explained by that', async (name, fields) => {
    const { fixture, memoryId } = await gathered();
    const createdFrom = (await fixture.tenant.getMemory(memoryId)).createdAt;
    const query = { query: ASKED, k: 10, minScore: 0, reinforce: false } as const;
    const narrow = { userIds: ['ana'], ...(name === 'created_at' ? { createdFrom } : { types: ['consolidation'] }) };
    const explanation = await fixture.tenant.explain({ ...query, filter: narrow }, memoryId);
    expect(explanation).toMatchObject({ outcome: 'sources_hidden', failedFilters: [], rank: null });
    expect(explanation.remedies).toEqual([expect.stringContaining(`fails filters.${name}: remove filters.${name}`)]);
    expect(explanation.changes).toEqual(Object.fromEntries(fields.map((field) => [field, null])));
    const { hits } = await fixture.tenant.query({ ...query, filter: { userIds: ['ana'] } });
    expect(hits.map(({ memory }) => memory.id)).toContain(memoryId);
  });

  test('rank exactly as before once it is undone, and are not gathered again unasked', async () => {
    const fixture = await open();
    await addAll(fixture, OTHERS);
    const ids = await addAll(fixture, POOL);
    const before = await ask(fixture);
    const waypoints = () => fixture.all(`SELECT src, dst, type, similarity, weight FROM edges ORDER BY 1, 2`);
    const links = waypoints();
    const { jobId, made } = await consolidate(fixture);
    expect(made).toHaveLength(1);
    expect(await ask(fixture)).not.toEqual(before);
    expect(await fixture.tenant.undoConsolidation(made[0]!.id)).toEqual({ undone: 1 });
    await work(fixture);
    expect(await ask(fixture)).toEqual(before);
    expect(waypoints()).toEqual(links);
    expect(await fixture.tenant.undoConsolidation(jobId)).toEqual({ undone: 0 });
    expect((await consolidate(fixture)).made).toEqual([]);
    expect((await consolidate(fixture, true)).made).toMatchObject([{ sourceIds: ids }]);
    expectNoOrphans(fixture.store);
  });

  test('are not gathered twice, by however many runs', async () => {
    const { fixture } = await gathered();
    expect((await consolidate(fixture)).made).toEqual([]);
    expect(await fixture.tenant.listConsolidations({ limit: 10 })).toHaveLength(1);
  });

  test('are proposed without a change', async () => {
    const fixture = await open();
    const ids = await addAll(fixture, POOL);
    const before = dumpTables(fixture.store);
    const { proposals, isCut } = await fixture.tenant.proposeConsolidations({ userId: null, again: false }, 10);
    expect([proposals, isCut]).toMatchObject([[{ userId: 'ana', sourceIds: ids }], false]);
    expect(dumpTables(fixture.store)).toEqual(before);
    await expect(fixture.tenant.proposeConsolidations({ userId: 'eve', again: false }, 10)).rejects.toMatchObject({
      code: 'not_found',
    });
  });
});

test.each(['is not', "isn't", 'isn’t'])('a negation counts the same however it is written: %s', async (negation) => {
  const fixture = await open();
  await addAll(fixture, OTHERS);
  const ids = await addAll(fixture, [
    `The old tram ${negation} at platform eleven.`,
    `The old tram ${negation} there at platform eleven.`,
    `The old tram ${negation} at the platform eleven.`,
  ]);
  expect((await consolidate(fixture)).made).toMatchObject([{ sourceIds: ids }]);
});

test.each<[string, Partial<TestMemory>]>([
  ['other tags', { tags: ['private'] }],
  ['another user', { userId: 'ben' }],
  ['an end of its validity', { validTo: Date.UTC(2030, 0, 1) }],
  ['an expiry', { expiresAt: Date.UTC(2030, 0, 1) }],
  ['other metadata', { metadata: { visibility: 'private' } }],
])('a memory with %s is not gathered with the others', async (_, more) => {
  const fixture = await open();
  await addAll(fixture, POOL.slice(0, 1));
  await addAll(fixture, POOL.slice(1, 2), more);
  expect((await consolidate(fixture)).made).toEqual([]);
  await addAll(fixture, POOL.slice(2));
  expect((await consolidate(fixture)).made).toMatchObject([{ sourceIds: [expect.anything(), expect.anything()] }]);
});

test('memories of different writers are not gathered together', async () => {
  const fixture = await open();
  for (const [place, content] of POOL.slice(0, 2).entries()) {
    await fixture.tenant.as(`key${place}`).addMemories([newMemory({ content, userId: 'ana' })]);
    await fixture.drain();
  }
  expect((await consolidate(fixture)).made).toEqual([]);
});

describe('when a source', () => {
  test('is erased, no word of it is left, and the others are gathered anew', async () => {
    const { fixture, ids, memoryId } = await gathered();
    await fixture.tenant.deleteMemory(ids[1]!);
    await work(fixture);
    expect(JSON.stringify(dumpTables(fixture.store, ['erasures']))).not.toMatch(/zanzibar/i);
    await expect(fixture.tenant.getMemory(memoryId)).rejects.toMatchObject({ code: 'not_found' });
    expect(await fixture.tenant.listConsolidations({ limit: 10 })).toEqual([]);
    const { made } = await consolidate(fixture);
    expect(made).toMatchObject([{ sourceIds: [ids[0], ids[2]] }]);
    expectNoOrphans(fixture.store);
  });

  test('is erased, no word of it is left, even if nothing links to it any more', async () => {
    const { fixture, ids, memoryId } = await gathered();
    fixture.store.write(() => fixture.store.prepare(`DELETE FROM edges WHERE type = 'derived_from'`).run());
    await fixture.tenant.deleteMemory(ids[1]!);
    await expect(fixture.tenant.getMemory(memoryId)).rejects.toMatchObject({ code: 'not_found' });
    expect(JSON.stringify(dumpTables(fixture.store, ['erasures']))).not.toMatch(/zanzibar/i);
    expectNoOrphans(fixture.store);
  });

  test.each([
    ['text', { content: 'The ferry has been sold to Norway.' }],
    ['tags', { tags: ['private'] }],
    ['metadata', { metadata: { visibility: 'private' } }],
  ])('gets another %s, what was gathered from it goes', async (_, patch) => {
    const { fixture, ids, memoryId } = await gathered();
    fixture.clock.advance(1_000);
    await fixture.tenant.patchMemory(ids[0]!, patch);
    await expect(fixture.tenant.getMemory(memoryId)).rejects.toMatchObject({ code: 'not_found' });
    await work(fixture);
    expect((await consolidate(fixture)).made).toMatchObject([{ sourceIds: ids.slice(1) }]);
  });

  test('is superseded, it speaks for it no more, and goes at the next run', async () => {
    const { fixture, ids, memoryId } = await gathered();
    fixture.clock.advance(1_000);
    const [newer] = await addAll(fixture, ['Ana has given up the pool for good.']);
    await fixture.tenant.supersedeMemory({ oldId: ids[0]!, newId: newer! });
    expect((await ask(fixture)).map(({ id }) => id)).not.toContain(memoryId);
    await consolidate(fixture);
    await expect(fixture.tenant.getMemory(memoryId)).rejects.toMatchObject({ code: 'not_found' });
  });
});

test('what a query may not see in full speaks for nothing in it', async () => {
  const fixture = await open();
  const [one] = await addAll(fixture, POOL.slice(0, 1), { sessionId: 'first' });
  const rest = await addAll(fixture, POOL.slice(1), { sessionId: 'second' });
  const before = await ask(fixture, { filter: { sessionIds: ['second'] } });
  const { memoryId } = await consolidate(fixture);
  const idsFor = async (filter: MemoryQuery['filter']) => (await ask(fixture, { filter })).map(({ id }) => id);
  expect(await idsFor({})).toEqual(expect.arrayContaining([memoryId, one, ...rest]));
  const hits = await ask(fixture, { filter: { sessionIds: ['second'] } });
  expect(hits.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
  expect(hits.flatMap(({ explain }) => explain!.adjustments.map(({ by }) => by))).not.toContain('consolidated');
});

test('what a filter on metadata excludes is not listed within a gathered memory', async () => {
  const fixture = await open();
  await addAll(fixture, POOL.slice(0, 1), { metadata: { visibility: 'private', place: { pool: 1, city: 2 } } });
  await addAll(fixture, POOL.slice(1), { metadata: { place: { city: 2, pool: 1 }, visibility: 'private' } });
  const { memoryId } = await consolidate(fixture);
  const listed = async (metadata: MemoryFilter['metadata']) =>
    (await fixture.tenant.listMemories({ metadata }, { limit: 10, offset: 0 })).map(({ id }) => id);
  expect(await listed({ visibility: 'private' })).toContain(memoryId);
  expect(await listed({ visibility: { $ne: 'private' } })).toEqual([]);
  expect(await listed({ visibility: { $exists: false } })).toEqual([]);
});

test('an add of a gathered text is no duplicate of it, and outlives its undoing', async () => {
  const { fixture, made, memoryId } = await gathered();
  const { content, eventTime } = await fixture.tenant.getMemory(memoryId);
  const added = await fixture.add({ content, userId: 'ana', eventTime });
  await fixture.tenant.undoConsolidation(made[0]!.id);
  expect(await fixture.tenant.getMemory(added.id)).toMatchObject({ content });
});

test('links to the sources are neither removed nor stated', async () => {
  const { fixture, ids, memoryId } = await gathered();
  const link = { src: memoryId, dst: ids[0]!, type: 'derived_from' } as const;
  const refused = { code: 'conflict', message: expect.stringMatching(/undo the consolidation/) };
  await expect(fixture.tenant.unlinkMemories(link)).rejects.toMatchObject(refused);
  await expect(fixture.tenant.linkMemories(link)).rejects.toMatchObject(refused);
  await fixture.tenant.linkMemories({ ...link, type: 'supports' });
  await fixture.tenant.unlinkMemories({ ...link, type: 'supports' });
  expect(await fixture.tenant.listLinks(memoryId)).toHaveLength(ids.length);
});

test('a run that was stopped goes on where it was', async () => {
  const fixture = await open();
  await addAll(fixture, POOL);
  await addAll(fixture, [
    'Ben feeds the grey cat of the baker at dawn.',
    'Ben feeds the grey cat of the baker at dawn daily.',
  ]);
  const { jobId } = await fixture.tenant.consolidate({ userId: null, again: false });
  expect((await fixture.tenant.consolidate({ userId: null, again: false })).jobId).toBe(jobId);
  const stop = new AbortController();
  const stopped = fixture.askQuestions({ signal: stop.signal });
  stop.abort();
  await stopped;
  expect(await fixture.tenant.getJob(jobId)).toMatchObject({ state: 'queued' });
  await work(fixture);
  expect(await fixture.tenant.getJob(jobId)).toMatchObject({ state: 'done' });
  expect(await fixture.tenant.listConsolidations({ limit: 10 })).toHaveLength(2);
  expectNoOrphans(fixture.store);
});

test('a slice that went well clears the run of crashes and failed attempts', async () => {
  const fixture = await open();
  await addAll(fixture, POOL);
  await addAll(fixture, POOL, { userId: 'ben' });
  await fixture.tenant.consolidate({ userId: null, again: false });
  const kept = `SELECT state, suspect, crashes, attempts FROM jobs WHERE kind = 'consolidation'`;
  fixture.store.db.exec(`UPDATE jobs SET suspect = 64, crashes = 2, attempts = 4 WHERE kind = 'consolidation'`);
  const stop = new AbortController();
  const stopped = fixture.askQuestions({ alone: true, signal: stop.signal });
  stop.abort();
  expect(await stopped).toMatchObject({ claimed: 1 });
  expect(await fixture.tenant.listConsolidations({ limit: 10 })).toHaveLength(1);
  expect(fixture.get(kept)).toEqual({ state: 'queued', suspect: 0, crashes: 0, attempts: 0 });
  expect(await fixture.askQuestions()).toMatchObject({ claimed: 1 });
  expect(await fixture.tenant.listConsolidations({ limit: 10 })).toHaveLength(2);
});

test('an undo ends a run that is under way', async () => {
  const fixture = await open();
  await addAll(fixture, POOL);
  const { jobId } = await fixture.tenant.consolidate({ userId: null, again: false });
  expect(await fixture.tenant.undoConsolidation(jobId)).toEqual({ undone: 0 });
  await work(fixture);
  expect(await fixture.tenant.getJob(jobId)).toMatchObject({ state: 'cancelled' });
  expect(await fixture.tenant.listConsolidations({ limit: 10 })).toEqual([]);
  await expect(fixture.tenant.undoConsolidation('none')).rejects.toMatchObject({ code: 'not_found' });
});

test('the consolidation of another user is none before which a page may begin', async () => {
  const { fixture } = await gathered();
  const [ofAna] = await fixture.tenant.listConsolidations({ limit: 1 });
  const before = ofAna!.id;
  expect(await fixture.tenant.listConsolidations({ userId: 'ana', before, limit: 9 })).toEqual([]);
  const bound = boundTenant(fixture.tenant, { userId: 'ben' });
  const refusal = async (id: string) =>
    bound.listConsolidations({ before: id, limit: 9 }).then(
      () => 'none',
      ({ code, message }: EngineError) => `${code} ${message}`,
    );
  expect(await refusal('none')).toBe('invalid before: no consolidation has this id');
  expect(await refusal(before)).toBe(await refusal('none'));
});

test('an undo for one user goes on with the run over all users', async () => {
  const fixture = await open();
  await addAll(fixture, POOL);
  await addAll(fixture, POOL, { userId: 'ben' });
  const { jobId } = await fixture.tenant.consolidate({ userId: null, again: false });
  const stop = new AbortController();
  const stopped = fixture.askQuestions({ signal: stop.signal });
  stop.abort();
  await stopped;
  expect(await fixture.tenant.listConsolidations({ limit: 10 })).toMatchObject([{ userId: 'ana' }]);
  expect(await fixture.tenant.undoConsolidation(jobId, 'ana')).toEqual({ undone: 1 });
  expect(await fixture.tenant.getJob(jobId)).toMatchObject({ state: 'queued' });
  await work(fixture);
  expect(await fixture.tenant.listConsolidations({ userId: 'ben', limit: 10 })).toHaveLength(1);
});

test('an undo for the user of a run ends it', async () => {
  const fixture = await open();
  await addAll(fixture, POOL);
  const { jobId } = await fixture.tenant.consolidate({ userId: 'ana', again: false });
  expect(await fixture.tenant.undoConsolidation(jobId, 'ana')).toEqual({ undone: 0 });
  expect(await fixture.tenant.getJob(jobId)).toMatchObject({ state: 'cancelled' });
});

test('a request to gather again what was undone is refused while a run does not', async () => {
  const fixture = await open();
  await addAll(fixture, POOL);
  const { jobId } = await fixture.tenant.consolidate({ userId: 'ana', again: false });
  await expect(fixture.tenant.consolidate({ userId: 'ana', again: true })).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining(jobId),
  });
  await work(fixture);
  const again = await fixture.tenant.consolidate({ userId: 'ana', again: true });
  expect(await fixture.tenant.consolidate({ userId: 'ana', again: false })).toEqual(again);
});

describe('a language model', () => {
  const TEXT = 'Ana swims at the city pool on Monday mornings, also in winter, with Zanzibar.';
  test.each([
    ['writes the text', JSON.stringify({ text: TEXT }), 'model', TEXT],
    ['that answers something else leaves it to the sentences', 'Sure!', 'sentences', `${POOL[1]}\n${POOL[2]}`],
  ])('%s', async (_, reply, method, content) => {
    const { chat, url, close } = await startFakeProvider({ dimensions: 256 });
    onTestFinished(close);
    chat.say(reply);
    const { fixture, made, memoryId } = await gathered({ OM_LLM_MODEL: 'a-model', OM_LLM_BASE_URL: url });
    expect(made).toMatchObject([{ method }]);
    expect((await fixture.tenant.getMemory(memoryId)).content).toBe(content);
    expect(chat.calls[0]!.input).toContain(POOL[0]);
  });
});

describe('by schedule', () => {
  test('memories are gathered where it is switched on, once for new memories', async () => {
    const fixture = await open({ OM_CONSOLIDATION: 'on', OM_CONSOLIDATION_INTERVAL_MINUTES: '1' });
    await addAll(fixture, POOL);
    for (const runs of [1, 2, 2]) {
      fixture.clock.advance(61_000);
      await runDueSchedules(fixture.maintenance);
      await work(fixture);
      const { total } = await fixture.tenant.listJobs({ kind: 'consolidation', limit: 10, offset: 0 });
      // The second run looks at the gathered memory itself, and finds nothing.
      expect(total).toBe(runs);
    }
    expect(await fixture.tenant.listConsolidations({ limit: 10 })).toHaveLength(1);
  });

  test('a run that was cancelled is made up for, without new memories', async () => {
    const fixture = await open({ OM_CONSOLIDATION: 'on', OM_CONSOLIDATION_INTERVAL_MINUTES: '1' });
    await addAll(fixture, POOL);
    fixture.clock.advance(61_000);
    await runDueSchedules(fixture.maintenance);
    const { items } = await fixture.tenant.listJobs({ kind: 'consolidation', limit: 10, offset: 0 });
    await fixture.tenant.undoConsolidation(items[0]!.id);
    fixture.clock.advance(61_000);
    await runDueSchedules(fixture.maintenance);
    await work(fixture);
    expect(await fixture.tenant.listConsolidations({ limit: 10 })).toHaveLength(1);
  });

  test('nothing runs by default', async () => {
    const fixture = await open();
    await addAll(fixture, POOL);
    fixture.clock.advanceDays(2);
    expect(await runDueSchedules(fixture.maintenance)).not.toContain('consolidate');
    expect(await work(fixture)).toBeUndefined();
    expect(await fixture.tenant.listConsolidations({ limit: 10 })).toEqual([]);
  });
});

test('an export holds the sources alone, and says so', async () => {
  const { fixture, ids, memoryId } = await gathered();
  let text = '';
  for await (const piece of fixture.tenant.exportLines({})) text += piece;
  for (const id of ids) expect(text).toContain(id);
  expect(text).not.toContain(memoryId);
  expect(JSON.parse(text.trim().split('\n').at(-1)!)).toMatchObject({ left_out: { consolidations: 1 } });
});

test('a gathered memory answers no standing query, and is no reflection', async () => {
  const fixture = await open();
  await addAll(fixture, POOL);
  await fixture.tenant.createStandingQuery({ query: ASKED, userId: 'ana', filter: {}, given: {}, minScore: 0.1 });
  expect((await consolidate(fixture)).made).toHaveLength(1);
  expect(fixture.all('SELECT memory FROM standing_due')).toEqual([]);
  expect(await fixture.tenant.listReflections('ana', 10)).toEqual([]);
});
