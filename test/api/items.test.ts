import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
beforeAll(async () => void (api = await startApi({ folder: tempFolder(), workers: true })));
afterAll(() => api.stop());

const put = (body: object, options: object = {}) => api.request('PUT', '/items', { body, ...options });
const at = (place: Record<string, string>) => `/items?${new URLSearchParams(place).toString()}`;
const keyOf = (key: object) =>
  api.engine.control.createKey({ tenantId: 'default', role: 'write', ...key } as never).secret;

test('a value is put, read as it was sent, replaced with its history, and deleted', async () => {
  const place = { user_id: 'ana', namespace: 'settings.editor', key: 'look/theme' };
  const value = { b: [1, { deep: null }], a: 'dark', '': 0.1, __proto__x: false };
  const made = await put({ ...place, value, tags: ['ui'] });
  expect(made.status).toBe(201);
  expect(made.headers.get('etag')).toBe(`"1-${made.body.id}"`);
  expect(made.body).toMatchObject({ ...place, value, created: true, changed: true, external_id: 'look/theme' });
  expect(made.body['content']).toContain('a: dark');
  const read = await api.request('GET', at(place));
  expect(JSON.stringify(read.body['value'])).toBe(JSON.stringify(value));
  expect((await api.request('GET', `/memory/${made.body.id}`)).body).toMatchObject({
    namespace: 'settings.editor',
    value,
  });

  const same = await put({ ...place, value, tags: ['ui'] });
  expect([same.status, same.body['created'], same.body['changed'], same.body.version]).toEqual([200, false, false, 1]);
  const next = await put({ ...place, value: ['light'] });
  expect(next.body).toMatchObject({ id: made.body.id, version: 2, changed: true, tags: [], content: 'light' });
  const history = await api.request('GET', `/memory/${made.body.id}/history`);
  expect(history.body.items).toMatchObject([{ version: 1, replaced: { value, tags: ['ui'] } }]);

  const gone = await api.request('DELETE', at(place));
  expect(gone.body).toMatchObject({ deleted: 1, removed: { revisions: 1 } });
  expect((await api.request('GET', at(place))).status).toBe(404);
  expect((await api.request('DELETE', at(place))).status).toBe(404);
});

test('equal texts under two keys, users or namespaces stay apart, and an add does not become one of them', async () => {
  const text = { content: 'The lighthouse keeper paints the stairs.' };
  const places = [
    { key: 'a', user_id: 'eve' },
    { key: 'b', user_id: 'eve' },
    { key: 'a', user_id: 'eve', namespace: 'n' },
    { key: 'a', user_id: 'eve', namespace: 'n.m' },
    { key: 'a' },
  ];
  const ids = [];
  for (const place of places) ids.push((await put({ ...place, ...text })).body.id);
  ids.push((await api.add({ ...text, user_id: 'eve' })).id);
  expect(new Set(ids).size).toBe(6);
});

test('in no namespace the key is the external id of an added memory', async () => {
  const { id } = await api.add({ content: 'Imported once.', user_id: 'ida', external_id: 'row-7' });
  expect((await api.request('GET', at({ user_id: 'ida', key: 'row-7' }))).body.id).toBe(id);
  const changed = await put({ user_id: 'ida', key: 'row-7', content: 'Imported twice.' });
  expect(changed.body).toMatchObject({ id, version: 2, created: false, namespace: '', value: null });
});

test('queries find an item by the text of its value, and one with an empty text not at all', async () => {
  const value = { animal: 'The walrus sleeps on the pier.' };
  await put({ user_id: 'wal', key: 'seen', value });
  await put({ user_id: 'wal', key: 'hidden', value, content: '' });
  await expect
    .poll(async () => (await api.request('GET', at({ user_id: 'wal', key: 'hidden' }))).body.state)
    .toBe('ready');
  const { matches } = (
    await api.request('POST', '/memory/query', { body: { query: 'walrus on the pier', user_id: 'wal', min_score: 0 } })
  ).body;
  expect(matches).toMatchObject([{ external_id: 'seen', value }]);
});

test.each(['superseded', 'contradicted'])('a put makes an item that was %s active again', async (status) => {
  const place = { user_id: status, namespace: 'facts', key: 'office' };
  const made = await put({ ...place, value: 'The office is in Bonn.' });
  const winner = (await api.add({ content: 'The office is in Kiel.', user_id: status })).id;
  const [path, body] =
    status === 'superseded'
      ? ['/memory/supersede', { old_id: made.body.id, new_id: winner }]
      : ['/memory/contradict', { a: made.body.id, b: winner, winner }];
  await api.request('POST', path, { body });
  const shown = async () => (await api.request('GET', `/memory/${made.body.id}`)).body;
  expect((await shown())['status']).toBe(status);
  const again = await put({ ...place, value: 'The office is in Bonn.' });
  expect([again.status, again.body['changed']]).toEqual([200, true]);
  expect(await shown()).toMatchObject({ status: 'active', valid_to: null });
  expect((await api.request('GET', `/memory/${winner}`)).body['status']).toBe('active');
  const listed = await api.request('POST', '/memory/query', {
    body: { query: 'Where is the office?', user_id: status, min_score: 0, relative_floor: 0 },
  });
  expect(listed.body.matches.map(({ id }) => id)).toContain(made.body.id);
});

