import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { askForForeignThings, boundRoutes, type ForeignThings, refusingRoutes } from '../support/attacks/bound-keys.ts';
import { guessKeys } from '../support/attacks/guess-keys.ts';
import { createManualClock } from '../support/engine-fixture.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
let things: ForeignThings;
let own: string;
const keyOf = (key: object) =>
  api.engine.control.createKey({ tenantId: 'default', role: 'write', ...key } as never).secret;

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true });
  const foreign = { user_id: 'ben', session_id: 'canary-session', tags: ['canary-tag'] };
  const added = await api.add({ ...foreign, content: 'The canary Canaryville is in the cellar of Ben.' });
  const document = await api.request('POST', '/memory/ingest?wait=60000', {
    body: {
      ...foreign,
      content_type: 'md',
      text: '# Canary\n\nThe canary of Ben is yellow.',
      external_id: 'canary-doc',
    },
  });
  own = (await api.add({ user_id: 'ana', tags: ['work', 'more'], content: 'Ana keeps the keys of the house.' })).id;
  things = {
    memory: added.id,
    job: added.job_id,
    document: document.body['document_id'] as string,
    user: 'ben',
  };
});
afterAll(async () => api[Symbol.asyncDispose]());

describe('a key that is bound to a user', () => {
  test('learns nothing of others on any route, whose things are as absent', async () => {
    const canaries = ['canary', 'Canary', 'cellar', 'yellow']
      .map((word) => `${word} of Ben`)
      .concat('cellar', 'yellow');
    for (const role of ['read', 'write'])
      expect(await askForForeignThings(api, keyOf({ role, userId: 'eve' }), { things, canaries })).toEqual([]);
    const ben = await api.request('GET', '/memory/all?user_id=ben');
    expect(ben.text).toContain('cellar');
    expect((await api.request('GET', `/memory/${things.memory}`)).body['title']).not.toBe('taken over');
  });

  test.each(refusingRoutes)('is refused by $method $path, which is about more', async ({ method, path }) => {
    const { status } = await api.request(method.toUpperCase(), path.replace(':id', things.memory), {
      key: keyOf({ userId: 'ana' }),
    });
    expect(status).toBe(403);
  });

  test('may call the routes of memories and documents', () => {
    expect(boundRoutes.map(({ name }) => name)).toEqual(expect.arrayContaining(['addMemory', 'queryMemories']));
    expect(boundRoutes.every(({ access }) => ['read', 'add', 'read or add', 'write'].includes(access))).toBe(true);
  });

  test('naming another user is a 403, wherever it is named', async () => {
    const key = keyOf({ userId: 'ana' });
    const status = async (method: string, path: string, body?: unknown) =>
      (await api.request(method, path, { key, ...(body === undefined ? {} : { body }) })).status;
    expect(await status('GET', '/memory/all?user_id=ben')).toBe(403);
    expect(await status('GET', '/users/ben/memories')).toBe(403);
    expect(await status('DELETE', '/users/ben/memories')).toBe(403);
    expect(await status('GET', `/memory/${own}?user_id=ben`)).toBe(403);
    expect(await status('POST', '/memory/add', { content: 'x', user_id: 'ben' })).toBe(403);
    expect(await status('POST', '/memory/query', { query: 'x', user_id: 'ben' })).toBe(403);
    expect(await status('POST', '/memory/query', { query: 'x', filters: { users: ['ana', 'ben'] } })).toBe(403);
    expect(await status('GET', '/documents?user_id=ben')).toBe(403);
    expect(await status('GET', '/entities?user_id=ben')).toBe(403);
    expect(await status('POST', '/memory/ingest', { text: 'x', content_type: 'md', user_id: 'ben' })).toBe(403);
    expect(await status('DELETE', '/memory', { user_id: 'ben' })).toBe(403);
    const batch = await api.request('POST', '/memory/add/batch', {
      key,
      body: { items: [{ content: 'an item of Ana' }, { content: 'an item of Ben', user_id: 'ben' }] },
    });
    expect(batch.body['accepted']).toBe(1);
    expect(JSON.stringify(batch.body.results[1])).toContain('forbidden');
  });

  test('writes for its user without naming it, and reads only that', async () => {
    const key = keyOf({ userId: 'ana' });
    const { id } = await api.add({ content: 'A memory of Ana by a bound key.' }, key);
    expect((await api.request('GET', `/memory/${id}`)).body['user_id']).toBe('ana');
    const { items } = (await api.request('GET', '/memory/all', { key })).body;
    expect(new Set(items.map((item) => (item as unknown as { user_id: string }).user_id))).toEqual(new Set(['ana']));
    // An erasure still needs a filter of the caller's own.
    expect((await api.request('DELETE', '/memory', { key, body: {} })).status).toBe(400);
  });

  test('is not told by a delete whether others have the text', async () => {
    const key = keyOf({ userId: 'ida' });
    const { id } = await api.add({ content: 'The gate code is 4711.' }, key);
    const { body } = await api.request('DELETE', `/memory/${id}`, { key });
    expect(body['removed']).toMatchObject({ memories: 1, stored_replies: 0 });
    expect(body['removed']).not.toHaveProperty('cached_embeddings');
  });

  test('leaves a receipt and a record of a delete that name only the conditions that it had', async () => {
    const key = keyOf({ userId: 'ida' });
    await api.add({ content: 'A memory of Ida.', session_id: 's' }, key);
    expect((await api.request('DELETE', '/memory', { key, body: { session_id: 's' } })).status).toBe(200);
    const [erasure] = (await api.request('GET', '/erasures')).body.items as unknown as { by: string[] }[];
    expect(erasure!.by.toSorted()).toEqual(['sessionIds', 'userIds']);
    const audited = (await api.request('GET', '/audit?action=memory.delete_matching')).body.items;
    const [{ detail }] = audited as unknown as [{ detail: { by: string[] } }];
    expect(detail.by.toSorted()).toEqual(['sessionIds', 'userIds']);
  });

  test('shares no Idempotency-Key with another', async () => {
    const send = (userId: string) =>
      api.request('POST', '/memory/add', {
        key: keyOf({ userId }),
        headers: { 'idempotency-key': 'shared' },
        body: { content: 'the same body' },
      });
    const [ana, eve] = [await send('ana'), await send('eve')];
    expect(eve.headers.get('idempotent-replayed')).toBeNull();
    expect(eve.body.id).not.toBe(ana.body.id);
  });
});

