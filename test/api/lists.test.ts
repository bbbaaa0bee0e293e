import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
beforeAll(async () => void (api = await startApi({ folder: tempFolder(), workers: true })));
afterAll(() => api.stop());

const START = Date.UTC(2026, 0, 5);
const list = (body: object, key?: string) => api.request('POST', '/memory/list', { body, ...(key ? { key } : {}) });
const keyOf = (key: object) =>
  api.engine.control.createKey({ tenantId: 'default', role: 'write', ...key } as never).secret;

test('POST /memory/list pages in both directions, and the last page says so', async () => {
  for (const [at, content] of ['one', 'two', 'three'].entries())
    await api.add({ content: `list ${content}`, user_id: 'lia', event_time: START - at, files: [`src/${content}.ts`] });
  const texts = ({ body }: { body: Record<string, unknown> }) =>
    (body['items'] as { content: string }[]).map(({ content }) => content);
  const first = await list({ user_id: 'lia', limit: 2 });
  expect([first.status, texts(first)]).toEqual([200, ['list three', 'list two']]);
  const second = await list({ user_id: 'lia', limit: 2, cursor: first.body['next_cursor'] });
  expect([texts(second), second.body['next_cursor']]).toEqual([['list one'], null]);
  expect(texts(await list({ filters: { users: ['lia'] }, order_by: 'event_time', order: 'asc' }))).toEqual([
    'list three',
    'list two',
    'list one',
  ]);
  expect(texts(await list({ filters: { files: ['src/two.ts', 'x'] } }))).toEqual(['list two']);
  const found = await api.request('POST', '/memory/query', {
    body: { query: 'list', filters: { files: ['src/one.ts'] }, min_score: 0 },
  });
  expect((found.body['matches'] as unknown[]).length).toBe(1);
});

test('a request that the list does not know is refused by name', async () => {
  const refused = async (body: object) => {
    const { status, body: problem } = await list(body);
    expect(status).toBe(400);
    return String(problem.detail);
  };
  expect(await refused({ filters: { min_score: 0.5 } })).toContain('filters.min_score');
  expect(await refused({ cursor: 'x' })).toContain('cursor');
  expect(await refused({ cursor: 'x'.repeat(9_000) })).toContain('cursor');
  expect(await refused({ limit: 0 })).toContain('limit');
  expect(await refused({ order: 'up' })).toContain('asc, desc');
  expect(await refused({ filters: { files: [] } })).toContain('filters.files');
});

test('DELETE /memory by files erases what mentions one of them, and nothing else', async () => {
  await api.add({ content: 'mentions gone', user_id: 'fay', files: ['gone.ts', 'kept.ts'] });
  await api.add({ content: 'mentions kept', user_id: 'fay', files: ['kept.ts'] });
  const { body } = await api.request('DELETE', '/memory', { body: { user_id: 'fay', files: ['gone.ts'] } });
  expect(body['deleted']).toBe(1);
  expect((await list({ user_id: 'fay' })).body['items']).toMatchObject([{ content: 'mentions kept' }]);
});

test('items are listed, their namespaces counted, renamed and erased over HTTP', async () => {
  const put = (namespace: string, key: string, value: unknown, user_id = 'nia') =>
    api.request('PUT', '/items', { body: { user_id, namespace, key, value } });
  await put('docs', 'a', { n: 1 });
  await put('docs.old', 'b', { n: 2 });
  await put('docs', 'a', { n: 3 }, 'ben');
  const items = async (body: object) =>
    (await api.request('POST', '/items/list', { body: { user_id: 'nia', ...body } })).body;
  expect(await items({ value: { n: { $gte: 2 } } })).toMatchObject({
    items: [{ namespace: 'docs.old', key: 'b', value: { n: 2 } }],
    next_cursor: null,
  });
  const page = await items({ limit: 1 });
  expect(await items({ limit: 1, cursor: page['next_cursor'] })).toMatchObject({ items: [{ key: 'b' }] });

  const names = await api.request('GET', '/namespaces?prefix=docs&max_depth=1');
  expect(names.body['items']).toMatchObject([{ namespace: 'docs', items: 3 }]);
  const moved = await api.request('PATCH', '/namespaces/docs', { body: { user_id: 'nia', to: 'papers' } });
  expect([moved.status, moved.body]).toEqual([200, { items: 2, namespaces: 2 }]);
  expect((await api.request('PATCH', '/namespaces/papers', { body: { user_id: 'nia', to: 'papers.x' } })).status).toBe(
    400,
  );
  expect((await api.request('GET', '/namespaces?user_id=nia')).body['items']).toMatchObject([
    { namespace: 'papers', items: 1 },
    { namespace: 'papers.old', items: 1 },
  ]);
  await put('papers', 'z', 1, 'ben');
  expect((await api.request('DELETE', '/namespaces/papers?user_id=nia')).body['deleted']).toBe(2);
  expect((await api.request('GET', '/namespaces?suffix=papers')).body['items']).toMatchObject([{ items: 1 }]);
  expect((await api.request('DELETE', '/namespaces/a..b')).status).toBe(400);
});

