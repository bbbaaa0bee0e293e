import fs from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ROUTES } from '../../src/api/routes.ts';
import { sendRaw } from '../support/attacks/raw-request.ts';
import { createManualClock } from '../support/engine-fixture.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { fileTest } from '../support/store-settings.ts';

const SETTINGS = { OM_EMBEDDINGS: 'none' };
/**
 * Without threads: what a key has left is counted on this thread in any case. By a clock that stands, as what was spent
 * comes back with time.
 */
const start = (settings: Record<string, string> = {}, folder = tempFolder()) =>
  startApi({ folder, settings: { ...SETTINGS, ...settings }, clock: createManualClock(Date.now()) });
const query = (api: TestApi, key?: string) =>
  api.request('POST', '/memory/query', { body: { query: 'x' }, ...(key === undefined ? {} : { key }) });
const batch = (api: TestApi, count: number) =>
  api.request('POST', '/memory/add/batch', {
    body: { items: Array.from({ length: count }, (_, at) => ({ content: `item ${at} of ${count}` })) },
  });

describe('rate limits', () => {
  test('without limits nothing is limited, no header is sent and no file is made', async () => {
    const folder = tempFolder();
    await using api = await start({}, folder);
    const replies = await Promise.all(
      Array.from({ length: 600 }, (_, at) => api.request('POST', '/memory/add', { body: { content: `fact ${at}` } })),
    );
    expect(replies.filter(({ status }) => status !== 202)).toEqual([]);
    expect(replies[0]!.headers.get('ratelimit')).toBeNull();
    expect(fs.readdirSync(folder).filter((name) => name.includes('rates'))).toEqual([]);
  });

  test('a key spends its own queries and gets 429 with when to come again', async () => {
    await using api = await start({ OM_RATE_QUERIES: '3' });
    const other = api.engine.control.createKey({ tenantId: 'default', role: 'read' }).secret;
    const first = await query(api);
    expect(first.headers.get('ratelimit-policy')).toBe('"queries";q=3;w=60');
    expect(first.headers.get('ratelimit')).toMatch(/^"queries";r=2;t=\d+$/);
    await query(api);
    await query(api);
    const refused = await query(api);
    expect([refused.status, refused.body.code]).toEqual([429, 'rate_limited']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(refused.headers.get('ratelimit')).toMatch(/^"queries";r=0;t=\d+$/);
    expect((await query(api, other)).status).toBe(200);
    expect((await api.request('POST', '/memory/add', { body: { content: 'still added' } })).status).toBe(202);
    expect((await api.request('GET', '/metrics')).text).toContain('cairn_limited_requests_total{limit="queries"} 1');
  });

  test('a reflection, which costs a call of the language model, is a query', async () => {
    const model = { OM_LLM_MODEL: 'stand-in', OM_LLM_BASE_URL: 'http://127.0.0.1:9/v1' };
    await using api = await start({ OM_RATE_QUERIES: '2', ...model });
    await api.add({ content: 'Ana repairs clocks.', user_id: 'ana' });
    const reflect = () => api.request('POST', '/memory/reflect', { body: { user_id: 'ana' } });
    const replies = [await reflect(), await reflect(), await reflect()];
    expect(replies.map(({ status }) => status)).toEqual([202, 202, 429]);
  });

  test('what spends several times tells of each limit once, by the least that was left', async () => {
    await using api = await start({ OM_RATE_QUERIES: '30', OM_RATE_ADDS: '30', OM_RATE_BATCH_ITEMS: '1000' });
    const calls = [
      ['recall', { query: 'x' }],
      ['remember', { content: 'a' }],
      ['recall', { query: 'y' }],
      ['recall', { query: 'z' }],
    ].map(([name, values], id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: values } }));
    const headers = { accept: 'application/json, text/event-stream' };
    const { status, headers: told } = await api.request('POST', '/mcp', { body: calls, headers });
    expect(status).toBe(200);
    expect(told.get('ratelimit-policy')?.split(', ').sort()).toEqual(['"adds";q=30;w=60', '"queries";q=30;w=60']);
    const rest = told
      .get('ratelimit')
      ?.split(', ')
      .sort()
      .map((limit) => limit.replace(/;t=\d+$/, ''));
    expect(rest).toEqual(['"adds";r=29', '"queries";r=27']);

    const lines = Array.from({ length: 250 }, (_, at) => `{"content":"line ${at}"}`).join('\n');
    const upload = { body: lines, headers: { 'content-type': 'application/x-ndjson' } };
    const stored = await api.request('POST', '/memory/add/batch', upload);
    expect(stored.headers.get('ratelimit-policy')).toBe('"batch_items";q=1000;w=60');
    expect(stored.headers.get('ratelimit')).toMatch(/^"batch_items";r=\d+;t=\d+$/);
  });

  test('an import spends queries for the guarded sets that its setting runs', async () => {
    await using api = await start({ OM_RATE_QUERIES: '4' });
    const guarded = { name: 'ferries', guard: true, items: [{ query: 'ferry', expected: [] }] };
    await api.request('POST', '/evals', { body: guarded });
    const body = '{"type":"setting","name":"retrieval","value":{"min_score":0.2}}';
    const send = (query = '') =>
      api.request('POST', `/import${query}`, { body, headers: { 'content-type': 'application/x-ndjson' } });
    const statuses: number[] = [];
    for (const query of ['', '?dry_run=true', '', '']) {
      statuses.push((await send(query)).status);
      if (statuses.length < 4) await api.request('PUT', '/settings/retrieval?force=true', { body: {} });
    }
    expect(statuses).toEqual([200, 200, 200, 429]);
    expect((await api.request('GET', '/settings/retrieval')).body).toEqual({});
  });

  test('two processes on the same files share the buckets', async () => {
    const folder = tempFolder();
    await using one = await start({ OM_RATE_QUERIES: '4' }, folder);
    await using two = await start({ OM_RATE_QUERIES: '4' }, folder);
    const statuses = [];
    for (const api of [one, two, one, two, one, two]) statuses.push((await query(api)).status);
    expect(statuses).toEqual([200, 200, 200, 200, 429, 429]);
  });

  test('adds, items of batches and lines are counted apart', async () => {
    await using api = await start({ OM_RATE_ADDS: '1', OM_RATE_BATCH_ITEMS: '10' });
    expect((await api.request('POST', '/memory/add', { body: { content: 'a' } })).status).toBe(202);
    expect((await api.request('POST', '/memory/add', { body: { content: 'b' } })).status).toBe(429);
    expect((await batch(api, 8)).status).toBe(202);
    expect((await batch(api, 3)).status).toBe(429);
    const lines = (count: number) => Array.from({ length: count }, (_, at) => `{"content":"line ${at}"}`).join('\n');
    const sent = { body: lines(4), headers: { 'content-type': 'application/x-ndjson' } };
    expect((await api.request('POST', '/memory/add/batch', sent)).status).toBe(429);
    const fits = await api.request('POST', '/memory/add/batch', { ...sent, body: lines(2) });
    expect([fits.status, fits.body.results.length]).toEqual([202, 2]);
  });

  test('whatever writes is limited, deletes too: each leaves a record that no delete frees', async () => {
    const free = ROUTES.filter(({ access, method, limited }) => access === 'write' && method !== 'get' && !limited);
    expect(free.map(({ name }) => name)).toEqual([]);
    await using api = await start({ OM_RATE_ADDS: '3' });
    const { id } = await api.add({ content: 'a fact', user_id: 'ana' });
    const replies = [
      await api.request('POST', '/memory/reinforce', { body: { id } }),
      await api.request('DELETE', '/users/nobody/memories'),
      await api.request('DELETE', '/users/nobody/memories'),
    ];
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect((await api.request('GET', `/memory/${id}`)).status).toBe(200);
  });

  test('an upload pays for what it announces, or for what came', async () => {
    const text = 'lorem ipsum dolor '.repeat(40_000);
    const upload = (api: TestApi, at: number) =>
      api.request('POST', '/memory/ingest', { body: { text: `${at} ${text}` } });
    await using api = await start({ OM_RATE_UPLOAD_MB: '1' });
    expect((await upload(api, 1)).status).toBe(202);
    const refused = await upload(api, 2);
    expect(refused.status).toBe(429);
    expect(refused.headers.get('ratelimit-policy')).toBe('"upload_bytes";q=1048576;w=60;qu="content-bytes"');

    await using chunked = await start({ OM_RATE_UPLOAD_MB: '1' });
    const headers = [
      ...['host', 'localhost', 'x-api-key', ADMIN_KEY, 'content-type', 'application/json'],
      ...['transfer-encoding', 'chunked'],
    ];
    const send = () =>
      sendRaw(chunked.port, {
        method: 'POST',
        path: '/memory/ingest',
        headers,
        body: JSON.stringify({ text: text.repeat(2) }),
      });
    expect((await send()).status).toBe(202);
    expect((await send()).status).toBe(429);
  });
});

