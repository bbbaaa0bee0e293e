import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MAX_REPLY_BYTES } from '../../src/api/json-reply.ts';
import { ReplyPlaces, replyPlaces } from '../../src/api/reply-places.ts';
import { controlText } from '../support/attacks/large-memories.ts';
import { readNothing, until } from '../support/attacks/silent-readers.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const LARGE = 20;
const SMALL = 300;

let api: TestApi;

beforeAll(async () => {
  const folder = tempFolder();
  api = await startApi({ folder, settings: { OM_EMBEDDINGS: 'none' } });
  for (let no = 0; no < LARGE; no++) await api.add({ content: controlText(no), user_id: 'large' });
  const tenant = await api.engine.tenant('default');
  const items = Array.from({ length: SMALL }, (_, no) => ({ content: `common word ${no}`, user_id: 'small' }));
  for (let at = 0; at < SMALL; at += 100)
    await api.request('POST', '/memory/add/batch', { body: { items: items.slice(at, at + 100) } });
  expect((await tenant.listMemories({}, { limit: 1_000, offset: 0 })).length).toBe(LARGE + SMALL);
});
afterAll(async () => {
  await api.stop();
});

const get = (path: string) => api.request('GET', path);

describe('a list of memories', () => {
  test('ends early where it has 8 MiB, says so, and goes on at `next`', async () => {
    const ids: string[] = [];
    let pages = 0;
    for (let next: number | undefined = 0; next !== undefined; pages++) {
      const { text, body } = await get(`/memory/all?user_id=large&l=1000&u=${next}`);
      expect(text.length).toBeLessThan(MAX_REPLY_BYTES + 1_000);
      expect(body['truncated']).toBe(body['next'] === undefined ? undefined : true);
      ids.push(...body.items.map(({ id }) => id));
      next = body['next'] as number | undefined;
    }
    expect(pages).toBe(3);
    expect(new Set(ids).size).toBe(LARGE);
  });

  test('names the next page where `l` ends it, and nothing on the last page', async () => {
    const first = await get('/users/small/memories?l=200');
    expect(first.body.items).toHaveLength(200);
    expect(first.body).toMatchObject({ user_id: 'small', next: 200 });
    expect(first.body).not.toHaveProperty('truncated');
    const second = await get('/users/small/memories?l=200&u=200');
    expect(second.body.items.map(({ content }) => content)).toEqual(
      Array.from({ length: SMALL - 200 }, (_, no) => `common word ${SMALL - 201 - no}`),
    );
    expect(second.body).not.toHaveProperty('next');
  });

  test('a short one is sent in one piece, a long one in several', async () => {
    expect((await get('/memory/all?user_id=small&l=2')).headers.get('content-length')).toMatch(/^\d+$/);
    expect((await get('/memory/all?user_id=small&l=300')).headers.get('transfer-encoding')).toBe('chunked');
  });

  test('lets other requests in while it is made', async () => {
    let turns = 0;
    let isDone = false;
    const count = () => {
      turns += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    await get('/memory/all?user_id=large&l=1000');
    isDone = true;
    expect(turns).toBeGreaterThan(7);
  });
});

describe('an answer whose values have many parts', () => {
  const value = Array.from({ length: 10_000 }, (_, no) => (no % 2 === 0 ? [] : { n: 1 }));
  const metadata = { numbers: Array.from({ length: 1_000 }, (_, no) => no) };

  test('is the same from a reader thread as from this thread, and is sent in pieces', async () => {
    const texts: string[] = [];
    const folder = tempFolder();
    for (const threads of ['2', '0']) {
      const settings = { OM_EMBEDDINGS: 'none', OM_QUERY_THREADS: threads, OM_RECALL_DAYS: '0' };
      const dense = await startApi({ folder, settings });
      for (const key of ['one', 'two']) {
        const item = { user_id: 'dense', namespace: 'dense', key, content: `zebra ${key}`, value, metadata };
        expect((await dense.request('PUT', '/items', { body: item })).status).toBe(threads === '2' ? 201 : 200);
      }
      const query = { query: 'zebra', user_id: 'dense', k: 2, min_score: 0, reinforce: false };
      const reply = await dense.request('POST', '/memory/query', { body: { ...query, weights: { recency: 0 } } });
      expect(reply.body['matches']).toHaveLength(2);
      const given = JSON.stringify({ value, metadata });
      const matches = reply.body['matches'] as readonly object[] as readonly {
        readonly value: unknown;
        readonly metadata: unknown;
      }[];
      for (const match of matches)
        expect(JSON.stringify({ value: match.value, metadata: match.metadata }) === given).toBe(true);
      expect(reply.headers.get('transfer-encoding')).toBe('chunked');
      texts.push(reply.text.replace(/"(recall_id|salience|strength|score|raw_score)":[^,}]+/g, '"$1":0'));
      await dense.stop();
    }
    expect(texts[0] === texts[1]).toBe(true);
  });
});