describe('a key that is bound to tags', () => {
  test('reads and writes only memories with them', async () => {
    const key = keyOf({ tags: ['work'] });
    const other = (await api.add({ content: 'A private memory of Ana.', user_id: 'ana' })).id;
    expect((await api.request('GET', `/memory/${own}`, { key })).status).toBe(200);
    expect((await api.request('GET', `/memory/${other}`, { key })).status).toBe(404);
    expect((await api.request('DELETE', `/memory/${other}`, { key })).status).toBe(404);
    const { id } = await api.add({ content: 'A new memory at work.', tags: ['new'] }, key);
    expect((await api.request('GET', `/memory/${id}`)).body['tags']).toEqual(['new', 'work']);
    await api.request('PATCH', `/memory/${id}`, { key, body: { tags: ['later'] } });
    expect((await api.request('GET', `/memory/${id}`)).body['tags']).toEqual(['later', 'work']);
    const found = await api.request('POST', '/memory/query', {
      key,
      body: { query: 'Ana memory', min_score: 0, k: 50 },
    });
    expect(found.body.matches.map((match) => match.id)).not.toContain(other);
    const around = await api.request('GET', `/memory/${own}/timeline?before=50&after=50`, { key });
    expect(around.text).not.toContain('private');
  });

  test('cannot tell an item outside of them from one that is not there', async () => {
    await api.request('PUT', '/items', { body: { namespace: 'n', key: 'theirs', value: 1, tags: ['other'] } });
    const key = keyOf({ tags: ['work'] });
    const get = async (name: string) => {
      const { status, body } = await api.request('GET', `/items?namespace=n&key=${name}`, { key });
      return [status, body.detail];
    };
    expect(await get('theirs')).toEqual(await get('absent'));
    const taken = { content: 'Another text.', external_id: 'theirs-1' };
    const { id } = await api.add({ content: 'A text of others.', external_id: 'theirs-1' });
    const refused = await api.request('POST', '/memory/add', { key, body: taken });
    expect(refused.status).toBe(409);
    expect(refused.text).not.toContain(id);
  });

  test('cannot take over what is stored without them', async () => {
    await api.add({ content: 'Said before, without tags.', user_id: 'ana' });
    const again = await api.request('POST', '/memory/add', {
      key: keyOf({ tags: ['work'], userId: 'ana' }),
      body: { content: 'Said before, without tags.' },
    });
    expect(again.status).toBe(409);
  });
});

