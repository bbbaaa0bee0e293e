import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createManualClock } from '../support/engine-fixture.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
beforeAll(async () => void (api = await startApi({ folder: tempFolder(), workers: true })));
afterAll(() => api.stop());

interface StoreItem {
  readonly namespace: readonly string[];
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
  readonly score?: number;
}

const put = (body: object) => api.request('PUT', '/store/items', { body });
async function search(body: object): Promise<readonly StoreItem[]> {
  const reply = await api.request('POST', '/store/items/search', { body });
  expect(reply.status).toBe(200);
  return reply.body.items as unknown as readonly StoreItem[];
}
const keysOf = async (body: object) => (await search(body)).map(({ key }) => key);
const get = async (namespace: string, key: string) =>
  (await api.request('GET', `/store/items?${new URLSearchParams({ namespace, key }).toString()}`)).text;

test('an item is put, read with its times in ISO 8601, replaced and deleted; one that is not there is null', async () => {
  const place = { namespace: ['a', 'b'], key: 'k' };
  expect((await put({ ...place, value: { text: 'one', n: 1.5, deep: [null] } })).status).toBe(204);
  const first = JSON.parse(await get('a.b', 'k')) as StoreItem & { created_at: string; updated_at: string };
  expect(first).toEqual({
    ...place,
    value: { text: 'one', n: 1.5, deep: [null] },
    created_at: expect.stringMatching(/^\d{4}-.*Z$/) as unknown,
    updated_at: first.created_at,
  });
  await put({ ...place, value: { text: 'two' } });
  expect(JSON.parse(await get('a.b', 'k'))).toMatchObject({ value: { text: 'two' }, created_at: first.created_at });
  for (let count = 0; count < 2; count += 1)
    expect((await api.request('DELETE', '/store/items', { body: place })).status).toBe(204);
  expect(await get('a.b', 'k')).toBe('null');
});

test('prefixes are whole labels, and pages follow each other', async () => {
  for (const [namespace, key] of [
    [['p', 'x'], 'a'],
    [['p', 'xy'], 'b'],
    [['p', 'x', 'z'], 'c'],
    [['pq'], 'd'],
  ] as const)
    await put({ namespace, key, value: { same: true } });
  expect(await keysOf({ namespace_prefix: ['p', 'x'] })).toEqual(['a', 'c']);
  expect(await keysOf({ namespace_prefix: ['p'], limit: 2 })).toEqual(['a', 'c']);
  expect(await keysOf({ namespace_prefix: ['p'], limit: 2, offset: 2 })).toEqual(['b']);
  expect(await keysOf({ namespace_prefix: ['none'] })).toEqual([]);
});

test('filters look at the top level of the value', async () => {
  const values = { one: { n: 1, who: 'ana' }, two: { n: 2, who: null }, three: { n: 3 }, ten: { n: '10', who: 'ben' } };
  for (const [key, value] of Object.entries(values)) await put({ namespace: ['f'], key, value });
  const keys = async (filter: object) => (await keysOf({ namespace_prefix: ['f'], filter })).sort();
  expect(await keys({ n: 1 })).toEqual(['one']);
  expect(await keys({ n: { $gte: 2 } })).toEqual(['three', 'two']);
  expect(await keys({ n: { $gt: 1, $lt: 3 }, who: { $ne: 'ana' } })).toEqual(['two']);
  expect(await keys({ who: null })).toEqual(['two']);
  expect(await keys({ who: { $eq: null } })).toEqual(['two']);
  expect(await keys({ who: { $in: ['ana', 'ben'] } })).toEqual(['one', 'ten']);
  expect(await keys({ who: { $nin: ['ana', 'ben'] } })).toEqual(['three', 'two']);
  expect(await keys({ who: { $exists: false } })).toEqual(['three']);
  expect(await keys({ n: {} })).toHaveLength(4);
  const refused = await api.request('POST', '/store/items/search', { body: { filter: { n: { $regex: 'x' } } } });
  expect([refused.status, refused.body.detail]).toEqual([400, expect.stringContaining('operator')]);
});

