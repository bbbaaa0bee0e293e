import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApp } from '../../src/api/app.ts';
import { ROUTES } from '../../src/api/routes.ts';
import { listen } from '../../src/api/server.ts';
import { readConfig } from '../../src/engine/config.ts';
import { openEngine } from '../../src/engine/open-engine.ts';
import {
  FOREIGN_ORIGINS,
  fromPage,
  preflightOf,
  REBOUND_HOSTS,
  SIMPLE_REQUESTS,
} from '../support/attacks/foreign-pages.ts';
import { sendRaw, type RawReply } from '../support/attacks/raw-request.ts';
import { createManualClock } from '../support/engine-fixture.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const SETTINGS = { OM_EMBEDDINGS: 'none' };
const OPEN = { ...SETTINGS, OM_API_KEY: '' };

const isRefusalOfPage = ({ status, text }: RawReply) =>
  status === 403 && (JSON.parse(text) as { detail: string }).detail.includes('web pages of other origins are refused');

describe('while no key is configured', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await startApi({ folder: tempFolder(), settings: OPEN })));
  afterAll(() => api.stop());
  const stored = async () => {
    const { memories, jobs } = (await api.request('GET', '/stats', { key: null })).body as unknown as {
      memories: number;
      jobs: object;
    };
    const documents = (await api.request('GET', '/documents', { key: null })).body.total;
    return { memories, documents, jobs };
  };

  test.each(Object.entries(FOREIGN_ORIGINS))('no page sends anything: %s', async (_name, origin) => {
    const before = await stored();
    for (const request of SIMPLE_REQUESTS) {
      const reply = await sendRaw(api.port, fromPage(request, origin, `localhost:${api.port}`));
      expect([request.name, isRefusalOfPage(reply), reply.status]).toEqual([request.name, true, 403]);
    }
    expect(await stored()).toEqual(before);
  });

  test('a page that reads an item does not renew its life; its own clients do', async () => {
    const clock = createManualClock();
    await using own = await startApi({ folder: tempFolder(), settings: OPEN, clock });
    const place = { namespace: ['life'], key: 'k' };
    await own.request('PUT', '/store/items', { key: null, body: { ...place, value: {}, ttl: 10 } });
    const expiry = async () => {
      const { body } = await own.request('GET', '/items?namespace=life&key=k', { key: null });
      return body['expires_at'];
    };
    const before = await expiry();
    clock.advance(60_000);
    const read = { name: 'a read', method: 'GET', path: '/store/items?namespace=life&key=k&refresh_ttl=true' };
    for (const origin of Object.values(FOREIGN_ORIGINS)) {
      expect((await sendRaw(own.port, fromPage(read, origin, `localhost:${own.port}`))).status).toBe(200);
      expect([origin, await expiry()]).toEqual([origin, before]);
    }
    await own.request('GET', read.path, { key: null });
    expect(await expiry()).toBe(clock.now() + 10 * 60_000);
  });

  test('no preflight is granted, whatever it asks for', async () => {
    for (const { method, path } of ROUTES) {
      const headers = ['host', `localhost:${api.port}`, ...preflightOf('https://evil.example', method.toUpperCase())];
      const reply = await sendRaw(api.port, { method: 'OPTIONS', path: path.replaceAll(':', ''), headers });
      expect([path, reply.status]).toEqual([path, 403]);
      expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
  });

  test.each(REBOUND_HOSTS)('a page whose name was rebound to this machine is refused: %s', async (host) => {
    const own = ['origin', `http://${host}`, 'sec-fetch-site', 'same-origin'];
    for (const [method, headers] of [
      ['GET', []],
      ['GET', own],
      ['POST', own],
    ] as const) {
      const path = method === 'GET' ? '/memory/all' : '/admin/reembed/pause';
      expect((await sendRaw(api.port, { method, path, headers: ['host', host, ...headers] })).status).toBe(403);
    }
  });

  test.each<[string, (port: number) => string[]]>([
    ['a client that is no browser', () => []],
    ["Node's fetch", () => ['sec-fetch-mode', 'cors', 'user-agent', 'node']],
    ['the page at /docs', (port) => ['origin', `http://localhost:${port}`, 'sec-fetch-site', 'same-origin']],
    ['the same page in an old browser', (port) => ['origin', `http://LOCALHOST:${port}`]],
    ['a development server', () => ['origin', 'http://localhost:5173', 'sec-fetch-site', 'same-origin']],
    ["the browser's user", () => ['sec-fetch-site', 'none']],
  ])('%s may write', async (name, headersFor) => {
    const headers = ['host', `localhost:${api.port}`, ...headersFor(api.port), 'content-type', 'application/json'];
    const body = JSON.stringify({ content: `sent by ${name}` });
    expect((await sendRaw(api.port, { method: 'POST', path: '/memory/add', headers, body })).status).toBe(202);
  });

  test('fetch of this very Node may write', async () => {
    expect((await api.request('POST', '/memory/add', { key: null, body: { content: 'by fetch' } })).status).toBe(202);
  });

  test('a link to a page of this server may be followed from anywhere', async () => {
    const headers = ['host', `localhost:${api.port}`, 'sec-fetch-site', 'cross-site', 'sec-fetch-mode', 'navigate'];
    expect((await sendRaw(api.port, { method: 'GET', path: '/docs', headers })).status).toBe(200);
  });

  test('origins for browsers need a key: the start says what to do', async () => {
    for (const origins of ['*', 'https://app.example']) {
      const config = readConfig({
        OM_DB_PATH: `${tempFolder()}/cairn.sqlite`,
        OM_PORT: '0',
        OM_CORS_ORIGINS: origins,
        ...SETTINGS,
      });
      await using engine = Object.assign(await openEngine({ config }), {
        async [Symbol.asyncDispose]() {
          await engine.close();
        },
      });
      const stop = AbortSignal.abort();
      const ready = () => ({ ready: true, reasons: [] });
      const app = createApp({
        engine,
        ready,
        metricsText: async () => '',
        activity: async () => ({ minutes: [], providers: [] }),
        version: '',
        stop,
      });
      await expect(listen(app, engine, stop)).rejects.toThrow(/OM_CORS_ORIGINS.*OM_API_KEY.*cairn keys create/);
    }
  });
});

