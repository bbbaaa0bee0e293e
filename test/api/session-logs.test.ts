import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
beforeAll(async () => void (api = await startApi({ folder: tempFolder() })));
afterAll(() => api.stop());

const log = (session: string, more = '') => `/sessions/${encodeURIComponent(session)}/log${more}`;
const append = (session: string, body: object, options: object = {}) =>
  api.request('POST', log(session), { body, ...options });
const read = async (session: string, query = '') => (await api.request('GET', log(session, query))).body;
const shownBy = ({ items }: { readonly items: readonly object[] }) =>
  items.map((one) => (one as { readonly item: unknown }).item);
const itemsOf = async (session: string, query = '') => shownBy(await read(session, query));
const keyOf = (key: object) =>
  api.engine.control.createKey({ tenantId: 'default', role: 'write', ...key } as never).secret;

test('items come back as they were, in their order, equal ones too', async () => {
  const items = [
    { role: 'user', content: 'x', '': [null, 1e21, { __proto__x: 0.1 }] },
    'text',
    'text',
    null,
    [],
    { b: 1, a: 2 },
  ];
  const first = await append('s/1 ü', { items });
  expect([first.status, first.body]).toEqual([200, { position: 0, removed: 0, total: 6, replayed: false }]);
  await append('s/1 ü', { items: items.slice(0, 1) });
  expect(JSON.stringify(await itemsOf('s/1 ü'))).toBe(JSON.stringify([...items, items[0]]));
  expect(await itemsOf('s/1 ü', '?user_id=ana')).toEqual([]);
});

test('a number that would come back as another one is refused, in logs and in values of items', async () => {
  const body = '{"items":[{"id":9007199254740993}]}';
  const reply = await api.request('POST', log('counted'), { body });
  expect([reply.status, reply.body.detail], reply.text).toEqual([
    400,
    expect.stringContaining('send a larger one as a string'),
  ]);
  expect((await read('counted')).items).toEqual([]);
  const item = await api.request('PUT', '/items', { body: '{"key":"counted","value":[-9007199254740993]}' });
  expect(item.status).toBe(400);
});