describe('quotas', () => {
  const add = (api: TestApi, content: string) => api.request('POST', '/memory/add', { body: { content } });

  test('a tenant at its number of memories gets 507, until it deletes one', async () => {
    await using api = await start({ OM_TENANT_MAX_MEMORIES: '2' });
    const { id } = (await add(api, 'one')).body;
    await add(api, 'two');
    const refused = await add(api, 'three');
    expect([refused.status, refused.body.code]).toEqual([507, 'storage_full']);
    expect(refused.body.detail).toBe(
      'quota max_memories (OM_TENANT_MAX_MEMORIES): 2 are stored and 1 would be added, 2 are allowed; ' +
        'deletes still work',
    );
    const page = await api.request('POST', '/memory/ingest', { body: { text: 'a document' } });
    expect(page.status).toBe(507);
    expect((await batch(api, 2)).status).toBe(507);
    expect((await api.request('DELETE', `/memory/${id}`)).status).toBe(200);
    expect((await add(api, 'three')).status).toBe(202);
    api.engine.control.createTenant('acme');
    const key = api.engine.control.createKey({ tenantId: 'acme', role: 'write' }).secret;
    await api.add({ content: 'another tenant has its own' }, key);
  });

  test('a key that does not reach the whole tenant is told the limit alone', async () => {
    await using api = await start({ OM_TENANT_MAX_MEMORIES: '3' });
    for (const content of ['one', 'two', 'three']) await api.add({ content });
    const room = 'quota max_memories (OM_TENANT_MAX_MEMORIES): the tenant has no room for this; deletes still work';
    const send = async (method: string, path: string, body: object, key: string) => {
      const { status, text } = await api.request(method, path, { key, body });
      expect([path, status, text]).toEqual([path, expect.any(Number), expect.stringContaining(room)]);
      return status;
    };
    for (const bounds of [{ userId: 'ana' }, { tags: ['work'] }, { role: 'add' }, { role: 'add', userId: 'ana' }]) {
      const key = api.engine.control.createKey({ tenantId: 'default', role: 'write', ...bounds } as never).secret;
      expect(await send('POST', '/memory/add', { content: 'four' }, key)).toBe(507);
      expect(await send('POST', '/memory/add/batch', { items: [{ content: 'four' }] }, key)).toBe(507);
      expect(await send('POST', '/memory/ingest', { text: 'a document' }, key)).toBe(507);
      expect(await send('POST', '/documents/batch', { items: [{ text: 'a document' }] }, key)).toBe(200);
      if ('role' in bounds) continue;
      expect(await send('PUT', '/store/items', { namespace: ['n'], key: 'k', value: { n: 4 } }, key)).toBe(507);
    }
  });

  test('a key that does not reach the whole tenant is not told how many jobs wait', async () => {
    await using api = await start({ OM_MAX_BACKLOG: '2' });
    for (const content of ['one', 'two']) await api.add({ content });
    const add = (key?: string) =>
      api.request('POST', '/memory/add', { body: { content: 'three' }, ...(key === undefined ? {} : { key }) });
    for (const bounds of [{ userId: 'ana' }, { tags: ['work'] }, { role: 'add' }]) {
      const key = api.engine.control.createKey({ tenantId: 'default', role: 'write', ...bounds } as never).secret;
      const refused = await add(key);
      expect([refused.status, refused.body.detail]).toEqual([503, 'too many jobs wait, see OM_MAX_BACKLOG']);
      expect(refused.headers.get('retry-after')).toBe('5');
    }
    expect((await add()).body.detail).toBe('2 jobs wait, the cap OM_MAX_BACKLOG is 2');
  });

  fileTest('a tenant at its disk gets 507, and a delete makes room', async () => {
    await using api = await start({ OM_TENANT_MAX_MB: '1' });
    const { document_id: document } = (
      await api.request('POST', '/memory/ingest', { body: { text: 'a document', content_type: 'md' } })
    ).body;
    const statuses: number[] = [];
    for (let at = 0; at < 30 && statuses.at(-1) !== 507; at++) {
      statuses.push((await add(api, `${at} ${'x'.repeat(200_000)}`)).status);
    }
    expect(statuses.at(-1)).toBe(507);
    expect((await add(api, 'small')).body.detail).toMatch(/^quota max_mb \(OM_TENANT_MAX_MB\): \d MB are used, 1 MB/);
    const { items } = (await api.request('GET', '/memory/all')).body;
    const patch = (body: object) => api.request('PATCH', `/memory/${items[0]!.id}`, { body });
    // What a change replaces is kept, so changes take disk, too.
    expect((await patch({ content: 'small' })).body.code).toBe('storage_full');
    const replacement = { text: 'another text', content_type: 'md' };
    expect((await api.request('PUT', `/documents/${String(document)}`, { body: replacement })).status).toBe(507);
    // Links, standing queries and webhooks are rows without a memory of their own.
    const [src, dst] = [items[0]!.id, items[1]!.id];
    for (const [path, body] of [
      ['/memory/link', { src, dst, type: 'supports' }],
      ['/memory/contradict', { a: src, b: dst }],
      ['/memory/supersede', { old_id: src, new_id: dst }],
      ['/standing', { query: 'where is the harbour?' }],
      ['/webhooks', { url: 'https://example.com/hook' }],
    ] as const)
      expect([path, (await api.request('POST', path, { body })).status]).toEqual([path, 507]);
    expect((await patch({ status: 'archived' })).status).toBe(200);
    for (const { id } of items) await api.request('DELETE', `/memory/${id}`);
    expect((await add(api, 'small')).status).toBe(202);
  });
});

