import path from 'node:path';
import { expect, test } from 'vitest';
import { readUserGraph } from '../../../src/engine/store/graph.ts';
import { createWorkBudget, ROW_BYTES, runWithin } from '../../../src/engine/store/work-budget.ts';
import { boundTenant } from '../../../src/engine/tenant/bound-tenant.ts';
import type { MemoryGraph } from '../../../src/engine/types.ts';
import { newMemory, openTestEngine, START } from '../../support/engine-fixture.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const hopsOf = ({ memories, entities }: MemoryGraph): Record<string, number> => ({
  ...Object.fromEntries(memories.map(({ gist, hop }): [string, number] => [gist, hop])),
  ...Object.fromEntries(entities.map(({ name, hop }): [string, number] => [name, hop])),
});

test('a neighbourhood goes over links and names, no further than its hops, and says what joins its nodes', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const { tenant } = fixture;
  const add = async (content: string, more: object = {}) => (await fixture.add({ content, userId: 'ana', ...more })).id;
  const [a, b, c] = [await add('alpha text'), await add('beta text'), await add('gamma text')];
  const named = await add('delta text', { entities: ['Kubernetes'] });
  const also = await add('epsilon text', { entities: ['Kubernetes'] });
  await fixture.drain();
  await tenant.linkMemories({ src: a, dst: b, type: 'supports', weight: 0.9 });
  await tenant.linkMemories({ src: c, dst: b, type: 'supports', weight: 0.8 });
  await tenant.linkMemories({ src: a, dst: named, type: 'supports', weight: 0.5 });

  expect(hopsOf(await tenant.neighbourhood(a, { hops: 1, limit: 50 }))).toEqual({
    'alpha text': 0,
    'beta text': 1,
    'delta text': 1,
  });
  const whole = await tenant.neighbourhood(a, { hops: 3, limit: 50 });
  expect(hopsOf(whole)).toEqual({
    ...{ 'alpha text': 0, 'beta text': 1, 'delta text': 1, 'gamma text': 2 },
    ...{ kubernetes: 2, 'epsilon text': 3 },
  });
  expect(whole.isCut).toBe(false);
  expect(whole.links.map(({ src, dst, weight }) => [src, dst, weight])).toEqual([
    [a, b, 0.9],
    [c, b, 0.8],
    [a, named, 0.5],
  ]);
  expect(whole.mentions).toEqual([
    { memory: named, entity: 'kubernetes' },
    { memory: also, entity: 'kubernetes' },
  ]);

  const cut = await tenant.neighbourhood(a, { hops: 3, limit: 2 });
  expect(cut.memories.map(({ id }) => id)).toEqual([a, b]);
  expect([cut.isCut, cut.links.length]).toEqual([true, 1]);
  await expect(tenant.neighbourhood(tenant.id, { hops: 1, limit: 2 })).rejects.toMatchObject({ code: 'not_found' });
});

test("a user's graph begins with the most salient memories and stays with the user", async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const { tenant } = fixture;
  for (const [content, userId, importance] of [
    ['low', 'ana', 0.1],
    ['high', 'ana', 0.9],
    ['middle', 'ana', 0.5],
    ['foreign', 'ben', 1],
  ] as const)
    await fixture.add({ content, userId, importance, entities: ['Redis'] });
  await fixture.drain();
  const graph = await tenant.userGraph('ana', { limit: 3 });
  expect(graph.memories.map(({ gist }) => gist)).toEqual(['high', 'middle']);
  expect(graph.entities).toMatchObject([{ name: 'redis', label: 'Redis' }]);
  expect([graph.isCut, graph.mentions.length]).toEqual([true, 2]);
  expect((await tenant.userGraph('ana', { limit: 100 })).isCut).toBe(false);
  expect((await tenant.userGraph('nobody', { limit: 100 })).memories).toEqual([]);
});

test('a bound caller sees neither memories nor names of others, from whichever node', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const { tenant, clock } = fixture;
  const add = async (content: string, userId: string, tags: string[], more: object = {}) =>
    (await fixture.add({ content, userId, tags, entities: ['Redis', content], ...more })).id;
  const own = await add('Own', 'ana', ['red']);
  const untagged = await add('Secret', 'ana', []);
  await add('Foreign', 'ben', ['red']);
  await add('Brief', 'ana', ['red'], { expiresAt: START + 1_000 });
  await fixture.drain();
  await tenant.linkMemories({ src: own, dst: untagged, type: 'supports', weight: 0.5 });
  clock.advance(1_000);
  const bound = boundTenant(tenant, { userId: 'ana', tags: ['red'] });
  for (const graph of [
    await bound.neighbourhood(own, { hops: 3, limit: 99 }),
    await bound.userGraph('', { limit: 99 }),
  ]) {
    expect(graph.memories.map(({ id }) => id)).toEqual([own]);
    expect(graph.entities.map(({ name }) => name).sort()).toEqual(['own', 'redis']);
    expect(graph.links).toEqual([]);
  }
  await expect(bound.neighbourhood(untagged, { hops: 1, limit: 9 })).rejects.toMatchObject({ code: 'not_found' });
  await expect(bound.userGraph('ben', { limit: 9 })).rejects.toMatchObject({ code: 'forbidden' });
});