describe('what was said outside of the tags of a key', () => {
  const key = () => keyOf({ tags: ['work'] });
  const patch = (id: string, body: object) => api.request('PATCH', `/memory/${id}`, { body });

  test('is not asked for by a look back to a time when it had them', async () => {
    const { id } = await api.add({ content: 'The retreat of the board is in Lugano.', tags: ['work'] });
    const recorded = Date.now();
    await new Promise((resolve) => setTimeout(resolve, 5));
    await patch(id, { tags: ['secret'] });
    const body = { query: 'retreat of the board', min_score: 0, as_of: { recorded } };
    const found = async (options: object) =>
      (await api.request('POST', '/memory/query', { body, ...options })).body.matches.map((match) => match.id);
    expect(await found({})).toContain(id);
    expect(await found({ key: key() })).not.toContain(id);
  });

  test('is told by no route that looks back to a time before it had them, nor by what replaced it', async () => {
    const pause = () => new Promise((resolve) => setTimeout(resolve, 5));
    const from = Date.now() - 1;
    const { id } = await api.add({ content: 'SECRETM: the price of the merger.' });
    const replaced = await api.add({ content: 'The merger is discussed.', tags: ['work'] });
    await pause();
    const recorded = Date.now();
    await pause();
    await patch(id, { content: 'The merger is over.', tags: ['work'] });
    const by = await api.add({ content: 'SECRETB: the merger is signed.' });
    await api.request('POST', '/memory/supersede', { body: { old_id: replaced.id, new_id: by.id } });
    const look = { min_score: 0, as_of: { recorded } };
    const asks: [string, string, object?][] = [
      ['POST', '/memory/query', { query: 'the price of the merger', ...look }],
      ['POST', '/memory/query', { query: 'the price of the merger', format: 'prompt', ...look }],
      ['POST', '/memory/list', { as_of: { recorded } }],
      ['POST', '/explain', { query: 'the price of the merger', memory_id: id, ...look }],
      ['GET', `/diff?from=${from}`],
      ['GET', `/diff?from=${recorded}`],
      ['GET', `/diff?from=${from}&to=${recorded}`],
      ['GET', `/diff?from=${from}&format=digest`],
      ['GET', `/memory/${id}/history`],
    ];
    for (const [method, path, body] of asks) {
      const ask = async (options: object) => (await api.request(method, path, { body, ...options })).text;
      expect(await ask({ key: key() }), `${method} ${path}`).not.toContain('SECRET');
    }
    expect((await api.request('GET', `/diff?from=${from}`)).text).toContain('SECRETB');
    expect((await api.request('GET', `/diff?from=${from}&to=${recorded}`)).text).toContain('SECRETM');
  });

  test('is no part of a history, on whatever page it is', async () => {
    const { id } = await api.add({ content: 'Salary: the first draft.' });
    await patch(id, { content: 'Salary: the second draft.' });
    await patch(id, { content: 'Nothing of interest.', tags: ['work'] });
    await patch(id, { content: 'Nothing of interest at all.' });
    const history = async (query: string, options: object) =>
      (await api.request('GET', `/memory/${id}/history${query}`, options)).text;
    expect(await history('', {})).toContain('first draft');
    const shown = await history('', { key: key() });
    expect(shown).toContain('Nothing of interest.');
    for (const query of ['', '?before=3', '?before=2', '?l=1', '?l=1&before=3'])
      expect(await history(query, { key: key() }), query).not.toContain('draft');
  });

  test('is not deleted with a part of a document that has them', async () => {
    const ingested = await api.request('POST', '/memory/ingest?wait=60000', {
      body: { content_type: 'md', text: '# Menu\n\nSoup on Monday.\n\nFish on Friday.', tags: ['kitchen'] },
    });
    const document = ingested.body['document_id'] as string;
    const chunks = await api.request('GET', `/documents/${document}/chunks`);
    const { root_memory_id: root } = (await api.request('GET', `/documents/${document}`)).body;
    const parts = [
      root as string,
      ...chunks.body.items.map((chunk) => (chunk as unknown as { memory_id: string }).memory_id),
    ];
    expect(parts.length).toBeGreaterThan(1);
    for (const id of parts) await patch(id, { tags: ['work'] });
    for (const id of parts) expect((await api.request('DELETE', `/memory/${id}`, { key: key() })).status).not.toBe(200);
    await api.request('DELETE', '/memory', { key: key(), body: { tags: ['work'] } });
    await api.request('DELETE', '/memory?tag=work', { key: key() });
    expect((await api.request('GET', `/documents/${document}`)).status).toBe(200);
    expect((await api.request('GET', `/documents/${document}/chunks`)).body.total).toBe(chunks.body.total);
  });
});