test('the history of a memory comes in pages, by version', async () => {
  const { id } = await api.add({ content: 'version 1', user_id: 'history' });
  for (let version = 2; version <= 6; version++)
    await api.request('PATCH', `/memory/${id}`, { body: { content: `version ${version}` } });
  const versions = (body: { readonly items: readonly object[] }) =>
    body.items.map((item) => (item as { version: number }).version);
  const first = (await get(`/memory/${id}/history?l=2`)).body;
  expect([versions(first), first['next']]).toEqual([[5, 4], 4]);
  const second = (await get(`/memory/${id}/history?l=2&before=4`)).body;
  expect([versions(second), second['next']]).toEqual([[3, 2], 2]);
  const last = (await get(`/memory/${id}/history?l=2&before=2`)).body;
  expect(versions(last)).toEqual([1]);
  expect(last).not.toHaveProperty('next');
});

test('a long history ends early, and every revision is on one of its pages', async () => {
  const { id } = await api.add({ content: controlText(-1), user_id: 'history' });
  for (let no = 2; no <= 12; no++) await api.request('PATCH', `/memory/${id}`, { body: { content: controlText(-no) } });
  const first = (await get(`/memory/${id}/history`)).body;
  expect(first['truncated']).toBe(true);
  const second = (await get(`/memory/${id}/history?before=${String(first['next'])}`)).body;
  expect(first.items.length + second.items.length).toBe(11);
});

test('the timeline and the matches of a query leave out what does not fit, and say so', async () => {
  const { items } = (await get('/memory/all?user_id=large&l=1')).body;
  const timeline = await get(`/memory/${items[0]!.id}/timeline?before=100`);
  expect(timeline.body['truncated']).toBe(true);
  expect(timeline.text.length).toBeLessThan(MAX_REPLY_BYTES + 2 * 1024 * 1024);

  for (let no = 0; no < 30; no++) await api.add({ content: `walrus ${no} ${'x'.repeat(250_000)}`, user_id: 'walrus' });
  const answer = await api.request('POST', '/memory/query', { body: { query: 'walrus', k: 200, min_score: 0 } });
  expect(answer.body['truncated']).toBe(true);
  expect(answer.body.matches.length).toBe(25);
  expect(answer.text.length).toBeLessThan(MAX_REPLY_BYTES + 1_000);
});

test('an answer whose memories have much metadata and little text is sent in several pieces, too', async () => {
  const metadata = Object.fromEntries(Array.from({ length: 30 }, (_, no) => [`m${no}`, 'x'.repeat(500)]));
  const items = Array.from({ length: 20 }, (_, no) => ({ content: `labelled ${no}`, user_id: 'labelled', metadata }));
  await api.request('POST', '/memory/add/batch', { body: { items } });
  const query = { query: 'labelled', user_id: 'labelled', k: 20, min_score: 0 };
  const { headers, body } = await api.request('POST', '/memory/query', { body: query });
  expect(body.matches).toHaveLength(20);
  expect(headers.get('transfer-encoding')).toBe('chunked');
});