test('If-Match guards a put, and an expired item is stored anew', async () => {
  const place = { key: 'counter', namespace: 'guarded' };
  const first = await put({ ...place, value: 1 });
  const stale = await put({ ...place, value: 3 }, { headers: { 'if-match': '"7"' } });
  expect([stale.status, stale.body.code]).toEqual([409, 'conflict']);
  expect((await put({ ...place, value: 2 }, { headers: { 'if-match': '"1"' } })).body.version).toBe(2);
  expect((await put({ ...place, value: 2, expires_at: '1970-01-01' })).body.id).toBe(first.body.id);
  expect((await api.request('GET', at(place))).status).toBe(404);
  const anew = await put({ ...place, value: 4 });
  expect(anew.status).toBe(201);
  expect(anew.body.id).not.toBe(first.body.id);
});

test('If-Match guards a delete, and a put that must find no item', async () => {
  const place = { key: 'plan', namespace: 'guarded' };
  const absent = { headers: { 'if-match': '"0"' } };
  expect((await put({ ...place, value: 1 }, absent)).status).toBe(201);
  expect((await put({ ...place, value: 2 }, absent)).status).toBe(409);
  await put({ ...place, value: 2 });
  const erase = (version: string) => api.request('DELETE', at(place), { headers: { 'if-match': version } });
  const stale = await erase('"1"');
  expect([stale.status, stale.body['code']]).toEqual([409, 'conflict']);
  expect((await api.request('DELETE', at(place), { headers: { 'if-match': 'W/"2"' } })).status).toBe(400);
  expect((await api.request('GET', at(place))).body['value']).toBe(2);
  const tagged = keyOf({ tags: ['work'] });
  const own = { key: 'mine', namespace: 'guarded' };
  await put({ ...own, value: 1 }, { key: tagged });
  const refused = await api.request('DELETE', at(own), { key: tagged, headers: { 'if-match': '"9"' } });
  expect(refused.status).toBe(409);
  expect((await erase('"2"')).status).toBe(200);
  expect((await erase('"2"')).status).toBe(404);
});

test('the ETag of an item that was erased and stored anew is another one', async () => {
  const place = { key: 'draft', namespace: 'guarded' };
  const tag = async () => (await api.request('GET', at(place))).headers.get('etag')!;
  await put({ ...place, value: 1 });
  const first = await tag();
  await api.request('DELETE', at(place));
  await put({ ...place, value: 'of somebody else' });
  const replaced = await put({ ...place, value: 2 }, { headers: { 'if-match': first } });
  expect([replaced.status, replaced.body['detail']]).toEqual([409, expect.stringContaining('stored anew')]);
  expect((await api.request('DELETE', at(place), { headers: { 'if-match': first } })).status).toBe(409);
  expect((await put({ ...place, value: 2 }, { headers: { 'if-match': await tag() } })).status).toBe(200);
  const unquoted = (await tag()).replaceAll('"', '');
  expect((await api.request('DELETE', at(place), { headers: { 'if-match': unquoted } })).status).toBe(200);
});

test.each([
  ['no key', { value: 1 }, 'key'],
  ['an empty key', { key: '', value: 1 }, 'key'],
  ['nothing to store', { key: 'k' }, 'DELETE'],
  ['an empty label', { key: 'k', value: 1, namespace: 'a..b' }, 'namespace'],
  ['a value that is too large', { key: 'k', value: 'x'.repeat(256 * 1024) }, 'at most 262144'],
  ['an unknown field', { key: 'k', value: 1, session_id: 's' }, 'session_id'],
])('refuses %s, and stores nothing', async (_, body, word) => {
  const reply = await put(body);
  expect(reply.status).toBe(400);
  expect(reply.text).toContain(word);
  expect((await api.request('GET', at({ key: 'k' }))).status).toBe(404);
});

test('a bound key puts, reads and deletes within its bounds only', async () => {
  await put({ user_id: 'ben', key: 'plan', value: 'secret of ben' });
  const ana = keyOf({ userId: 'ana2' });
  expect((await api.request('GET', at({ key: 'plan' }), { key: ana })).status).toBe(404);
  expect((await api.request('GET', at({ key: 'plan', user_id: 'ben' }), { key: ana })).status).toBe(403);
  expect((await put({ key: 'plan', value: 'of ana' }, { key: ana })).body['user_id']).toBe('ana2');
  const tagged = keyOf({ tags: ['work'] });
  expect((await put({ user_id: 'ben', key: 'plan', value: 1 }, { key: tagged })).status).toBe(409);
  expect((await api.request('DELETE', at({ user_id: 'ben', key: 'plan' }), { key: tagged })).status).toBe(404);
  expect((await put({ key: 'own', value: 1 }, { key: tagged })).body['tags']).toEqual(['work']);
  expect((await put({ key: 'x', value: 1 }, { key: keyOf({ role: 'read' }) })).status).toBe(403);
});

test('erasing the user erases items, values and namespaces, and the audit log names no key', async () => {
  const made = await put({ user_id: 'zoe', namespace: 'zoes.things', key: 'zoes-key', value: 'zoes value' });
  const { items } = (await api.request('GET', '/audit?limit=5')).body;
  expect(items).toEqual(
    expect.arrayContaining([expect.objectContaining({ action: 'item.put', detail: { id: made.body.id, version: 1 } })]),
  );
  expect(JSON.stringify(items)).not.toContain('zoes');
  await api.request('DELETE', '/users/zoe/memories');
  expect((await api.request('GET', at({ user_id: 'zoe', namespace: 'zoes.things', key: 'zoes-key' }))).status).toBe(
    404,
  );
});
