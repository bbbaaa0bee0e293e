import { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sharedStreamPage } from '../../src/api/event-pages.ts';
import { nextLook } from '../../src/api/next-look.ts';
import { purgeEvents } from '../../src/engine/store/events.ts';
import { EngineError } from '../../src/engine/errors.ts';
import type { Tenant } from '../../src/engine/engine.ts';
import { openStore } from '../../src/engine/store/open-store.ts';
import { openEvents } from '../support/event-stream.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { fileTest } from '../support/store-settings.ts';

interface Event {
  readonly cursor: string;
  readonly kind: string;
  readonly id: string | null;
  readonly user_id: string | null;
}

let api: TestApi;
const folder = tempFolder();
beforeAll(async () => void (api = await startApi({ folder, workers: true })));
afterAll(() => api.stop());

const get = (query: Record<string, string> = {}, key?: string) =>
  api.request('GET', `/events?${new URLSearchParams(query).toString()}`, key === undefined ? {} : { key });
const eventsOf = async (query: Record<string, string>, key?: string) =>
  (await get({ limit: '1000', ...query }, key)).body.items as unknown as Event[];
const latest = async () => (await get({ cursor: 'latest' })).body['cursor'] as string;
const kindsOf = (events: readonly Event[], id: string) =>
  events.filter((event) => event.id === id).map(({ kind }) => kind);
const addReady = async (item: object) => {
  const { id, token } = await api.add(item);
  await (await api.engine.tenant('default')).waitFor(token, 120_000);
  return id;
};
const keyOf = (key: object) =>
  api.engine.control.createKey({ tenantId: 'default', role: 'write', ...key } as never).secret;

test('each change leaves its event, in order, with ids and no content', async () => {
  const from = await latest();
  const id = await addReady({ content: 'The ferry leaves at noon.', user_id: 'ana' });
  const newer = await addReady({ content: 'The ferry leaves at one.', user_id: 'ana' });
  await api.request('PATCH', `/memory/${id}`, { body: { tags: ['ferry'] } });
  await api.request('POST', '/memory/supersede', { body: { old_id: id, new_id: newer } });
  const reply = await get({ cursor: from, limit: '1000' });
  expect(reply.text).not.toContain('ferry');
  const events = reply.body.items as unknown as Event[];
  expect(kindsOf(events, id)).toEqual([
    'memory.stored',
    'memory.ready',
    'memory.updated',
    'memory.updated',
    'memory.superseded',
  ]);
  expect(kindsOf(events, newer)).toEqual(['memory.stored', 'memory.ready']);
  expect(new Set(events.map((event) => event.user_id))).toEqual(new Set(['ana']));
  expect(reply.body['has_more']).toBe(false);

  // Page by page, the same events come in the same order.
  const paged: Event[] = [];
  for (let cursor = from, more = true; more;) {
    const page = (await get({ cursor, limit: '2' })).body;
    paged.push(...(page.items as unknown as Event[]));
    [cursor, more] = [page['cursor'] as string, page['has_more'] as boolean];
  }
  expect(paged).toEqual(events);
  expect(await eventsOf({ cursor: from, kinds: 'memory.superseded,job.dead' })).toHaveLength(1);
});

test('what was refused or recognised leaves no event', async () => {
  await api.add({ content: 'Said before.', user_id: 'dup' });
  const from = await latest();
  await api.request('POST', '/memory/add', { body: { content: 'Said before.', user_id: 'dup' } });
  await api.request('POST', '/memory/add', { body: { content: 3 } });
  await api.request('PATCH', '/memory/01a1fe30-e25b-7576-a0c2-3c4e3646bd72', { body: { title: 't' } });
  expect((await eventsOf({ cursor: from })).filter(({ kind }) => kind === 'memory.stored')).toEqual([]);
});