test('a query ranks within prefix and filter, fills up with what it does not rank, and finds no unindexed item', async () => {
  const namespace = ['q', 'notes'];
  await put({ namespace, key: 'cat', value: { text: 'The cat sleeps on the warm boiler.', kind: 'pet' } });
  await put({ namespace, key: 'twin', value: { text: 'The cat sleeps on the warm boiler.', kind: 'pet' } });
  await put({ namespace, key: 'hidden', value: { text: 'The cat hunts the boiler.', kind: 'pet' }, index: false });
  await put({
    namespace,
    key: 'part',
    value: { body: [{ text: 'cat food' }, { text: 'boiler repair' }], secret: 'zebra', kind: 'list' },
    index: ['body[*].text'],
  });
  await put({ namespace: ['elsewhere'], key: 'far', value: { text: 'The cat sleeps on the warm boiler.' } });
  expect((await api.request('POST', '/memory/add?wait=60000', { body: { content: 'Last.' } })).status).toBe(200);

  const found = await search({ namespace_prefix: ['q'], query: 'where does the cat sleep?' });
  expect(
    found
      .slice(0, 2)
      .map(({ key }) => key)
      .sort(),
  ).toEqual(['cat', 'twin']);
  expect(found).toHaveLength(4);
  expect(found.find(({ key }) => key === 'hidden')).not.toHaveProperty('score');
  expect(found.filter(({ score }) => score !== undefined).length).toBeGreaterThanOrEqual(2);
  expect(await keysOf({ namespace_prefix: ['q'], query: 'cat', filter: { kind: 'list' } })).toEqual(['part']);
  expect(
    (await search({ namespace_prefix: ['q'], query: 'zebra', limit: 4 })).every(
      ({ key, score }) => key !== 'part' || (score ?? 0) < 0.3,
    ),
  ).toBe(true);
  const pages = [];
  for (let offset = 0; offset < 4; offset += 1)
    pages.push(...(await keysOf({ namespace_prefix: ['q'], query: 'cat', limit: 1, offset })));
  expect(pages.sort()).toEqual(['cat', 'hidden', 'part', 'twin']);
});

test('a search reinforces nothing, so that its pages keep one order', async () => {
  for (const key of ['one', 'two', 'three']) await put({ namespace: ['pages'], key, value: { of: 'a kite' } });
  const asked = { namespace_prefix: ['pages'], query: 'kite', limit: 1 };
  expect(await keysOf(asked)).toHaveLength(1);
  // A later query, whose reinforcement is applied after that of the search.
  const { body } = await api.request('POST', '/memory/query', {
    body: { query: 'kite', filters: { namespace: 'pages' } },
  });
  expect(body.matches).toHaveLength(3);
  const useOf = async () =>
    (await Promise.all(body.matches.map(({ id }) => api.request('GET', `/memory/${id}`)))).map(
      (reply) => reply.body['access_count'],
    );
  await vi.waitFor(async () => expect(await useOf()).not.toContain(0), { timeout: 120_000 });
  expect(await useOf()).toEqual([1, 1, 1]);
});

test('namespaces are listed by prefix, suffix and depth', async () => {
  for (const namespace of [
    ['n', 'ana', 'prefs'],
    ['n', 'ben', 'prefs'],
    ['n', 'ben', 'notes', 'old'],
  ])
    await put({ namespace, key: 'k', value: {} });
  const list = async (body: object) => {
    const reply = await api.request('POST', '/store/namespaces', { body });
    return (reply.body['namespaces'] as string[][]).map((labels) => labels.join('/'));
  };
  expect(await list({ prefix: ['n'] })).toEqual(['n/ana/prefs', 'n/ben/notes/old', 'n/ben/prefs']);
  expect(await list({ prefix: ['n', '*', 'prefs'] })).toEqual(['n/ana/prefs', 'n/ben/prefs']);
  expect(await list({ prefix: ['n'], suffix: ['old'] })).toEqual(['n/ben/notes/old']);
  expect(await list({ prefix: ['n'], max_depth: 2 })).toEqual(['n/ana', 'n/ben']);
  expect(await list({ prefix: ['n'], limit: 1, offset: 1 })).toEqual(['n/ben/notes/old']);
});