describe('limits of tenants and keys', () => {
  test('are set by the operator, apply to running processes, and can be taken back', async () => {
    const folder = tempFolder();
    await using api = await start({}, folder);
    await using other = await start({}, folder);
    const { control } = api.engine;
    control.createTenant('acme');
    const { record, secret } = control.createKey({ tenantId: 'acme', role: 'admin' });
    const patch = (where: string, body: object, key?: string) =>
      api.request('PATCH', `/admin/limits?${where}`, { body, ...(key === undefined ? {} : { key }) });
    expect((await patch('tenant=acme', { queries: 5 }, secret)).status).toBe(403);
    expect((await patch('tenant=acme', { queries: 5, max_memories: 9 })).body).toMatchObject({
      in_force: { queries: 5, max_memories: 9, event_streams: 100 },
      own: { queries: 5, max_memories: 9 },
    });
    expect((await patch(`tenant=acme&key_id=${record.id}`, { queries: 1 })).status).toBe(200);
    expect((await api.request('GET', `/admin/limits?key_id=${record.id}`, { key: secret })).body).toMatchObject({
      in_force: { queries: 1, max_memories: 9 },
      own: { queries: 1 },
    });
    expect((await api.request('GET', '/admin/limits?tenant=default', { key: secret })).status).toBe(403);
    await expect
      .poll(() => other.engine.control.limits.inForce({ tenantId: 'acme', keyId: record.id }).queries)
      .toBe(1);
    expect((await query(api, secret)).status).toBe(200);
    expect((await query(other, secret)).status).toBe(429);
    await patch(`tenant=acme&key_id=${record.id}`, { queries: null });
    expect(control.limits.inForce({ tenantId: 'acme', keyId: record.id }).queries).toBe(5);
    expect(control.limits.inForce({ tenantId: 'default' }).queries).toBe(0);
  });

  test('what is wrong is refused and changes nothing', async () => {
    await using api = await start();
    const { id } = api.engine.control.createKey({ tenantId: 'default', role: 'read' }).record;
    for (const [where, body, status] of [
      ['', { queries: -1 }, 400],
      ['', { queries: 1.5 }, 400],
      ['', { queries: 1e10 }, 400],
      ['', { querys: 1 }, 400],
      [`key_id=${id}`, { queries: 7, max_mb: 1 }, 400],
      ['tenant=absent', { queries: 1 }, 404],
      ['key_id=absent', { queries: 1 }, 404],
    ] as const) {
      const reply = await api.request('PATCH', `/admin/limits?${where}`, { body });
      expect([where, body, reply.status]).toEqual([where, body, status]);
    }
    expect(api.engine.control.limits.own({ tenantId: 'default', keyId: id })).toEqual({});
    expect(api.engine.control.limits.own({ tenantId: 'default' })).toEqual({});
  });
});