test('an erasure is told, takes the earlier events of the memory along, and leaves no user name', async () => {
  const from = await latest();
  const zoe = keyOf({ userId: 'zoe' });
  const { id } = await api.add({ content: 'Gone soon.', user_id: 'zoe' });
  const { id: expired } = await api.add({ content: 'Over already.', user_id: 'zoe', expires_at: '1970-01-01' });
  await api.request('DELETE', '/users/zoe/memories');
  const events = await eventsOf({ cursor: from });
  expect(kindsOf(events, id)).toEqual(['memory.deleted']);
  expect(kindsOf(events, expired)).toEqual(['memory.expired']);
  expect(events.filter((event) => event.id === id)).toMatchObject([{ user_id: null }]);
  // Who knows the name still finds the erasure, and nobody else takes over the number of the user.
  await api.add({ content: 'Somebody new.', user_id: 'yan' });
  expect((await eventsOf({ cursor: from, user_id: 'zoe' })).map((event) => event.id)).toEqual(
    expect.arrayContaining([id, expired]),
  );
  expect((await eventsOf({ cursor: from }, zoe)).map((event) => event.id)).toEqual(
    expect.arrayContaining([id, expired]),
  );
  expect(kindsOf(await eventsOf({ cursor: from, user_id: 'yan' }), id)).toEqual([]);
  await api.add({ content: 'Back again.', user_id: 'zoe' });
  expect((await eventsOf({ cursor: from, user_id: 'zoe' })).map(({ kind }) => kind)).toEqual(
    expect.arrayContaining(['memory.deleted', 'memory.stored']),
  );
});

test('documents and items have their events, and chunks none of their own', async () => {
  const from = await latest();
  const made = await api.request('POST', '/memory/ingest', {
    body: { content_type: 'md', text: '# Ferry\n\nIt leaves at noon.', user_id: 'doc' },
  });
  const documentId = made.body['document_id'] as string;
  const item = await api.request('PUT', '/items', { body: { user_id: 'doc', key: 'k', value: 'v' } });
  await expect
    .poll(async () => kindsOf(await eventsOf({ cursor: from }), documentId))
    .toEqual(['document.stored', 'document.ready']);
  await api.request('DELETE', `/documents/${documentId}`);
  const events = await eventsOf({ cursor: from, user_id: 'doc' });
  expect(kindsOf(events, documentId)).toContain('document.deleted');
  const memories = events.filter(({ kind }) => kind.startsWith('memory.'));
  expect(new Set(memories.map((event) => event.id))).toEqual(new Set([item.body.id]));
});

test('a bound key sees the events of its user, and a key of tags none', async () => {
  const from = await latest();
  await api.add({ content: 'Of Ben.', user_id: 'ben' });
  const { id } = await api.add({ content: 'Of Cem.', user_id: 'cem' });
  const cem = keyOf({ userId: 'cem' });
  expect(new Set((await eventsOf({ cursor: from }, cem)).map((event) => event.id))).toEqual(new Set([id]));
  expect((await get({ user_id: 'ben' }, cem)).status).toBe(403);
  expect((await get({}, keyOf({ tags: ['work'] }))).status).toBe(403);
});

test('lists of a user are whole after events of a user were asked for', async () => {
  await api.request('PUT', '/items', { body: { user_id: 'lia', namespace: 'a.b', key: 'k', value: 1 } });
  const listed = async () => [
    (await api.request('GET', '/namespaces?user_id=lia')).body.items.length,
    (await api.request('POST', '/items/list', { body: { user_id: 'lia' } })).body.items.length,
    (await api.request('POST', '/memory/list', { body: { user_id: 'lia' } })).body.items.length,
  ];
  // More often than there are threads that read.
  for (let turn = 0; turn < 8; turn += 1) expect((await eventsOf({ user_id: 'lia' })).length).toBeGreaterThan(0);
  for (let turn = 0; turn < 8; turn += 1) expect(await listed()).toEqual([1, 1, 1]);
});

test('the stream sends what is committed from then on, and goes on where it was broken off', async () => {
  const stream = await openEvents(api, `/events?cursor=latest&user_id=str`, {
    headers: { accept: 'text/event-stream' },
  });
  const { id } = await api.add({ content: 'Streamed.', user_id: 'str' });
  const first = await stream.next();
  expect(first).toMatchObject({ event: 'change', data: { id, kind: 'memory.stored' } });
  expect(first!.id).toBe((first!.data as unknown as Event).cursor);
  stream.request.destroy();
  const again = await openEvents(api, '/events?cursor=latest&user_id=str', {
    headers: { accept: 'text/event-stream', 'last-event-id': first!.id! },
  });
  expect(await again.next()).toMatchObject({ data: { id, kind: 'memory.ready' } });
  again.request.destroy();
});

test('the streams of a tenant share the looks for new events, at the place where it is by then', async () => {
  const asked: string[] = [];
  const engine = {
    async tenant(id: string) {
      const tenant = await api.engine.tenant('default');
      const newestEvent = () => (id === 'broken' ? Promise.reject(new Error('x')) : tenant.newestEvent());
      return { ...tenant, as: () => (asked.push(id), { ...tenant, newestEvent }) };
    },
  };
  for (let round = 0; round < 2; round += 1) {
    const looks = ['one', 'one', 'one', 'other', 'other'].map((id) => nextLook(engine, id));
    expect(new Set(await Promise.all(looks))).toEqual(new Set([await latest()]));
  }
  expect(asked.toSorted()).toEqual(['one', 'one', 'other', 'other']);
  await expect(Promise.all([1, 2].map(() => nextLook(engine, 'broken')))).rejects.toThrow('x');
  expect(await nextLook(engine, 'one')).toBe(await latest());
});