test('a get and a search renew the life of an item, unless they say no, and leave its version alone', async () => {
  const clock = createManualClock();
  await using own = await startApi({ folder: tempFolder(), clock, settings: { OM_EMBEDDINGS: 'none' } });
  const put = (key: string, ttl?: number) =>
    own.request('PUT', '/store/items', { body: { namespace: ['life'], key, value: { key }, ttl } });
  const read = async (key: string, more = '') =>
    (await own.request('GET', `/store/items?namespace=life&key=${key}${more}`)).text !== 'null';
  const find = async (more: object = {}) => {
    const { body } = await own.request('POST', '/store/items/search', {
      body: { namespace_prefix: ['life'], ...more },
    });
    return body.items.map((item: object) => (item as { readonly key: string }).key);
  };
  for (const key of ['read', 'found', 'left']) await put(key, 10);
  await put('stays');
  clock.advance(8 * 60_000);
  expect(await read('read')).toBe(true);
  expect(await read('left', '&refresh_ttl=False')).toBe(true);
  expect(await find({ filter: { key: 'found' }, refresh_ttl: true })).toEqual(['found']);
  clock.advance(8 * 60_000);
  expect(await find({ refresh_ttl: false })).toEqual(['found', 'read', 'stays']);
  clock.advance(2 * 60_000);
  expect(await find()).toEqual(['stays']);
  expect((await own.request('GET', '/store/items?namespace=life&key=stays&refresh_ttl=maybe')).status).toBe(400);

  await put('again', 10);
  clock.advance(5 * 60_000);
  await read('again');
  const { body } = await own.request('GET', '/items?namespace=life&key=again');
  expect(body).toMatchObject({ version: 1, expires_at: clock.now() + 10 * 60_000 });
  // An expiry that was set by hand is final.
  await own.request('PATCH', `/memory/${body.id}`, { body: { expires_at: clock.now() + 60_000 } });
  clock.advance(30_000);
  expect(await read('again')).toBe(true);
  clock.advance(30_000);
  expect(await read('again')).toBe(false);
});

test('a time to live is minutes from the put, and a put without one ends it', async () => {
  const place = { namespace: ['ttl'], key: 'k' };
  await put({ ...place, value: {}, ttl: 0.0001 });
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await get('ttl', 'k')).toBe('null');
  await put({ ...place, value: { again: true }, ttl: 5 });
  expect(await get('ttl', 'k')).toContain('again');
  const list = await api.request('GET', '/memory/all?l=1');
  expect(list.body.items[0]).toMatchObject({ expires_at: expect.any(Number) as unknown });
});

test.each([
  [{ namespace: [], key: 'k', value: {} }, 'namespace'],
  [{ namespace: ['a.b'], key: 'k', value: {} }, 'dots'],
  [{ namespace: ['a', ''], key: 'k', value: {} }, 'empty'],
  [{ namespace: Array(10).fill('x'.repeat(96)), key: 'k', value: {} }, '512 characters'],
  [{ namespace: ['langgraph', 'x'], key: 'k', value: {} }, 'reserved'],
  [{ namespace: ['a'], key: '', value: {} }, 'key'],
  [{ namespace: ['a'], key: 'k', value: 'text' }, 'object'],
  [{ namespace: ['a'], key: 'k', value: {}, ttl: -1 }, 'ttl'],
  [{ namespace: ['a'], key: 'k', value: {}, index: true }, 'index'],
  [{ namespace: ['a'], key: 'k', value: nested(20_001), index: ['list.*'] }, 'places'],
])('a wrong put is refused and stores nothing: %j', async (body, named) => {
  const reply = await put(body);
  expect([reply.status, reply.body.detail]).toEqual([400, expect.stringContaining(named)]);
});

test('a key that is bound to a user has a store of its own', async () => {
  const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'write', userId: 'bo' } as never);
  const place = { namespace: ['own'], key: 'k' };
  await put({ ...place, value: { of: 'nobody' } });
  await api.request('PUT', '/store/items', { body: { ...place, value: { of: 'bo' } }, key: secret });
  const mine = await api.request('POST', '/store/items/search', { body: { query: 'of' }, key: secret });
  expect(mine.body.items).toMatchObject([{ value: { of: 'bo' } }]);
  expect(await get('own', 'k')).toContain('nobody');
  const spaces = await api.request('POST', '/store/namespaces', { body: {}, key: secret });
  expect(spaces.body['namespaces']).toEqual([['own']]);
});

test('queries of memories can be kept within a namespace', async () => {
  await put({ namespace: ['in', 'it'], key: 'k', value: { text: 'The lamp stands by the north window.' } });
  await api.add({ content: 'The lamp stands by the south window.' });
  const ask = async (filters: object) =>
    (await api.request('POST', '/memory/query', { body: { query: 'lamp window', min_score: 0, filters } })).body
      .matches;
  expect((await ask({ namespace: 'in' })).map(({ content }) => content)).toEqual([
    'text: The lamp stands by the north window.',
  ]);
  expect(await ask({ namespace: 'i' })).toEqual([]);
});

function nested(entries: number): object {
  return { list: Array.from({ length: entries }, () => 1) };
}