test('the newest items are read first, and next leads to the older ones', async () => {
  await append('paged', { items: Array.from({ length: 25 }, (_, index) => index) });
  const newest = await read('paged', '?limit=10');
  expect(newest).toMatchObject({ total: 25, next: 15 });
  expect(shownBy(newest)).toEqual([15, 16, 17, 18, 19, 20, 21, 22, 23, 24]);
  expect(await itemsOf('paged', '?limit=10&before=15')).toEqual([5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
  const oldest = await read('paged', '?limit=10&before=5');
  expect(oldest.items).toHaveLength(5);
  expect(oldest['next']).toBeUndefined();
});

test('a page ends before it has more than 1 MiB of items', async () => {
  for (let index = 0; index < 6; index++) await append('large', { items: [`${index}`.repeat(250_000)] });
  const page = await read('large');
  expect(shownBy(page).map((item) => (item as string)[0])).toEqual(['2', '3', '4', '5']);
  expect(page['next']).toBe(2);
});

test('an operation happens once, and its name stands for nothing else', async () => {
  const body = { items: [{ n: 1 }], operation_id: 'turn-1' };
  const first = await append('once', body);
  const again = await append('once', body);
  expect(again.body).toEqual({ ...first.body, replayed: true });
  const other = await append('once', { ...body, items: [{ n: 2 }] });
  expect([other.status, other.body.code]).toEqual([409, 'conflict']);
  expect((await append('twice', body)).body['replayed']).toBe(false);
  expect(await itemsOf('once')).toEqual([{ n: 1 }]);

  // A retry that comes after the log was cleared brings nothing back.
  expect((await api.request('DELETE', log('once'))).body).toEqual({ ok: true, removed: 1 });
  expect((await append('once', body)).body['replayed']).toBe(true);
  expect(await read('once')).toMatchObject({ items: [], total: 0 });
});

test('appends that share a commit are each whole, and the refused one among them leaves nothing', async () => {
  const replies = await Promise.all(
    Array.from({ length: 40 }, (_, index) =>
      append('busy', { items: [`${index}a`, `${index}b`], ...(index === 20 ? { expected_total: 99_999 } : {}) }),
    ),
  );
  expect(replies.filter(({ status }) => status === 200)).toHaveLength(39);
  const items = (await itemsOf('busy')) as string[];
  expect(items).toHaveLength(78);
  for (let at = 0; at < items.length; at += 2) expect(items[at + 1]).toBe(items[at]!.replace('a', 'b'));
  expect(items).not.toContain('20a');
});

test('pop takes the newest item, and with expected_total never a second one', async () => {
  await append('stack', { items: [1, null] });
  const pop = (body?: object) => api.request('POST', log('stack', '/pop'), body === undefined ? {} : { body });
  expect((await pop({ expected_total: 2 })).body).toMatchObject({ popped: { position: 1, item: null }, total: 1 });
  expect((await pop({ expected_total: 2 })).status).toBe(409);
  expect((await pop()).body).toMatchObject({ popped: { item: 1 }, total: 0 });
  expect((await pop()).body).toEqual({ popped: null, total: 0 });
  expect((await append('stack', { items: [3] })).body).toMatchObject({ position: 0, total: 1 });
});

test('the end of a log is replaced from a position or where it is as expected, in one step and once', async () => {
  const replace = (body: object) => api.request('POST', log('edited', '/replace'), { body });
  await append('edited', { items: ['a', { k: 1, l: [2] }, 'c'] });
  const change = { expected_suffix: [{ l: [2], k: 1 }, 'c'], items: ['B'], operation_id: 'edit' };
  expect((await replace(change)).body).toEqual({ position: 1, removed: 2, total: 2, replayed: false });
  expect((await replace(change)).body).toEqual({ position: 1, removed: 2, total: 2, replayed: true });
  expect((await replace({ expected_suffix: ['C'], items: [] })).body.code).toBe('conflict');
  expect((await replace({ expected_suffix: ['x', 'a', 'B'], items: [] })).body.code).toBe('conflict');
  expect((await replace({ from: 3, items: [] })).body.detail).toContain('expected 0..2');
  expect((await replace({ from: 1, items: ['b', 'c'] })).body).toMatchObject({ position: 1, removed: 1, total: 3 });
  expect(await itemsOf('edited')).toEqual(['a', 'b', 'c']);
  expect((await replace({ from: 0, items: [] })).body).toMatchObject({ removed: 3, total: 0 });
});

test.each([
  ['no item', { items: [] }, 'must not be empty'],
  ['too many', { items: Array.from({ length: 101 }, () => 1) }, 'at most 100'],
  ['an item over 256 KiB', { items: ['x'.repeat(256 * 1024)] }, 'at most 262144'],
  ['an unknown field', { items: [1], text: 't' }, 'text'],
])('refuses %s, and stores nothing', async (_, body, word) => {
  const reply = await append('refused', body);
  expect(reply.status).toBe(400);
  expect(reply.text).toContain(word);
  expect((await read('refused')).total).toBe(0);
});

test('a replacement names either a position or what is expected', async () => {
  for (const body of [{ items: [] }, { items: [], from: 0, expected_suffix: [] }]) {
    const reply = await api.request('POST', log('refused', '/replace'), { body });
    expect([reply.status, reply.text]).toEqual([400, expect.stringContaining('either from or expected_suffix')]);
  }
});

test('a bound key has the logs of its user, and a key of tags none', async () => {
  await append('shared', { user_id: 'ben', items: ['of ben'] });
  const ana = keyOf({ userId: 'ana' });
  expect((await append('shared', { items: ['of ana'] }, { key: ana })).body).toMatchObject({ position: 0 });
  expect((await append('shared', { user_id: 'ben', items: [1] }, { key: ana })).status).toBe(403);
  expect((await api.request('GET', log('shared'), { key: ana })).body.items).toMatchObject([{ item: 'of ana' }]);
  expect((await api.request('GET', log('shared', '?user_id=ben'), { key: ana })).status).toBe(403);
  expect(await itemsOf('shared', '?user_id=ana')).toEqual(['of ana']);
  const tagged = keyOf({ tags: ['work'] });
  expect((await api.request('GET', log('shared'), { key: tagged })).status).toBe(403);
  expect((await append('shared', { items: [1] }, { key: keyOf({ role: 'read' }) })).status).toBe(403);
});

test('erasing a user or a session erases its logs and leaves tombstones of its operations', async () => {
  const place = { user_id: 'zoe' };
  const body = { ...place, items: ['zoes words'], operation_id: 'zoes-turn' };
  await append('one', body);
  await append('two', { ...place, items: ['more', 'words'] });
  await append('one', { user_id: 'yan', items: ['stays'] });
  const bySession = await api.request('DELETE', '/memory', { body: { user_id: 'zoe', session_id: 'two' } });
  expect(bySession.body['log_items']).toBe(2);
  expect(await itemsOf('one', '?user_id=zoe')).toEqual(['zoes words']);
  expect((await api.request('DELETE', '/users/zoe/memories')).body).toMatchObject({ deleted: 0, log_items: 1 });
  expect(await itemsOf('one', '?user_id=zoe')).toEqual([]);
  expect(await itemsOf('one', '?user_id=yan')).toEqual(['stays']);
  expect((await append('one', body)).body.detail).toContain('was erased');
  // A delete by tags or files says nothing about logs.
  await api.request('DELETE', '/memory', { body: { user_id: 'yan', tags: ['none'] } });
  await api.request('DELETE', '/memory', { body: { user_id: 'yan', files: ['none.ts'] } });
  expect(await itemsOf('one', '?user_id=yan')).toEqual(['stays']);
  const { items } = (await api.request('GET', '/audit?limit=500')).body;
  expect(JSON.stringify(items)).not.toContain('zoe');
  expect(items.map((record: object) => (record as { action: string }).action)).toEqual(
    expect.arrayContaining(['log.append', 'log.replace', 'log.erase', 'log.pop', 'log.clear']),
  );
});

test('items are screened as memories are, those that are expected too', async () => {
  await api.request('PUT', '/settings/privacy', { body: { secrets: 'redact', personal: 'off' } });
  const items = [{ role: 'user', content: 'my key is sk-proj-4fR7tQ2mZx9Lw3Vb8Nc6Hd1Js5Gy0Pk' }];
  await append('private', { items });
  expect(JSON.stringify(await itemsOf('private'))).toContain('[REDACTED');
  const replaced = await api.request('POST', log('private', '/replace'), {
    body: { expected_suffix: items, items: ['gone'] },
  });
  expect(replaced.body).toMatchObject({ removed: 1, total: 1 });
});