describe('with a key', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await startApi({ folder: tempFolder(), settings: SETTINGS })));
  afterAll(() => api.stop());

  test('a foreign page needs the key like everyone, and CORS decides what it reads', async () => {
    for (const request of SIMPLE_REQUESTS) {
      const origin = FOREIGN_ORIGINS['fetch of another site']!;
      expect((await sendRaw(api.port, fromPage(request, origin, 'cairn.example'))).status).toBe(401);
    }
  });

  test('a path has one spelling', async () => {
    for (const path of [
      ...['/METRICS', '/Metrics', '/metrics/', '//metrics', '/metrics//', '/%6detrics', '/./metrics/', '/metrics/x'],
      ...['/HEALTH', '/ready/', '/Memory/all', '/memory/all/', '/docs/', '/Docs', '/ADMIN/queues', '/admin/Queues'],
      ...['/JOBS', '/jobs/', '/stats/', '/openapi.json/'],
    ]) {
      const headers = ['host', 'localhost', 'x-api-key', ADMIN_KEY];
      expect([path, (await sendRaw(api.port, { method: 'GET', path, headers })).status]).toEqual([path, 404]);
    }
  });

  test('every reply tells browsers to keep it to themselves', async () => {
    const paths = ['/health', '/memory/all', '/memory/absent', '/nowhere', '/docs', '/openapi.json', '/metrics'];
    for (const path of [...paths, '/docs/start.js', '/memory/%zz']) {
      const { headers } = await api.request('GET', path);
      expect([path, Object.fromEntries(headers)]).toEqual([
        path,
        expect.objectContaining({
          'content-security-policy': expect.stringMatching(/default-src 'none'.*frame-ancestors 'none'/),
          'cross-origin-opener-policy': 'same-origin',
          'cross-origin-resource-policy': 'same-origin',
          'referrer-policy': 'no-referrer',
          'x-content-type-options': 'nosniff',
          'x-frame-options': 'DENY',
        }),
      ]);
      expect(headers.get('cache-control')).toBe(path === '/docs/start.js' ? 'max-age=3600' : 'no-store');
    }
    expect((await api.request('GET', '/docs')).headers.get('permissions-policy')).toContain('camera=()');
  });

  test('/ready tells strangers whether, and the holder of a key of the default tenant what', async () => {
    const ask = async (key: string | null) => Object.keys((await api.request('GET', '/ready', { key })).body);
    api.engine.control.createTenant('other');
    const other = api.engine.control.createKey({ tenantId: 'other', role: 'admin' }).secret;
    const reader = api.engine.control.createKey({ tenantId: 'default', role: 'read' }).secret;
    for (const key of [null, 'a-wrong-but-long-key', other]) expect(await ask(key)).toEqual(['ready', 'reasons']);
    for (const key of [reader, ADMIN_KEY]) {
      expect(await ask(key)).toEqual(['ready', 'reasons', 'jobs', 'queues', 'embedding']);
    }
  });
});

test('metrics are for admins of the default tenant and the holder of OM_METRICS_KEY, which opens nothing else', async () => {
  const metricsKey = 'a-key-of-prometheus';
  const settings = { ...SETTINGS, OM_METRICS_KEY: metricsKey };
  await using api = await startApi({ folder: tempFolder(), settings, threads: false });
  const { control } = api.engine;
  control.createTenant('acme');
  const statusFor = async (key: string | null, path = '/metrics') => (await api.request('GET', path, { key })).status;
  for (const tenantId of ['default', 'acme']) {
    for (const role of ['read', 'write', 'admin'] as const) {
      const { secret } = control.createKey({ tenantId, role });
      expect([tenantId, role, await statusFor(secret)]).toEqual([
        tenantId,
        role,
        tenantId === 'default' && role === 'admin' ? 200 : 403,
      ]);
    }
  }
  expect(await statusFor(ADMIN_KEY)).toBe(200);
  expect(await statusFor(metricsKey)).toBe(200);
  expect(await statusFor(null)).toBe(401);
  expect(await statusFor(`${metricsKey}x`)).toBe(401);
  for (const path of ['/stats', '/memory/all', '/jobs', '/admin/queues']) {
    expect(await statusFor(metricsKey, path)).toBe(401);
  }
});