test('a tenant keeps its share of event streams open and no more, and others have theirs', async () => {
  const folder = tempFolder();
  await using api = await start({ OM_TENANT_EVENT_STREAMS: '2' }, folder);
  await using other = await start({ OM_TENANT_EVENT_STREAMS: '2' }, folder);
  api.engine.control.createTenant('acme');
  const key = api.engine.control.createKey({ tenantId: 'acme', role: 'write' }).secret;
  const mine = await api.add({ content: 'waits' });
  const theirs = await api.add({ content: 'waits' }, key);
  const open = new AbortController();
  const watch = (jobId: string, secret: string, { url } = api) =>
    fetch(`${url}/jobs/${jobId}/events`, { headers: { 'x-api-key': secret }, signal: open.signal });
  const statuses = [];
  for (const at of [api, other, api, other]) statuses.push((await watch(theirs.job_id, key, at)).status);
  expect(statuses).toEqual([200, 200, 503, 503]);
  expect((await watch(mine.job_id, ADMIN_KEY)).status).toBe(200);
  open.abort();
  await expect
    .poll(async () => {
      const again = new AbortController();
      const { status } = await fetch(`${api.url}/jobs/${theirs.job_id}/events`, {
        headers: { 'x-api-key': key },
        signal: again.signal,
      });
      again.abort();
      return status;
    })
    .toBe(200);
});