describe('keys', () => {
  test('with the role add leave a document as it is', async () => {
    const key = keyOf({ role: 'add' });
    const ingest = (text: string, by: object = {}) =>
      api.request('POST', '/memory/ingest', { body: { content_type: 'txt', text, external_id: 'rules' }, ...by });
    expect((await ingest('Rule one: no shoes.')).status).toBe(202);
    expect((await ingest('Rule one: shoes.', { key })).status).toBe(409);
    expect((await ingest('Rule one: no shoes.', { key })).status).toBe(409);
    expect((await ingest('Rule one: hats.')).status).toBe(202);
  });

  test('with the role add learn nothing of the documents of others by sending their bytes', async () => {
    const ingest = async (by: object = {}) => {
      const { status, body } = await api.request('POST', '/memory/ingest', {
        body: { content_type: 'txt', text: 'Minutes of the board.' },
        ...by,
      });
      return { status, id: body['document_id'] };
    };
    const others = await ingest();
    const key = keyOf({ role: 'add' });
    const own = await ingest({ key });
    expect(own.status).toBe(202);
    expect(own.id).not.toBe(others.id);
    expect(await ingest({ key })).toMatchObject({ id: own.id });
    expect(await ingest()).toMatchObject({ id: others.id });
  });

  test('with the role add only add', async () => {
    const key = keyOf({ role: 'add' });
    const { id } = await api.add({ content: 'From an importer.' }, key);
    const send = async (method: string, path: string, body?: unknown) =>
      (await api.request(method, path, { key, ...(body === undefined ? {} : { body }) })).status;
    expect(await send('GET', `/memory/${id}`)).toBe(403);
    expect(await send('DELETE', `/memory/${id}`)).toBe(403);
    expect(await send('POST', '/memory/query', { query: 'importer' })).toBe(403);
    expect(await send('GET', '/settings/retrieval')).toBe(403);
    expect(await send('POST', '/memory/add/batch', { items: [{ content: 'Another.' }] })).toBe(202);
  });

  test('with the role add replace no memory, and the other items of a batch are stored', async () => {
    const key = keyOf({ role: 'add' });
    const { id } = await api.add({ content: 'The gate is green.' }, key);
    const newer = { content: 'The gate is white.', supersedes: id };
    expect((await api.request('POST', '/memory/add', { key, body: newer })).status).toBe(403);
    const items = [{ content: 'A first of three.' }, newer, { content: 'A last of three.' }];
    const lines = items.map((item) => `${JSON.stringify(item)}\n`).join('');
    const refused = { error: { code: 'forbidden', message: 'supersedes: a key that only adds changes no memory' } };
    const sent = [
      await api.request('POST', '/memory/add/batch', { key, body: { items } }),
      await api.request('POST', '/memory/add/batch', {
        ...{ key, body: lines, headers: { 'content-type': 'application/x-ndjson' } },
      }),
    ];
    for (const { status, body } of sent) {
      expect(status).toBe(202);
      expect(body).toMatchObject({ accepted: 2, rejected: 1, results: [{}, refused, {}] });
      expect(body.results[2]).toHaveProperty('id');
    }
    expect((await api.request('GET', `/memory/${id}`)).body['status']).toBe('active');
  });

  test('with the role add follow the jobs of what they wrote, and no others', async () => {
    const key = keyOf({ role: 'add' });
    const mine = await api.request('POST', '/memory/add', { key, body: { content: 'Of this importer.' } });
    const page = { content_type: 'txt', text: 'A page of this importer.' };
    const document = await api.request('POST', '/memory/ingest', { key, body: page });
    const other = await api.request('POST', '/memory/add', { body: { content: 'Of somebody else.' } });
    const status = async (id: unknown, path = '') =>
      (await api.request('GET', `/jobs/${String(id)}${path}`, { key })).status;
    expect(await status(mine.body['job_id'])).toBe(200);
    expect(await status(document.body['job_id'])).toBe(200);
    expect(await status(other.body['job_id'])).toBe(404);
    expect(await status(other.body['job_id'], '/events')).toBe(404);
    expect((await api.request('GET', '/jobs', { key })).status).toBe(403);
  });

  test('of several tenants choose one by a header; others are refused alike', async () => {
    const { control } = api.engine;
    control.createTenant('acme');
    control.createTenant('umbrella');
    const key = keyOf({ furtherTenantIds: ['acme'] });
    const { id } = await api.add({ content: 'In the default tenant.' }, key);
    const get = async (tenant: string) =>
      (await api.request('GET', `/memory/${id}`, { key, headers: { 'x-cairn-tenant': tenant } })).status;
    expect(await get('default')).toBe(200);
    expect(await get('acme')).toBe(404);
    expect([await get('umbrella'), await get('nobody')]).toEqual([403, 403]);
    control.eraseTenant('umbrella');
  });

  test('name their tenant once the first of several is gone: nothing comes to the next one unasked', async () => {
    const { control } = api.engine;
    for (const id of ['north', 'south', 'west']) control.createTenant(id);
    const key = keyOf({ tenantId: 'north', furtherTenantIds: ['south', 'west'] });
    const add = (headers: Record<string, string> = {}) =>
      api.request('POST', '/memory/add', { key, headers, body: { content: 'Of the north.' } });
    control.eraseTenant('west');
    expect((await add()).status).toBe(202);
    control.eraseTenant('north');
    const refused = await add();
    expect([refused.status, refused.body.detail]).toEqual([403, expect.stringContaining('x-cairn-tenant')]);
    expect((await add({ 'x-cairn-tenant': 'south' })).status).toBe(202);
    control.eraseTenant('south');
  });

  test('are listed for admins of their tenant, without secrets and without other tenants', async () => {
    await using own = await startApi({ folder: tempFolder(), threads: false });
    const { control } = own.engine;
    control.createTenant('acme');
    control.createTenant('umbrella');
    const admin = control.createKey({ tenantId: 'acme', role: 'admin' });
    // The list is ordered by the millisecond of creation, and by a random id within one.
    await delay(10);
    const bound = { tenantId: 'umbrella', furtherTenantIds: ['acme'], role: 'write', userId: 'ana' } as const;
    const shared = control.createKey({ ...bound, tags: ['work'], label: 'laptop', expiresAt: Date.now() + 60_000 });
    control.createKey({ tenantId: 'umbrella', role: 'read', label: 'foreign' });
    control.revokeKey(shared.record.id);
    const list = (query = '') => own.request('GET', `/admin/keys${query}`, { key: admin.secret });
    const { status, text, body } = await list();
    expect(status).toBe(200);
    expect(body.total).toBe(2);
    expect(body.items.map(({ id }) => id)).toEqual([shared.record.id, admin.record.id]);
    expect(body.items[0]).toMatchObject({ role: 'write', name: 'laptop', user_id: 'ana', tags: ['work'] });
    expect(body.items[0]).toMatchObject({ revoked_at: expect.any(Number), expires_at: shared.record.expiresAt });
    expect(body.items[1]).toMatchObject({ last_used_at: expect.any(Number), revoked_at: null });
    for (const hidden of ['umbrella', 'foreign', shared.secret, admin.secret.slice(-43)])
      expect(text).not.toContain(hidden);
    expect((await list('?l=1&u=1')).body.items.map(({ id }) => id)).toEqual([admin.record.id]);
    const writer = control.createKey({ tenantId: 'acme', role: 'write' });
    expect((await own.request('GET', '/admin/keys', { key: writer.secret })).status).toBe(403);
  });

  test('that are revoked or expire lose their open streams', async () => {
    // No worker runs, so the job stays queued and only the keys can end its streams.
    const clock = createManualClock(Date.now());
    await using idle = await startApi({ folder: tempFolder(), clock });
    const { control } = idle.engine;
    const { job_id } = await idle.add({ content: 'Waits for a worker.' });
    const revoked = control.createKey({ tenantId: 'default', role: 'read' });
    const expiring = control.createKey({ tenantId: 'default', role: 'read', expiresAt: clock.now() + 60_000 });
    const open = ({ secret }: { readonly secret: string }) =>
      fetch(`${idle.url}/jobs/${job_id}/events`, { headers: { authorization: `Bearer ${secret}` } });
    const streams = await Promise.all([open(revoked), open(expiring)]);
    expect(streams.map(({ status }) => status)).toEqual([200, 200]);
    control.revokeKey(revoked.record.id);
    clock.advance(60_000);
    for (const stream of streams)
      expect(await stream.text()).toContain('event: gone\ndata: {"reason":"unauthenticated"}');
    expect((await open(expiring)).status).toBe(401);
  });
});