test('what a bound caller does not see decides neither which names and memories a graph has, nor their order', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const { tenant } = fixture;
  const add = async (content: string, tags: string[], entities: string[]) =>
    (await fixture.add({ content, userId: 'ana', tags, entities })).id;
  // The first mention of a name gives it its number.
  await add('Secret', [], ['Valkey']);
  const own = await add('Own', ['red'], ['Valkey', 'Redis', 'Kafka']);
  const other = await add('Other', ['red'], ['Kafka']);
  const linked = await add('Linked', ['red'], ['Nats']);
  await tenant.linkMemories({ src: linked, dst: own, type: 'supports', weight: 0.5 });
  for (let n = 0; n < 70; n += 1) {
    const hidden = await add(`Secret ${n}`, [], ['Kafka']);
    await tenant.linkMemories({ src: hidden, dst: own, type: 'supports', weight: 1 });
  }
  await fixture.drain();
  const bound = boundTenant(tenant, { tags: ['red'] });
  const graph = await bound.neighbourhood(own, { hops: 2, limit: 50 });
  expect(graph.memories.map(({ id }) => id)).toEqual([own, linked, other]);
  expect(graph.isCut).toBe(false);
  const names = ['kafka', 'redis', 'valkey'];
  expect(graph.entities.map(({ name }) => name)).toEqual([...names, 'nats']);
  expect(graph.mentions.filter(({ memory }) => memory === own).map(({ entity }) => entity)).toEqual(names);
  const few = await bound.neighbourhood(own, { hops: 1, limit: 3 });
  expect(few.entities.map(({ name }) => name)).toEqual(['kafka']);
  const ofUser = await bound.userGraph('ana', { limit: 4 });
  expect(ofUser.entities.map(({ name }) => name)).toEqual(['kafka']);
});

test('a graph of long gists ends at 1 MiB of nodes, the farthest left out first', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const { tenant } = fixture;
  const gist = '漢'.repeat(4_000);
  const add = async (content: string) => (await fixture.add({ content, userId: 'ana', gist })).id;
  const middle = await add('the middle');
  const near = [];
  for (let n = 0; n < 60; n += 1) near.push(await add(`near ${n}`));
  for (const dst of near) await tenant.linkMemories({ src: middle, dst, type: 'supports', weight: 0.9 });
  for (let n = 0; n < 60; n += 1) {
    await tenant.linkMemories({ src: near[n]!, dst: await add(`far ${n}`), type: 'supports', weight: 1 });
  }
  const graph = await tenant.neighbourhood(middle, { hops: 2, limit: 500 });
  expect(graph.isCut).toBe(true);
  expect(Buffer.byteLength(JSON.stringify(graph.memories))).toBeLessThan(1_100_000);
  expect(graph.memories[0]).toMatchObject({ id: middle, hop: 0 });
  expect(graph.memories.filter(({ hop }) => hop === 1)).toHaveLength(60);
  const ids = new Set(graph.memories.map(({ id }) => id));
  expect(graph.links.every(({ src, dst }) => ids.has(src) && ids.has(dst))).toBe(true);
  const whole = await tenant.neighbourhood(middle, { hops: 1, limit: 10 });
  expect(whole.memories).toHaveLength(10);
});

test('a graph ends where the work of one request does, and says so', async () => {
  const file = path.join(tempFolder(), 'cairn.sqlite');
  const settings = { OM_EMBEDDINGS: 'none' };
  let whole: MemoryGraph;
  {
    await using fixture = await openTestEngine({ settings, file });
    const memories = Array.from({ length: 250 }, (_, at) => newMemory({ content: `memory ${at}`, userId: 'ana' }));
    for (let at = 0; at < 250; at += 50) await fixture.tenant.addMemories(memories.slice(at, at + 50));
    whole = await fixture.tenant.userGraph('ana', { limit: 2_000 });
    expect([whole.memories.length, whole.isCut]).toEqual([250, false]);
    const bounds = { userId: 'ana', limit: 2_000, now: fixture.clock.now() };
    const userNo = fixture.get<number>('SELECT user_no FROM memories LIMIT 1');
    const budget = createWorkBudget({ bytes: 10 * ROW_BYTES, deadlineMs: 60_000 });
    const part = runWithin(budget, () => readUserGraph(fixture.store, userNo, bounds));
    expect([part.memories.length, part.isCut]).toEqual([10, true]);
  }
  await using fixture = await openTestEngine({ settings: { ...settings, OM_QUERY_WORK_MB: '1' }, file });
  const graph = await fixture.tenant.userGraph('ana', { limit: 2_000 });
  expect([graph.memories, graph.isCut]).toEqual([whole.memories, true]);
});
