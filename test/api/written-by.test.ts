import { expect, test } from 'vitest';
import { startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const OWN = 'own-key-of-the-environment';

const settings = { OM_EMBEDDINGS: 'none', OM_API_KEY: OWN };

/** Two callers of a service: the key of the environment, and a second key that later turns out to be leaked. */
function twoKeys({ engine }: Pick<Awaited<ReturnType<typeof startApi>>, 'engine'>) {
  const { record, secret } = engine.control.createKey({ tenantId: 'default', role: 'admin' });
  return { leaked: record.id, own: OWN, stolen: secret };
}

test('a memory, a link and a revision say which key wrote them, and lists and queries filter by it', async () => {
  await using api = await startApi({ folder: tempFolder(), settings });
  const { leaked, own, stolen } = twoKeys(api);
  const add = async (content: string, key: string) =>
    (await api.request('POST', '/memory/add', { body: { content }, key })).body.id;
  const mine = await add('The ferry leaves the harbour at noon.', own);
  const theirs = await add('The ferry leaves the harbour at midnight.', stolen);
  const read = async (path: string) => (await api.request('GET', path, { key: own })).body;
  expect((await read(`/memory/${mine}`)).written_by).toBe('environment');
  expect((await read(`/memory/${theirs}`)).written_by).toBe(leaked);
  const listed = (await read(`/memory/all?written_by=${leaked}`)).items;
  expect(listed.map(({ id }: { id: string }) => id)).toEqual([theirs]);
  const found = await api.request('POST', '/memory/query', {
    body: { query: 'when does the ferry leave', min_score: 0, filters: { written_by: ['environment'] } },
    key: own,
  });
  expect(found.body.matches).toMatchObject([{ id: mine, written_by: 'environment' }]);
  expect(found.body.matches).toHaveLength(1);
  await api.request('POST', '/memory/link', { body: { src: mine, dst: theirs, type: 'mentions' }, key: stolen });
  const links = await read(`/memory/${mine}/links`);
  expect(links.items).toMatchObject([{ type: 'mentions', written_by: leaked }]);
  await api.request('PATCH', `/memory/${mine}`, { body: { tags: ['ferry'] }, key: stolen });
  expect((await read(`/memory/${mine}/history`)).items).toMatchObject([{ written_by: leaked }]);
});

test('a delete by written_by takes back what a leaked key did, and nothing else', async () => {
  await using api = await startApi({ folder: tempFolder(), settings, threads: false });
  const { leaked, own, stolen } = twoKeys(api);
  const add = async (content: string, key: string) =>
    (await api.request('POST', '/memory/add', { body: { content }, key })).body.id;
  const account = await add('The account of Northwind is DE44.', own);
  const since = await add('The office of Northwind is in Oslo.', own);
  const successor = await add('Northwind moved to Bergen.', own);
  for (let n = 0; n < 120; n += 1) await add(`Update ${n}: the account of Northwind is XX00.`, stolen);
  const patch = (id: string, body: object, key: string) => api.request('PATCH', `/memory/${id}`, { body, key });
  await patch(account, { content: 'The account of Northwind is XX00.' }, stolen);
  await patch(account, { tags: ['urgent'], importance: 1 }, stolen);
  await patch(since, { content: 'The office of Northwind is closed.' }, stolen);
  await patch(since, { content: 'The office of Northwind has moved.' }, own);
  await api.request('POST', '/memory/supersede', { body: { old_id: since, new_id: successor }, key: stolen });
  const undone = await api.request('DELETE', '/memory', { body: { written_by: leaked }, key: own });
  expect(undone.status).toBe(200);
  expect(undone.body).toMatchObject({ deleted: 120, removed: { edges: 1 }, restored: 1, unrestored: 1 });
  const { items } = (await api.request('GET', '/memory/all', { key: own })).body;
  const left = Object.fromEntries(items.map((item: { id: string }) => [item.id, item]));
  expect(Object.keys(left)).toHaveLength(3);
  expect(left[account]).toMatchObject({ content: 'The account of Northwind is DE44.', tags: [] });
  expect(left[since]).toMatchObject({ content: 'The office of Northwind has moved.', status: 'active' });
});

test('what was undone stays undone, and is not counted again: the same key once more, and another one before it', async () => {
  await using api = await startApi({ folder: tempFolder(), settings, threads: false });
  const { leaked, own, stolen } = twoKeys(api);
  const other = api.engine.control.createKey({ tenantId: 'default', role: 'write' });
  const add = async (content: string) =>
    (await api.request('POST', '/memory/add', { body: { content }, key: own })).body.id;
  const patch = (id: string, body: object, key: string) => api.request('PATCH', `/memory/${id}`, { body, key });
  const undo = async (keyId: string) => {
    const { body } = await api.request('DELETE', '/memory', { body: { written_by: keyId }, key: own });
    return [body['restored'], body['unrestored']];
  };
  const read = async (id: string) => (await api.request('GET', `/memory/${id}`, { key: own })).body['content'];
  const [account, office, harbour] = [await add('DE44'), await add('Oslo'), await add('Bergen')];
  await patch(account, { content: 'XX00' }, stolen);
  await patch(account, { content: 'YY00' }, other.secret);
  await patch(account, { tags: ['urgent'] }, other.secret);
  await patch(office, { content: 'closed' }, stolen);
  await patch(harbour, { content: 'empty' }, stolen);
  await patch(harbour, { content: 'full' }, own);
  expect(await undo(leaked)).toEqual([1, 2]);
  expect(await undo(leaked)).toEqual([0, 2]);
  expect(await undo(other.record.id)).toEqual([1, 0]);
  expect(await read(account)).toBe('XX00');
  expect(await undo(leaked)).toEqual([1, 1]);
  expect([await read(account), await read(office), await read(harbour)]).toEqual(['DE44', 'Oslo', 'full']);
  for (const id of [account, office]) await patch(id, { title: 'Still mine' }, own);
  expect(await undo(leaked)).toEqual([0, 1]);
  expect(await undo(other.record.id)).toEqual([0, 0]);
  await patch(office, { content: 'closed again' }, stolen);
  expect(await undo(leaked)).toEqual([1, 1]);
  expect(await read(office)).toBe('Oslo');
  const { items } = (await api.request('GET', `/memory/${office}/history`, { key: own })).body;
  const writers = (items as unknown as { written_by: string }[]).map(({ written_by: by }) => by);
  expect(writers.toReversed().filter((by) => by !== leaked)).toEqual([
    `undo:${leaked}`,
    expect.anything(),
    `undo:${leaked}`,
  ]);
});

test('what a key imports is written by that key, whatever the file says, and is taken back with it', async () => {
  await using api = await startApi({ folder: tempFolder(), settings, threads: false });
  const { leaked, own, stolen } = twoKeys(api);
  const kept = (await api.request('POST', '/memory/add', { body: { content: 'The pier is made of oak.' }, key: own }))
    .body.id;
  const ids = [1, 2].map((no) => `01a1fe30-e25b-7576-a0c2-3c4e3646bd7${no}`);
  const times = { created_at: '2025-01-01T00:00:00Z', updated_at: '2025-02-01T00:00:00Z' };
  const claim = { written_by: 'environment' };
  const lines = [
    ...ids.map((id) => ({
      type: 'memory',
      id,
      content: `Claim ${id}`,
      version: 2,
      state: 'ready',
      ...times,
      ...claim,
    })),
    {
      ...{ type: 'revision', memory: ids[0], version: 1, replaced_at: times.updated_at, status: 'active', ...claim },
      ...{ event_time: times.created_at, replaced: { content: 'An older claim' } },
    },
    { type: 'link', src: ids[0], dst: kept, link_type: 'supersedes', ...claim },
  ];
  const imported = await api.request('POST', '/import', {
    body: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
    headers: { 'content-type': 'application/x-ndjson' },
    key: stolen,
  });
  expect(imported.text).toContain('"stored":{"memory":2,"revision":1,"link":1}');
  const read = async (path: string) => (await api.request('GET', path, { key: own })).body;
  expect((await read(`/memory/${ids[0]}`)).written_by).toBe(leaked);
  expect((await read(`/memory/${ids[0]}/history`)).items).toMatchObject([{ written_by: null }]);
  expect((await read(`/memory/${kept}`)).status).toBe('superseded');
  const undone = await api.request('DELETE', '/memory', { body: { written_by: leaked }, key: own });
  expect(undone.body).toMatchObject({ deleted: 2, removed: { edges: 1 } });
  expect((await read('/memory/all')).items).toMatchObject([{ id: kept, status: 'active' }]);
});

test('an unknown key wrote nothing, and an empty name is refused', async () => {
  await using api = await startApi({ folder: tempFolder(), settings, threads: false });
  const own = OWN;
  const nothing = await api.request('DELETE', '/memory', { body: { written_by: 'nobody' }, key: own });
  expect(nothing.body).toMatchObject({ deleted: 0, restored: 0, unrestored: 0 });
  expect((await api.request('DELETE', '/memory', { body: { written_by: '' }, key: own })).status).toBe(400);
});

test('a delete by written_by takes items of session logs and puts of items back', async () => {
  await using api = await startApi({ folder: tempFolder(), settings, threads: false });
  const { leaked, own, stolen } = twoKeys(api);
  const append = (session: string, items: readonly unknown[], key: string) =>
    api.request('POST', `/sessions/${session}/log`, { body: { user_id: 'ana', items, operation_id: items[0] }, key });
  const read = async (session: string) =>
    (await api.request('GET', `/sessions/${session}/log?user_id=ana`, { key: own })).body;
  await append('mixed', ['a', 'b'], own);
  await append('mixed', ['X', 'Y'], stolen);
  await append('mixed', ['c'], own);
  await append('mixed', ['Z'], stolen);
  await append('mixed', ['d'], own);
  for (let n = 0; n < 3; n += 1) await append('theirs', [`${n}`], stolen);
  const put = (key: string, value: unknown, by: string) =>
    api.request('PUT', '/items', { body: { user_id: 'ana', namespace: 'settings', key, value }, key: by });
  await put('theme', { mode: 'dark' }, own);
  await put('theme', { mode: 'owned' }, stolen);
  await put('new', { mode: 'owned' }, stolen);
  expect((await read('mixed')).items).toMatchObject([
    { written_by: 'environment' },
    {},
    { written_by: leaked },
    {},
    {},
    {},
    {},
  ]);

  const undone = await api.request('DELETE', '/memory', { body: { written_by: leaked }, key: own });
  expect(undone.body).toMatchObject({ deleted: 1, log_items: 6, restored: 1 });
  const left = await read('mixed');
  expect(left).toMatchObject({ total: 4 });
  expect(
    left.items.map((one: object) => [(one as { position: number }).position, (one as { item: string }).item]),
  ).toEqual([
    [0, 'a'],
    [1, 'b'],
    [2, 'c'],
    [3, 'd'],
  ]);
  expect(await read('theirs')).toMatchObject({ items: [], total: 0 });
  expect((await append('mixed', ['e'], own)).body).toMatchObject({ position: 4, total: 5 });
  // A late retry of the leaked key brings nothing back into a log that was its own.
  expect((await append('theirs', ['0'], stolen)).status).toBe(409);
  const items = await api.request('POST', '/items/list', { body: { user_id: 'ana', namespace: 'settings' }, key: own });
  expect(items.body.items).toMatchObject([{ key: 'theme', value: { mode: 'dark' } }]);
});

test('standing queries and webhooks name their key, an import too, and a delete by written_by removes them', async () => {
  const allowed = { ...settings, OM_WEBHOOK_ALLOW: '127.0.0.1' };
  await using api = await startApi({ folder: tempFolder(), settings: allowed, threads: false });
  const { leaked, own, stolen } = twoKeys(api);
  const url = 'http://127.0.0.1:9/hook';
  const post = async (path: string, body: object, key: string) => (await api.request('POST', path, { body, key })).body;
  const asked = (user: string) => ({ query: 'Where does Ana work?', user_id: user, webhook: { url } });
  const [kept, theirs] = [await post('/standing', asked('ana'), own), await post('/standing', asked('ana'), stolen)];
  expect(kept).toMatchObject({ written_by: 'environment', webhook: { written_by: 'environment' } });
  expect(theirs).toMatchObject({ written_by: leaked, webhook: { written_by: leaked } });
  await post('/standing', asked('ben'), stolen);
  expect(await post('/webhooks', { url }, stolen)).toMatchObject({ written_by: leaked });
  const read = async (path: string) => (await api.request('GET', path, { key: own })).body;
  expect(await read(`/standing/${kept.id}`)).toMatchObject({ written_by: 'environment' });

  const line = {
    ...{ type: 'standing_query', id: '01a1fe30-e25b-7576-a0c2-3c4e3646bd72', query: 'Where does Ben work?' },
    written_by: 'environment',
  };
  const headers = { 'content-type': 'application/x-ndjson' };
  await api.request('POST', '/import', { body: `${JSON.stringify(line)}\n`, headers, key: stolen });
  const exported = (await api.request('GET', '/export', { key: own })).text.split('\n');
  const writers = exported.flatMap((text) =>
    text.includes('"standing_query"') && text.includes('"written_by"')
      ? [(JSON.parse(text) as { written_by: string }).written_by]
      : [],
  );
  expect(writers).toEqual(['environment', leaked, leaked, leaked]);

  const undo = async (key: string) =>
    (await api.request('DELETE', '/memory', { body: { written_by: leaked }, key })).body;
  // A key that is bound to a user reaches only what belongs to the user.
  const bound = api.engine.control.createKey({ tenantId: 'default', role: 'write', userId: 'ana' }).secret;
  expect(await undo(bound)).toMatchObject({ standing_queries: 1, webhooks: 1 });
  expect((await read('/standing')).items).toHaveLength(3);
  const tagged = api.engine.control.createKey({ tenantId: 'default', role: 'write', tags: ['x'] }).secret;
  expect(await undo(tagged)).not.toHaveProperty('webhooks');
  expect(await undo(own)).toMatchObject({ deleted: 0, standing_queries: 2, webhooks: 2 });
  expect((await read('/standing')).items).toMatchObject([{ id: kept.id }]);
  expect((await read('/webhooks')).items).toMatchObject([{ standing_id: kept.id, written_by: 'environment' }]);
  const { items } = await read('/audit?action=standing.erase');
  expect(items).toMatchObject([
    { detail: { written_by: [leaked], queries: 2, webhooks: 2 } },
    { detail: { written_by: [leaked], queries: 1, webhooks: 1 } },
  ]);
});
