import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { AccessControl } from '../../src/api/access-control.ts';
import { serveQueueBoard } from '../../src/api/queue-board.ts';
import type { ApiContext } from '../../src/api/route.ts';
import { DEFAULT_TENANT } from '../../src/engine/index.ts';
import { findPrograms, startPostgres } from '../support/postgres.ts';
import { canStartRedis, startRedisServer, type RedisServer } from '../support/redis.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { fileTest } from '../support/store-settings.ts';

const BOARD = '/admin/queues';

async function start(settings: Readonly<Record<string, string>> = {}): Promise<TestApi> {
  const api = await startApi({ folder: tempFolder(), settings });
  onTestFinished(() => api.stop());
  return api;
}

async function startWithRedis(
  settings: Readonly<Record<string, string>> = {},
): Promise<{ api: TestApi; redis: RedisServer }> {
  const redis = (await startRedisServer())!;
  onTestFinished(() => redis.stop());
  const api = await start({ REDIS_URL: redis.url, ...settings });
  await expect.poll(() => api.engine.queueState()).toEqual({ mode: 'redis', isUp: true });
  return { api, redis };
}

/** As a browser sends what its user typed. */
function typed(password: string, name = 'operator') {
  return { key: null, headers: { authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}` } };
}

fileTest('without Redis the board says where the jobs are', async () => {
  const api = await start();
  const { status, headers, body } = await api.request('GET', BOARD);
  expect([status, body.code]).toEqual([404, 'not_found']);
  expect(headers.get('content-type')).toContain('application/problem+json');
  expect(body.detail).toMatch(/GET \/jobs.*cairn jobs/);
});

test('whoever sends no key is asked for one by the browser, at the board and nowhere else', async () => {
  const api = await start();
  const { status, headers } = await api.request('GET', BOARD, { key: null });
  expect(status).toBe(401);
  expect(headers.get('www-authenticate')).toMatch(/^Basic realm=/);
  expect((await api.request('GET', BOARD, typed('a wrong key'))).status).toBe(401);
  const elsewhere = await api.request('GET', '/jobs', typed(ADMIN_KEY));
  expect(elsewhere.status).toBe(401);
  expect(elsewhere.headers.get('www-authenticate')).toMatch(/^Bearer/);
});

test.each(['read', 'write'] as const)('a key with the role %s is refused', async (role) => {
  const api = await start();
  const { secret } = api.engine.control.createKey({ tenantId: 'default', role });
  expect((await api.request('GET', BOARD, typed(secret))).status).toBe(403);
});

test('an admin of another tenant is refused, as the queues are those of all', async () => {
  const api = await start();
  api.engine.control.createTenant('other');
  const { secret } = api.engine.control.createKey({ tenantId: 'other', role: 'admin' });
  expect((await api.request('GET', BOARD, typed(secret))).status).toBe(403);
});

describe.skipIf(!canStartRedis())('with Redis', () => {
  test('the page and all that it loads is served under headers that let nothing else in', async () => {
    const { api } = await startWithRedis();
    const page = await api.request('GET', BOARD, typed(ADMIN_KEY));
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toContain('text/html');
    const policy = page.headers.get('content-security-policy')!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(page.headers.get('x-frame-options')).toBe('DENY');
    expect(page.headers.get('x-powered-by')).toBeNull();
    const base = /<base href="([^"]+)"/.exec(page.text)![1]!;
    expect(base).toBe(`${BOARD}/`);
    const own = [...page.text.matchAll(/(?:src|href)="(static[^"]+)"/g)].map(([, file]) => file!);
    expect(own.filter((file) => file.endsWith('.js')).length).toBeGreaterThan(0);
    for (const file of own) {
      const asset = await api.request('GET', base + file, typed(ADMIN_KEY));
      expect([file, asset.status]).toEqual([file, 200]);
      expect((await api.request('GET', base + file, { key: null })).status).toBe(401);
    }
    // Scripts in the page itself would be refused: what there is, is data.
    for (const [tag] of page.text.matchAll(/<script(?![^>]*\bsrc=)[^>]*>/g)) expect(tag).toContain('application/json');
  });

  test('shows the jobs of every queue, by key or by password, and no word of what was said', async () => {
    const { api } = await startWithRedis();
    await api.add({ content: 'xylophoneflavoured canary', user_id: 'Zygmunt' });
    const read = (queue: string) => api.request('GET', `${BOARD}/api/queues?activeQueue=${queue}&status=latest`);
    const queueOf = async () => {
      const { queues } = (await read('encode')).body as unknown as { queues: Queue[] };
      return queues.find(({ name }) => name === 'encode')!;
    };
    await expect.poll(async () => (await queueOf()).jobs.length).toBe(1);
    const { jobs, readOnlyMode, allowRetries } = await queueOf();
    expect([readOnlyMode, allowRetries]).toEqual([true, false]);
    expect(jobs[0]!.data).toEqual({ tenant: 'default', jobNos: [1], alone: false });
    expect((await read('encode')).text).not.toMatch(/xylophoneflavoured|Zygmunt/);
    expect((await api.request('GET', `${BOARD}/api/queues`, typed(ADMIN_KEY))).status).toBe(200);
    expect((await api.request('GET', `${BOARD}/api/redis/stats`)).status).toBe(200);
  });

  test('answers nothing that would change a queue', async () => {
    const { api } = await startWithRedis();
    await api.add({ content: 'to be worked on' });
    const changes = [
      ['PUT', '/api/queues/encode/pause'],
      ['PUT', '/api/queues/encode/empty'],
      ['PUT', '/api/queues/encode/obliterate'],
      ['POST', '/api/queues/encode/add'],
      ['DELETE', ''],
    ] as const;
    for (const [method, path] of changes) {
      const { status } = await api.request(method, BOARD + path, { body: {} });
      expect([method, path, status]).toEqual([method, path, 404]);
    }
  });

  test('without a configured key this machine sees it, and only under its own name', async () => {
    const { api } = await startWithRedis({ OM_API_KEY: '' });
    expect((await api.request('GET', BOARD, { key: null })).status).toBe(200);
    const { request } = await import('node:http');
    const status = await new Promise((resolve, reject) => {
      request(api.url + BOARD, { headers: { host: 'rebound.example' } }, (reply) => resolve(reply.resume().statusCode))
        .on('error', reject)
        .end();
    });
    expect(status).toBe(403);
  });

  test('while Redis is down it says so, and shows again once it is back', async () => {
    const { api, redis } = await startWithRedis();
    const read = () => api.request('GET', `${BOARD}/api/queues`);
    expect((await read()).status).toBe(200);
    await redis.kill();
    await expect.poll(async () => (await read()).status).toBe(503);
    const { headers, body } = await read();
    expect(headers.get('retry-after')).not.toBeNull();
    expect(body.detail).toContain('GET /jobs');
    await api.add({ content: 'accepted all the same' });
    await redis.restart({ keepData: true });
    await expect.poll(async () => (await read()).status).toBe(200);
  });

  test('two requests that find the connection lost open one new connection together', async () => {
    const { api, redis } = await startWithRedis();
    const ask = await serveTogether(api);
    const own = redis.connect();
    onTestFinished(() => own.disconnect());
    const clients = async () =>
      ((await own.call('CLIENT', 'LIST')) as string).split('\n').flatMap((line) => /^id=(\d+)/.exec(line)?.[1] ?? []);
    const before = await clients();
    expect(await ask(1)).toEqual([200]);
    const [board, ...more] = (await clients()).filter((id) => !before.includes(id));
    expect(more).toEqual([]);

    // The connection is refused until the requests come.
    await own.config('SET', 'maxclients', before.length);
    await own.call('CLIENT', 'KILL', 'ID', board!);
    await expect.poll(async () => own.info('stats')).toMatch(/rejected_connections:[1-9]/);
    expect(await ask(2, () => own.config('SET', 'maxclients', 1_000))).toEqual([200, 200]);
    await expect.poll(async () => (await clients()).length).toBe(before.length + 1);
  });

  test('a Redis that takes a command and never answers holds up no page for long', async () => {
    const { api, redis } = await startWithRedis();
    const read = () => api.request('GET', `${BOARD}/api/queues`);
    expect((await read()).status).toBe(200);
    redis.signal('SIGSTOP');
    expect((await read()).status).toBe(503);
    redis.signal('SIGCONT');
    await expect.poll(async () => (await read()).status).toBe(200);
  });
});

test.skipIf(findPrograms() === undefined)(
  'over PostgreSQL it shows the queues there, and says so while it is silent',
  async () => {
    const server = (await startPostgres())!;
    onTestFinished(() => server.stop());
    const api = await start({ OM_DATABASE_URL: server.url });
    await expect.poll(() => api.engine.queueState()).toEqual({ mode: 'postgres', isUp: true });
    await api.add({ content: 'xylophoneflavoured canary', user_id: 'Zygmunt' });
    const read = () => api.request('GET', `${BOARD}/api/queues?activeQueue=encode&status=latest`);
    const jobsOf = async () => {
      const { queues } = (await read()).body as unknown as { queues: Queue[] };
      return queues.find(({ name }) => name === 'encode')!.jobs.map(({ data }) => data);
    };
    await expect.poll(jobsOf).toEqual([{ tenant: 'default', jobNos: [1], alone: false }]);
    expect((await read()).text).not.toMatch(/xylophoneflavoured|Zygmunt/);
    expect((await api.request('GET', BOARD, typed(ADMIN_KEY))).status).toBe(200);
    expect((await api.request('GET', `${BOARD}/api/redis/stats`)).status).toBe(200);
    server.pause();
    try {
      expect((await read()).status).toBe(503);
    } finally {
      server.resume();
    }
    await expect.poll(async () => (await read()).status).toBe(200);
  },
);

/**
 * Serves a board of its own with the engine of `api`, to which it hands requests in one step.
 * @returns a function that sends this number of requests, and returns their statuses; `before` is awaited when all of
 *   them have arrived
 */
async function serveTogether({ engine }: TestApi) {
  const admitAll = { admit: async () => ({ tenantId: DEFAULT_TENANT }) } as unknown as AccessControl;
  const stopping = new AbortController();
  const board = serveQueueBoard({ engine, stop: stopping.signal } as ApiContext, admitAll);
  const waiting: (() => void)[] = [];
  let wanted = 0;
  let before: () => Promise<unknown> = async () => {};
  const app = express().use(BOARD, async (request, response, next) => {
    waiting.push(() => void (board(request, response, next) as Promise<void>).catch(next));
    if (waiting.length < wanted) return;
    await before();
    for (const hand of waiting.splice(0)) hand();
  });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    stopping.abort();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${BOARD}/api/queues`;
  return async (requests: number, first = before) => {
    [wanted, before] = [requests, first];
    return Promise.all(Array.from({ length: requests }, async () => (await fetch(url)).status));
  };
}

interface Queue {
  readonly name: string;
  readonly readOnlyMode: boolean;
  readonly allowRetries: boolean;
  readonly jobs: readonly { readonly data: object }[];
}
