import http from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApp } from '../../src/api/app.ts';
import { ROUTES } from '../../src/api/routes.ts';
import { REQUEST_HEADERS } from '../../src/api/schemas/headers.ts';
import { listen } from '../../src/api/server.ts';
import { readConfig } from '../../src/engine/config.ts';
import { openEngine } from '../../src/engine/open-engine.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { fileTest } from '../support/store-settings.ts';

const SETTINGS = { OM_EMBEDDINGS: 'none' };
const RANK = { read: 0, write: 1, admin: 2 } as const;
const routes = ROUTES.map((route) => ({ ...route, name: `${route.method.toUpperCase()} ${route.path}` }));
const pathOf = (path: string) => path.replace(':id', 'absent').replace(':file', 'start.js');

/** A request with exactly these header lines, duplicates too, which `fetch` would join. */
function rawGet(
  port: number,
  path: string,
  headers: string[],
): Promise<{ status: number; headers: http.IncomingHttpHeaders }> {
  return new Promise((resolve, reject) => {
    const request = http.request({ port, path, host: '127.0.0.1', headers, setHost: false }, (response) => {
      response.resume().on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers }));
    });
    request.on('error', reject).end();
  });
}

describe('with keys', () => {
  let api: TestApi;
  let keys: Record<'read' | 'write' | 'admin', string>;
  beforeAll(async () => {
    api = await startApi({ folder: tempFolder(), settings: SETTINGS });
    const create = (role: 'read' | 'write' | 'admin') =>
      api.engine.control.createKey({ tenantId: 'default', role }).secret;
    keys = { read: create('read'), write: create('write'), admin: create('admin') };
  });
  afterAll(() => api.stop());

  test.each(routes)('$name asks for $access', async ({ method, path, access }) => {
    const send = async (key: string | null) => (await api.request(method.toUpperCase(), pathOf(path), { key })).status;
    // Metadata about tokens is there only if tokens are accepted.
    const open = path.startsWith('/.well-known/') ? 404 : 200;
    // A session of the console is opened with the console's header alone, and only the page's own names are files.
    if (path.startsWith('/console/')) return expect([200, 403, 404]).toContain(await send(null));
    if (access === 'anyone') return expect(await send(null)).toBe(open);
    expect(await send(null)).toBe(401);
    expect(await send('wrong-but-long-enough')).toBe(401);
    const least = access === 'metrics' ? 'admin' : access === 'read or add' ? 'read' : access;
    for (const role of ['read', 'write', 'admin'] as const) {
      const status = await send(keys[role]);
      // Enough of a role gets past the door: to a result, or to what is missing in this empty request.
      const isEnough = least === 'add' ? role !== 'read' : RANK[role] >= RANK[least];
      if (isEnough) expect([200, 202, 400, 404, 409, 415], `${role}: ${status}`).toContain(status);
      else expect(status, role).toBe(403);
    }
  });

  test.each<[string, string[]]>([
    ['Bearer', ['authorization', `Bearer ${ADMIN_KEY}`]],
    ['ApiKey', ['authorization', `ApiKey ${ADMIN_KEY}`]],
    ['a scheme in capitals', ['authorization', `BEARER  ${ADMIN_KEY}`]],
    ['x-api-key', ['x-api-key', ADMIN_KEY]],
  ])('a key is taken as %s', async (_name, headers) => {
    expect((await rawGet(api.port, '/sectors', ['host', 'localhost', ...headers])).status).toBe(200);
  });

  test.each<[string, string[]]>([
    ['none', []],
    ['empty', ['authorization', '']],
    ['a scheme alone', ['authorization', 'Bearer ']],
    ['another scheme', ['authorization', `Basic ${ADMIN_KEY}`]],
    ['without a scheme', ['authorization', ADMIN_KEY]],
    ['short', ['authorization', 'Bearer x']],
    ['long', ['authorization', `Bearer ${'x'.repeat(8_000)}`]],
    ['a prefix of the right one', ['x-api-key', ADMIN_KEY.slice(0, -1)]],
    ['more than the right one', ['x-api-key', `${ADMIN_KEY}x`]],
    ['Latin-1', ['x-api-key', 'schlüssel-schlüssel']],
    ['two Authorization headers', ['authorization', `Bearer ${ADMIN_KEY}`, 'authorization', `Bearer ${ADMIN_KEY}`]],
    ['two x-api-key headers', ['x-api-key', ADMIN_KEY, 'x-api-key', ADMIN_KEY]],
    ['one of each', ['authorization', `Bearer ${ADMIN_KEY}`, 'x-api-key', ADMIN_KEY]],
    ['in the URL', []],
  ])('a key that is %s is a 401', async (name, headers) => {
    const path = name === 'in the URL' ? `/sectors?api_key=${ADMIN_KEY}` : '/sectors';
    const reply = await rawGet(api.port, path, ['host', 'localhost', ...headers]);
    expect(reply.status).toBe(401);
    expect(reply.headers['www-authenticate']).toBe('Bearer realm="cairn"');
  });

  test('a revoked key is refused', async () => {
    const { record, secret } = api.engine.control.createKey({ tenantId: 'default', role: 'write' });
    expect((await api.request('GET', '/sectors', { key: secret })).status).toBe(200);
    api.engine.control.revokeKey(record.id);
    expect((await api.request('GET', '/sectors', { key: secret })).status).toBe(401);
  });

  test('a path that is none is a 404 with or without a key', async () => {
    for (const key of [ADMIN_KEY, null]) {
      for (const [method, path] of [
        ['GET', '/'],
        ['GET', '/memory'],
        ['PUT', '/memory/x'],
        ['GET', '/memory/x/y'],
        ['POST', '/ready'],
      ]) {
        const reply = await api.request(method!, path!, { key });
        expect([method, path, reply.status, reply.body?.code]).toEqual([method, path, 404, 'not_found']);
      }
    }
  });

  test('no reply shows what it runs on, and every one names its request', async () => {
    for (const path of ['/health', '/nowhere', '/memory/absent', '/memory/%zz', '/sectors']) {
      const reply = await api.request('GET', path);
      expect(reply.headers.get('x-powered-by')).toBeNull();
      expect(reply.headers.get('x-request-id')).toMatch(/^[\w-]{36}$/);
      expect(reply.headers.get('x-content-type-options')).toBe('nosniff');
      expect(reply.text).not.toMatch(/node_modules|\.ts:|at .*\(/);
    }
  });

  test('a request id is taken over if it is harmless', async () => {
    const echoed = async (id: string) =>
      (await api.request('GET', '/health', { headers: { 'x-request-id': id } })).headers.get('x-request-id');
    expect(await echoed('abc.DEF:1-2_3')).toBe('abc.DEF:1-2_3');
    expect(await echoed('x'.repeat(128))).toBe('x'.repeat(128));
    for (const id of ['x'.repeat(129), 'a b', '<b>', 'é']) expect(await echoed(id)).toMatch(/^[\w-]{36}$/);
  });

  test('without a setting there is no CORS', async () => {
    const reply = await api.request('GET', '/health', { headers: { origin: 'https://example.com' } });
    expect([...reply.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  });
});

describe('what operators ask', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await startApi({ folder: tempFolder() })));
  afterAll(() => api.stop());

  const MODEL = { provider: 'synthetic', model: 'hashed-v1', dimensions: 768 };

  test('/health says what runs', async () => {
    expect((await api.request('GET', '/health', { key: null })).body).toEqual({
      ok: true,
      version: '0.0.0-test',
      embedding: { ...MODEL, configured: true, live: MODEL, degraded: false },
    });
  });

  fileTest('/ready counts what waits, and says why not', async () => {
    const empty = await api.request('GET', '/ready');
    expect([empty.status, empty.body]).toEqual([
      200,
      {
        ready: true,
        reasons: [],
        jobs: { waiting: 0, active: 0, oldest_age_ms: null },
        queues: { mode: 'embedded' },
        embedding: { live: MODEL, degraded: false },
      },
    ]);
    await api.add({ content: 'waits' });
    api.setReadiness({ ready: false, reasons: ['draining'] });
    const draining = await api.request('GET', '/ready');
    expect(draining.status).toBe(503);
    expect(draining.body).toEqual({
      ready: false,
      reasons: ['draining'],
      jobs: { waiting: 1, active: 0, oldest_age_ms: expect.any(Number) },
      queues: { mode: 'embedded' },
      embedding: { live: MODEL, degraded: false },
    });
  });

  test('/sectors describes all five', async () => {
    const { body } = await api.request('GET', '/sectors');
    expect(body.sectors).toEqual(['episodic', 'semantic', 'procedural', 'emotional', 'reflective']);
    expect(Object.keys(body.configs as object)).toEqual(body.sectors);
    expect(body.configs.reflective).toEqual({
      model: expect.any(String),
      decay_lambda: 0.001,
      weight: 0.8,
      patterns: expect.arrayContaining([{ pattern: expect.any(String), weight: expect.any(Number) }]),
    });
    expect(body.stats).toEqual(expect.any(Array));
  });

  test('/metrics is text with route patterns and nothing of a request', async () => {
    await api.request('GET', '/memory/canary-id');
    await api.request('GET', '/canary-path?canary=query');
    await api.request('PROPFIND', '/canary-path');
    const reply = await api.request('GET', '/metrics');
    expect(reply.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(reply.text).toContain('cairn_http_requests_total{route="/memory/:id"}');
    expect(reply.text).toContain('cairn_http_requests_total{route="unmatched"}');
    expect(reply.text).toContain('cairn_http_responses_total{status="404"}');
    expect(reply.text).not.toContain('canary');
  });
});

test('OM_PUBLIC_READS opens the read routes of the default tenant, and only those', async () => {
  await using api = await startApi({
    folder: tempFolder(),
    settings: { ...SETTINGS, OM_PUBLIC_READS: 'true' },
    threads: false,
  });
  const { id } = await api.add({ content: 'public knowledge' });
  api.engine.control.createTenant('other');
  const other = api.engine.control.createKey({ tenantId: 'other', role: 'write' }).secret;
  const hidden = await api.add({ content: 'private knowledge' }, other);
  const closed = routes.filter(({ name }) => /^GET \/(webhooks|federation\/servers)/.test(name));
  expect(closed).toHaveLength(4);
  for (const route of routes) {
    const { method, path, access } = route;
    const { status } = await api.request(method.toUpperCase(), pathOf(path), { key: null });
    if (!['anyone', 'read', 'read or add'].includes(access) || closed.includes(route))
      expect([path, status]).toEqual([path, 401]);
    else expect(status, path).not.toBe(401);
  }
  expect((await api.request('GET', `/memory/${id}`, { key: null })).status).toBe(200);
  expect((await api.request('GET', `/memory/${hidden.id}`, { key: null })).status).toBe(404);
  expect((await api.request('GET', `/memory/${id}`, { key: 'a-wrong-key' })).status).toBe(401);
  const query = { query: 'knowledge', reinforce: true };
  expect((await api.request('POST', '/memory/query', { key: null, body: query })).body.matches).toHaveLength(1);
  await api.stop();
  await using again = await startApi({
    folder: api.engine.config.OM_DB_PATH.replace(/\/cairn\.sqlite$/, ''),
    settings: SETTINGS,
  });
  expect((await again.request('GET', `/memory/${id}`)).body.access_count, 'recall by the public changes nothing').toBe(
    0,
  );
});

describe('CORS', () => {
  const preflight = {
    origin: 'https://app.example',
    'access-control-request-method': 'PATCH',
    'access-control-request-headers': 'x-api-key',
  };

  test('answers the origins of the setting, without credentials', async () => {
    const settings = { ...SETTINGS, OM_CORS_ORIGINS: 'https://app.example, https://other.example' };
    await using api = await startApi({ folder: tempFolder(), settings, threads: false });
    const allowed = await api.request('OPTIONS', '/memory/x', { key: null, headers: preflight });
    expect(allowed.status).toBe(204);
    expect(allowed.headers.get('access-control-allow-origin')).toBe('https://app.example');
    expect(allowed.headers.get('access-control-allow-methods')).toContain('PATCH');
    expect(allowed.headers.get('access-control-allow-headers')).toContain('x-api-key');
    expect(allowed.headers.get('access-control-allow-credentials')).toBeNull();
    expect(allowed.headers.get('vary')).toContain('Origin');
    const refused = await api.request('OPTIONS', '/memory/x', {
      key: null,
      headers: { ...preflight, origin: 'https://evil.example' },
    });
    expect(refused.headers.get('access-control-allow-origin')).toBeNull();
    const error = await api.request('GET', '/memory/x', { key: null, headers: { origin: 'https://app.example' } });
    expect([error.status, error.headers.get('access-control-allow-origin')]).toEqual([401, 'https://app.example']);
  });

  test('allows every header that a route reads', async () => {
    const settings = { ...SETTINGS, OM_CORS_ORIGINS: 'https://app.example' };
    await using api = await startApi({ folder: tempFolder(), settings, threads: false });
    const { headers } = await api.request('OPTIONS', '/events', { key: null, headers: preflight });
    const allowed = headers.get('access-control-allow-headers')!.split(',');
    expect(allowed).toEqual(expect.arrayContaining(Object.keys(REQUEST_HEADERS)));
  });

  test('* is for everyone and never with credentials', async () => {
    await using api = await startApi({
      folder: tempFolder(),
      settings: { ...SETTINGS, OM_CORS_ORIGINS: '*' },
      threads: false,
    });
    const reply = await api.request('GET', '/sectors', { headers: { origin: 'https://any.example' } });
    expect(reply.headers.get('access-control-allow-origin')).toBe('*');
    expect(reply.headers.get('access-control-allow-credentials')).toBeNull();
  });
});

describe('without any key', () => {
  const OPEN = { ...SETTINGS, OM_API_KEY: '' };

  test('everyone on this machine is the admin, but only under its own name', async () => {
    await using api = await startApi({ folder: tempFolder(), settings: OPEN, threads: false });
    expect((await api.request('GET', '/jobs', { key: null })).status).toBe(200);
    const statusFor = async (host: string) => (await rawGet(api.port, '/sectors', ['host', host])).status;
    for (const host of ['localhost', `localhost:${api.port}`, '127.0.0.1:1', '[::1]:8080', 'LOCALHOST', '127.1.2.3']) {
      expect([host, await statusFor(host)]).toEqual([host, 200]);
    }
    for (const host of [
      'evil.example',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      '192.168.0.1',
      '0.0.0.0',
      'x:localhost',
    ]) {
      expect([host, await statusFor(host)]).toEqual([host, 403]);
    }
  });

  test('another address is refused, with what to do', async () => {
    for (const host of ['0.0.0.0', '::', '192.0.2.1', 'example.com']) {
      const config = readConfig({
        OM_DB_PATH: `${tempFolder()}/cairn.sqlite`,
        OM_PORT: '0',
        OM_HOST: host,
        OM_EMBEDDINGS: 'none',
      });
      const engine = await openEngine({ config });
      const stop = new AbortController();
      const app = createApp({
        engine,
        ready: () => ({ ready: true, reasons: [] }),
        metricsText: async () => '',
        activity: async () => ({ minutes: [], providers: [] }),
        version: '',
        stop: stop.signal,
      });
      await expect(listen(app, engine, stop.signal)).rejects.toThrow(/OM_API_KEY.*cairn keys create/s);
      await engine.close();
    }
  });

  test('a key made while running closes the door', async () => {
    await using api = await startApi({ folder: tempFolder(), settings: OPEN, threads: false });
    const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'read' });
    expect((await api.request('GET', '/sectors', { key: null })).status).toBe(401);
    expect((await api.request('GET', '/sectors', { key: secret })).status).toBe(200);
  });
});