test('streams that one look wakes share a page, if their queries and the bounds of their keys are equal', async () => {
  const from = await latest();
  const { id } = await api.add({ content: 'Told to many.', user_id: 'many' });
  const [newest, tenant] = [await latest(), await api.engine.tenant('default')];
  /** For each page that was read, in whose name. */
  const asked: string[] = [];
  const as = (reader: string): Tenant => ({
    ...tenant,
    as,
    listEvents: (wanted) => (asked.push(reader), tenant.listEvents(wanted)),
  });
  const engine = { tenant: async () => as('nobody') };
  const read = (principal: object, query: object, look = newest, name = 'default') => {
    const call = { api: { engine }, tenant: { id: name }, principal: { keyId: 'a', ...principal } } as never;
    return sharedStreamPage(call, { cursor: from, limit: 100, ...query }, look);
  };
  const alike = await Promise.all([
    read({ keyId: 'a' }, {}),
    read({ keyId: 'b' }, {}),
    read({ userId: undefined }, {}),
  ]);
  expect(asked).toHaveLength(1);
  expect(new Set(alike).size).toBe(1);
  expect(String(alike[0].bytes)).toContain(`"id":"${id}"`);
  const different = [
    read({ userId: 'many' }, {}),
    read({ userId: 'other' }, {}),
    read({}, { userId: 'many' }),
    read({}, { kinds: ['memory.deleted'] }),
    read({}, { limit: 1 }),
    read({}, { cursor: newest }),
    read({}, {}, 'a later look'),
    read({}, {}, newest, 'another tenant'),
  ];
  const pages = await Promise.all(different);
  expect(asked).toHaveLength(1 + different.length);
  expect(new Set([...alike, ...pages]).size).toBe(1 + different.length);
  expect(pages[3]!.bytes).toHaveLength(0);
  await expect(read({ tags: ['x'] }, {})).rejects.toThrow('bound to a user or tags');
  // A read that failed is not kept.
  await expect(read({}, { cursor: 'x' })).rejects.toThrow('cursor');
  await expect(read({}, { cursor: 'x' })).rejects.toThrow('cursor');
  expect(asked).toHaveLength(3 + different.length);
  // No key's own reads keep the others waiting.
  expect(new Set(asked)).toEqual(new Set(['event pages']));
});

test('a page that takes long to read is shared until it has been read, and for a moment after', async () => {
  const [from, tenant] = [await latest(), await api.engine.tenant('default')];
  const mayRead = Promise.withResolvers<void>();
  let reads = 0;
  const slow: Tenant = {
    ...tenant,
    as: () => slow,
    async listEvents(wanted) {
      reads += 1;
      await mayRead.promise;
      return tenant.listEvents(wanted);
    },
  };
  const call = { api: { engine: { tenant: async () => slow } }, tenant: { id: 'default' }, principal: {} } as never;
  const read = () => sharedStreamPage(call, { cursor: from, limit: 99 }, 'a slow look');
  const first = read();
  await new Promise((resolve) => setTimeout(resolve, 400));
  const second = read();
  mayRead.resolve();
  expect(await second).toBe(await first);
  expect(await read()).toBe(await first);
  expect(reads).toBe(1);
});

test('a stream goes on when its events could not be read for a moment', async () => {
  await using service = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' }, threads: false });
  const { engine } = service;
  const tenantOf = engine.tenant;
  let failures = 0;
  const failing = (tenant: Tenant): Tenant => ({
    ...tenant,
    as: (name) => failing(tenant.as(name)),
    listEvents(wanted) {
      if (isBroken && failures++ < 2) return Promise.reject(new EngineError('unavailable', 'the readers are busy'));
      return tenant.listEvents(wanted);
    },
  });
  let isBroken = false;
  Object.assign(engine, { tenant: async (id: string) => failing(await tenantOf(id)) });
  const stream = await openEvents(service, '/events?cursor=latest', { headers: { accept: 'text/event-stream' } });
  isBroken = true;
  const { id } = await service.add({ content: 'Told in the end.', user_id: 'broken-for-a-moment' });
  expect((await stream.next())!.data.id).toBe(id);
  expect(failures).toBeGreaterThan(2);
  stream.request.destroy();
});