describe('clients that read nothing', () => {
  test('hold little memory, keep no one else from being answered, and leave nothing behind', async () => {
    const path = '/memory/all?user_id=large&l=1000';
    using readers = await readNothing({ port: api.port, key: ADMIN_KEY }, { connections: 14, path });
    await until(() => replyPlaces.bytes.held > 0);
    expect((await get('/health')).status).toBe(200);
    expect(replyPlaces.bytes.held).toBeLessThanOrEqual(32 * 1024 * 1024);
    expect((await get(path)).status).toBe(200);
    readers[Symbol.dispose]();
    await until(() => replyPlaces.bytes.held === 0 && replyPlaces.bytes.waiting === 0);
  });

  test('have a bounded number of exports', async () => {
    using readers = await readNothing({ port: api.port, key: ADMIN_KEY }, { connections: 14, path: '/export' });
    await until(() => replyPlaces.bytes.held === 32 * 1024 * 1024 && replyPlaces.bytes.waiting > 0);
    readers[Symbol.dispose]();
    await until(() => replyPlaces.bytes.held === 0 && replyPlaces.bytes.waiting === 0);
    expect((await get('/export')).text).toContain('"type":"end"');
    await until(() => replyPlaces.bytes.held === 0);
  });

  test('hold a bounded memory also over many keys', async () => {
    const bytes = 8 * 1024 * 1024;
    const places = new ReplyPlaces();
    const leave = [];
    for (let key = 0; key < 32; key++)
      leave.push(await places.enter({ keyId: `key ${key}`, tenantId: `tenant ${key}` }, bytes, { waitMs: 0 }));
    const more = { keyId: 'one more', tenantId: 'one more' };
    await expect(places.enter(more, bytes, { waitMs: 10 })).rejects.toMatchObject({ code: 'unavailable' });
    expect(places.bytes).toEqual({ held: 32 * bytes, waiting: 0 });
    leave.pop()!();
    leave.push(await places.enter(more, bytes, { waitMs: 0 }));
    for (const end of leave) end();
    expect(places.bytes.held).toBe(0);
  });

  test('hold a bounded memory over the many keys of one tenant, and others have their share', async () => {
    const bytes = 2 * 1024 * 1024;
    const places = new ReplyPlaces();
    const enter = (keyId: string, tenantId: string, waitMs = 0) => places.enter({ keyId, tenantId }, bytes, { waitMs });
    const leave = [];
    for (let no = 0; no < 32; no++) leave.push(await enter(`key ${no % 4}`, 'many'));
    await expect(enter('one more', 'many', 10)).rejects.toMatchObject({ code: 'unavailable' });
    const waits = Array.from({ length: 49 }, (_, no) => enter(`key ${no}`, 'many', 10));
    const refused = (await Promise.allSettled(waits.slice(-1)))[0]!;
    expect([refused.status, places.bytes.waiting]).toEqual(['rejected', 96 * 1024 * 1024]);
    for (let no = 0; no < 16; no++) leave.push(await enter('own', 'other'));
    await Promise.allSettled(waits);
    leave[0]!();
    leave.push(await enter('one more', 'many'));
    for (const end of leave) end();
    expect(places.bytes).toEqual({ held: 0, waiting: 0 });
  });

  test('may be the only ones of a tenant with a reply over its share', async () => {
    const places = new ReplyPlaces();
    const leave = await places.enter({ keyId: 'key', tenantId: 'tenant' }, 100 * 1024 * 1024, { waitMs: 0 });
    leave();
    expect(places.bytes.held).toBe(0);
  });

  test('are cut off after OM_READER_TIMEOUT_MS', async () => {
    await using brief = await startApi({
      folder: tempFolder(),
      settings: { OM_EMBEDDINGS: 'none', OM_READER_TIMEOUT_MS: '300' },
    });
    for (let no = 0; no < 12; no++) await brief.add({ content: controlText(no) });
    const server = { port: brief.port, key: ADMIN_KEY };
    using readers = await readNothing(server, { connections: 2, path: '/memory/all?l=1000' });
    await until(() => replyPlaces.bytes.held > 0);
    await until(() => replyPlaces.bytes.held === 0);
    // The clients have read nothing, so they do not know yet.
    expect(readers.open).toBe(2);
  });
});

describe('values of very many parts', () => {
  /** 147 kB, which as values take more than 2 MB. */
  const lists = Array.from({ length: 49_000 }, () => []);
  const ITEMS = 5;

  beforeAll(async () => {
    for (let no = 0; no < ITEMS; no++) {
      const place = { user_id: 'dense', namespace: 'dense', key: `k${no}` };
      await api.request('PUT', '/items', { body: { ...place, content: `zebra number ${no}`, value: lists } });
      const body = { user_id: 'dense', items: [lists] };
      expect((await api.request('POST', '/sessions/dense/log', { body })).status).toBe(200);
    }
  });

  test('fill an answer as their memory does, and not as their text', async () => {
    for (const k of [10, 50]) {
      const body = { query: 'zebra', user_id: 'dense', k, min_score: 0 };
      const { body: answer } = await api.request('POST', '/memory/query', { body });
      expect(answer['truncated']).toBe(true);
      expect(answer['matches']).toHaveLength(3);
    }
  });

  test('one that stands alone is answered whole', async () => {
    const body = { query: 'zebra', user_id: 'dense', k: 1, min_score: 0 };
    const { body: answer } = await api.request('POST', '/memory/query', { body });
    expect(answer['truncated']).toBeUndefined();
    expect((answer['matches'] as unknown as { value: unknown }[])[0]!.value).toEqual(lists);
  });

  test('make the pages of a session log shorter', async () => {
    const { body } = await get('/sessions/dense/log?user_id=dense&limit=100');
    expect(body).toMatchObject({ total: ITEMS, next: ITEMS - 1 });
    expect(body.items).toHaveLength(1);
  });
});