/** A clock that stands, as the first pause lasts no longer than a second. */
const standing = () => createManualClock(Date.now());

test('guessing is slowed down, and never for keys that Cairn made or that were at work before', async () => {
  await using guarded = await startApi({
    folder: tempFolder(),
    settings: { OM_MAX_WRONG_KEYS: '5' },
    clock: standing(),
  });
  const { secret } = guarded.engine.control.createKey({ tenantId: 'default', role: 'read' });
  expect((await guarded.request('GET', '/settings/retrieval')).status).toBe(200);
  expect(await guessKeys(guarded, 20)).toEqual({ 401: 6, 429: 14 });
  const refused = await guarded.request('GET', '/settings/retrieval', { key: 'one-guess-more-of-many' });
  expect(refused.headers.get('retry-after')).toBe('1');
  expect((await guarded.request('GET', '/settings/retrieval', { key: secret })).status).toBe(200);
  expect((await guarded.request('GET', '/settings/retrieval')).status).toBe(200);
});

test('a right guess of OM_API_KEY during a pause is answered like a wrong one', async () => {
  await using guarded = await startApi({
    folder: tempFolder(),
    settings: { OM_MAX_WRONG_KEYS: '5' },
    clock: standing(),
  });
  await guessKeys(guarded, 6);
  expect((await guarded.request('GET', '/settings/retrieval')).status).toBe(429);
});