test('streams that wake together write a few in each turn, and each what its query and its key allow', async () => {
  await using service = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' }, threads: false });
  const { secret } = service.engine.control.createKey({ tenantId: 'default', role: 'read', userId: 'uma' } as never);
  const open = (query: string, key: object) =>
    openEvents(service, `/events?cursor=latest${query}`, { headers: { accept: 'text/event-stream' }, ...key });
  const { write } = ServerResponse.prototype;
  const writes: number[] = [];
  let turn = 0;
  let isDone = false;
  const count = () => {
    turn += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const slowWrite = function (this: ServerResponse, ...parts: Parameters<typeof write>) {
    if (String(parts[0]).includes('event: change')) {
      writes[turn] = (writes[turn] ?? 0) + 1;
      for (const end = performance.now() + 1; performance.now() < end;);
    }
    return write.apply(this, parts);
  };
  ServerResponse.prototype.write = slowWrite as typeof write;
  try {
    const all = await Promise.all(Array.from({ length: 40 }, () => open('', {})));
    const own = await Promise.all([open('', { key: secret }), open('&user_id=uma', {})]);
    const items = ['vic', 'uma'].map((userId) => ({ content: `Of ${userId}.`, user_id: userId }));
    const reply = await service.request('POST', '/memory/add/batch', { body: { items } });
    const [ofVic, ofUma] = reply.body.results.map(({ id }) => id);
    for (const stream of all) {
      expect((await stream.next())!.data.id).toBe(ofVic);
      expect((await stream.next())!.data.id).toBe(ofUma);
    }
    for (const stream of own) expect((await stream.next())!.data.id).toBe(ofUma);
    for (const { request } of [...all, ...own]) request.destroy();
  } finally {
    isDone = true;
    ServerResponse.prototype.write = write;
  }
  const counts = Array.from(writes, (here) => here ?? 0);
  expect(counts.reduce((sum, here) => sum + here)).toBeGreaterThanOrEqual(42);
  expect(counts.filter((here) => here > 8)).toEqual([]);
});

test('a revoked key ends its stream', async () => {
  const { record, secret } = api.engine.control.createKey({ tenantId: 'default', role: 'read' } as never);
  const stream = await openEvents(api, '/events?cursor=latest', {
    key: secret,
    headers: { accept: 'text/event-stream' },
  });
  api.engine.control.revokeKey(record.id);
  for (let event = await stream.next(); event !== undefined; event = await stream.next()) {
    if (event.event === 'gone') return;
  }
  throw new Error('the stream ended without saying why');
});

test.each(['x', '01234567.zz', '../etc'])('a cursor that this feed did not give out is refused: %s', async (cursor) => {
  expect((await get({ cursor })).status).toBeGreaterThanOrEqual(400);
});

fileTest('events beyond what is kept are purged, and a cursor from before says so', async () => {
  const from = (await eventsOf({ limit: '1' }))[0]!.cursor;
  const store = openStore(`${folder}/cairn.sqlite`, { role: 'worker' });
  const newest = await latest();
  store.write(() => purgeEvents(store, { before: 0, rows: 2, limit: 100_000 }));
  const late = await get({ cursor: from });
  expect([late.status, late.body.code]).toEqual([409, 'conflict']);
  expect(late.body.detail).toContain('latest');
  expect((await eventsOf({})).length).toBeLessThanOrEqual(2);
  // The newest event stays, so that its cursor does.
  store.write(() => purgeEvents(store, { before: Number.MAX_SAFE_INTEGER, rows: 2, limit: 100_000 }));
  store.close();
  expect(await latest()).toBe(newest);
  expect((await get({ cursor: newest })).status).toBe(200);
});

test('without the feed nothing is noted, and switching it on begins a new one', async () => {
  const own = tempFolder();
  const cursors: string[] = [];
  for (const on of ['true', 'false', 'true']) {
    await using service = await startApi({ folder: own, settings: { OM_EVENTS: on }, threads: false });
    await service.add({ content: `Said while it was ${on}, ${cursors.length}.` });
    const reply = await service.request('GET', '/events');
    if (on === 'false') expect([reply.status, reply.body.detail]).toEqual([409, expect.stringContaining('OM_EVENTS')]);
    else {
      expect(reply.body.items).toHaveLength(1);
      cursors.push(reply.body['cursor'] as string);
      if (cursors.length === 2) expect((await service.request('GET', `/events?cursor=${cursors[0]}`)).status).toBe(409);
    }
  }
});