test('a bound key lists and counts its own', async () => {
  await api.request('PUT', '/items', { body: { user_id: 'own', namespace: 'n', key: 'mine', value: 1, tags: ['t'] } });
  await api.request('PUT', '/items', { body: { user_id: 'own', namespace: 'n', key: 'untagged', value: 1 } });
  await api.request('PUT', '/items', { body: { user_id: 'foreign', namespace: 'n.secret', key: 'x', value: 1 } });
  const key = keyOf({ userId: 'own', tags: ['t'] });
  expect((await list({}, key)).body['items']).toMatchObject([{ external_id: 'mine' }]);
  expect((await list({ user_id: 'foreign' }, key)).status).toBe(403);
  expect((await api.request('GET', '/namespaces', { key })).body['items']).toMatchObject([
    { namespace: 'n', items: 1 },
  ]);
  const items = await api.request('POST', '/items/list', { key, body: {} });
  expect((items.body['items'] as unknown[]).length).toBe(1);
});

test('on_duplicate: keep stores a twin in an add, a batch and a line; keys and external ids still hold', async () => {
  const memory = { content: 'Said twice.', user_id: 'tia' };
  const { id } = await api.add(memory);
  const again = await api.request('POST', '/memory/add', { body: memory });
  expect([again.status, again.body.id]).toEqual([200, id]);
  const keep = { ...memory, on_duplicate: 'keep' };
  const header = { headers: { 'idempotency-key': 'keep-1' } };
  const kept = await api.request('POST', '/memory/add', { body: keep, ...header });
  expect(kept.status).toBe(202);
  const replayed = await api.request('POST', '/memory/add', { body: keep, ...header });
  expect(replayed.body.id).toBe(kept.body.id);
  const batch = await api.request('POST', '/memory/add/batch', { body: { items: [keep, keep, memory] } });
  expect(batch.body['results']).toMatchObject([{ state: 'queued' }, { state: 'queued' }, { deduplicated: true }]);
  const named = { ...keep, external_id: 'tia-1' };
  const ids = [(await api.add(named)).id, (await api.request('POST', '/memory/add', { body: named })).body.id];
  expect(new Set(ids).size).toBe(1);
  expect((await list({ user_id: 'tia' })).body['items']).toHaveLength(5);
  const wrong = await api.request('POST', '/memory/add', { body: { ...memory, on_duplicate: 'drop' } });
  expect(wrong.body.detail).toContain('on_duplicate');
});

test('names and graphs are answered over HTTP within their bounds', async () => {
  const { id } = await api.add({
    content: 'Graph of one.',
    user_id: 'gia',
    session_id: 's',
    type: 'note',
    tags: ['g'],
  });
  const names = async (path: string) => (await api.request('GET', path)).body['items'];
  expect(await names('/users?prefix=gi')).toMatchObject([{ name: 'gia', memories: 1 }]);
  expect(await names('/sessions?user_id=gia')).toMatchObject([{ name: 's' }]);
  expect(await names('/types?user_id=gia')).toMatchObject([{ name: 'note' }]);
  expect(await names('/tags?user_id=gia&limit=1')).toMatchObject([{ name: 'g' }]);
  expect((await api.request('GET', '/sessions')).status).toBe(400);
  const around = await api.request('GET', `/memory/${id}/neighbourhood?hops=3&limit=5`);
  expect(around.body['memories']).toMatchObject([{ id, hop: 0 }]);
  expect((await api.request('GET', `/memory/${id}/neighbourhood?user_id=ben`)).status).toBe(404);
  expect((await api.request('GET', `/memory/${id}/neighbourhood?hops=4`)).status).toBe(400);
  expect((await api.request('GET', '/users/gia/graph?limit=2001')).status).toBe(400);
  expect((await api.request('GET', '/users/gia/graph')).body).toMatchObject({ memories: [{ id }], truncated: false });
});