test('a right guess during a pause is told from a wrong one at no route for metrics either', async () => {
  const settings = { OM_MAX_WRONG_KEYS: '5', OM_METRICS_KEY: 'a-key-of-prometheus' };
  await using guarded = await startApi({ folder: tempFolder(), settings, clock: standing() });
  await guessKeys(guarded, 6);
  expect((await guarded.request('GET', '/metrics')).status).toBe(429);
  expect((await guarded.request('GET', '/metrics', { key: settings.OM_METRICS_KEY })).status).toBe(429);
  expect((await guarded.request('GET', '/metrics', { key: 'one-guess-more-of-many' })).status).toBe(429);
});

test('the key for metrics works on during a pause where it was sent before, and opens no way to guess another', async () => {
  const settings = { OM_MAX_WRONG_KEYS: '5', OM_METRICS_KEY: 'a-key-of-prometheus' };
  await using guarded = await startApi({ folder: tempFolder(), settings, clock: standing() });
  expect((await guarded.request('GET', '/metrics', { key: settings.OM_METRICS_KEY })).status).toBe(200);
  await guessKeys(guarded, 6);
  expect((await guarded.request('GET', '/metrics', { key: settings.OM_METRICS_KEY })).status).toBe(200);
  expect((await guarded.request('GET', '/metrics')).status).toBe(429);
});
