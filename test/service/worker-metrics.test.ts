import http from 'node:http';
import Database from 'better-sqlite3';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { readConfig } from '../../src/engine/config.ts';
import { failAt } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import { startRedisServer } from '../support/redis.ts';
import { databaseFile, spawnService, startServiceProcess, type ServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const KEY = 'a-key-of-the-operators';

/** `setHost: false`, so that a Host of one's own can be sent. */
function get(port: string, path: string, headers: Readonly<Record<string, string>>): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    const request = http.get({ host: '127.0.0.1', port, path, headers, setHost: false }, (reply) => {
      let text = '';
      reply.setEncoding('utf8').on('data', (part: string) => (text += part));
      reply.on('end', () => resolve([reply.statusCode ?? 0, text]));
    });
    request.on('error', reject);
  });
}

/** The metrics, once the thread that works has begun and they are complete. */
async function served(port: string, headers: Readonly<Record<string, string>>): Promise<string> {
  return vi.waitFor(async () => {
    const [status, text] = await get(port, '/metrics', headers);
    expect(status).toBe(200);
    return text;
  }, 120_000);
}

async function startWorker(folder: string, settings: Readonly<Record<string, string>>): Promise<ServiceProcess> {
  const worker = await startServiceProcess({ folder, settings, command: 'worker' });
  onTestFinished(async () => void (await worker.end('SIGTERM')));
  return worker;
}

describe('the metrics of a worker process', () => {
  test('are served to any key, where there are keys', async () => {
    const port = String(await freePort());
    await startWorker(tempFolder(), { OM_WORKER_METRICS_PORT: port, OM_API_KEY: KEY });
    const host = { host: 'localhost' };
    expect((await get(port, '/metrics', host))[0]).toBe(401);
    expect((await get(port, '/metrics', { ...host, 'x-api-key': 'another-key' }))[0]).toBe(401);
    expect((await get(port, '/metrics', { ...host, 'x-api-key': KEY, authorization: `Bearer ${KEY}` }))[0]).toBe(401);
    const text = await served(port, { ...host, authorization: `Bearer ${KEY}` });
    expect(text).toContain('# TYPE cairn_step_duration_seconds histogram');
    expect(text).toContain('process_cpu_seconds_total');
    // Without a Redis and a provider there is nothing to say about them.
    expect(text).not.toMatch(/^cairn_(?:redis_up|provider_breaker_open) /m);
    expect((await get(port, '/jobs', { ...host, 'x-api-key': KEY }))[0]).toBe(404);
  });

  test('are served to no guess of a key during a pause, be it right or wrong', async () => {
    const port = String(await freePort());
    const settings = { OM_WORKER_METRICS_PORT: port, OM_API_KEY: KEY, OM_MAX_WRONG_KEYS: '2' };
    const folder = tempFolder();
    await startWorker(folder, settings);
    const statusWith = async (key: string) => (await get(port, '/metrics', { host: 'localhost', 'x-api-key': key }))[0];
    const guessed = [await statusWith('guess-1'), await statusWith('guess-2'), await statusWith('guess-3')];
    expect(guessed).toEqual([401, 401, 401]);
    // As after many more guesses: the first pause lasts a second, which the next two may miss.
    const counts = new Database(readConfig({ OM_DB_PATH: databaseFile(folder) }).paths.guesses);
    expect(counts.prepare('UPDATE guessers SET paused_until = ?').run(Date.now() + 60_000).changes).toBe(1);
    counts.close();
    expect([await statusWith('guess-4'), await statusWith(KEY)]).toEqual([429, 429]);
  });

  test('are served to this machine under its own name, where there are none', async () => {
    const port = String(await freePort());
    await startWorker(tempFolder(), { OM_WORKER_METRICS_PORT: port });
    await served(port, { host: `localhost:${port}` });
    expect((await get(port, '/metrics', { host: 'rebound.example' }))[0]).toBe(403);
  });

  test('need a port for each worker, which the second is told by the name of the setting', async () => {
    const folder = tempFolder();
    const settings = { OM_WORKER_METRICS_PORT: String(await freePort()) };
    await startWorker(folder, settings);
    const second = spawnService({ folder, settings, command: 'worker' });
    expect((await second.exited).code).toBe(1);
    expect(second.obituary).toContain('(OM_HOST, OM_WORKER_METRICS_PORT): another program');
  });

  test('are not served to others without a key', async () => {
    const settings = { OM_WORKER_METRICS_PORT: String(await freePort()), OM_HOST: '0.0.0.0' };
    const worker = spawnService({ folder: tempFolder(), settings, command: 'worker' });
    expect((await worker.exited).code).not.toBe(0);
    expect(worker.obituary).toContain('OM_API_KEY');
  });
});

test('what API and workers say of Redis: up while it is there, down and still ready while it is not', async ({
  skip,
}) => {
  const redis = await startRedisServer();
  if (redis === undefined) return skip('redis-server is not on the PATH');
  onTestFinished(() => redis.stop());
  const folder = tempFolder();
  const port = String(await freePort());
  const settings = { REDIS_URL: redis.url };
  const api = await startServiceProcess({ folder, settings, command: 'api' });
  onTestFinished(async () => void (await api.end('SIGTERM')));
  await startWorker(folder, { ...settings, OM_WORKER_METRICS_PORT: port });

  const queuesOf = async () => {
    const { status, body } = await api.request('GET', '/ready');
    expect(status).toBe(200);
    return body['queues'];
  };
  const metricsOf = async () => [
    (await api.request('GET', '/metrics')).text,
    await served(port, { host: 'localhost' }),
  ];
  await api.request('POST', '/memory/add', { body: { content: 'a lamp that is lit at dusk' } });
  await api.idle();
  await vi.waitFor(async () => expect(await queuesOf()).toEqual({ mode: 'redis', redis: 'up' }), 120_000);
  const [ofApi, ofWorker] = await metricsOf();
  expect(ofApi).toMatch(/^cairn_redis_up 1$/m);
  expect(ofWorker).toMatch(/^cairn_redis_up 1$/m);
  // What all processes share is said once.
  expect(ofWorker).not.toMatch(/^cairn_(?:queue_jobs|jobs|memories|database_bytes)[ {]/m);
  expect(ofApi).toMatch(/^cairn_dispatched_rows_total\{step="encode"\} 1$/m);
  expect(ofApi).toMatch(/^cairn_queue_jobs\{queue="encode",state="waiting"\} \d/m);
  expect(ofWorker).toMatch(/^cairn_jobs_finished_total\{state="done"\} 1$/m);

  await redis.kill();
  await vi.waitFor(async () => expect(await queuesOf()).toEqual({ mode: 'redis', redis: 'down' }), 120_000);
  await vi.waitFor(async () => {
    for (const text of await metricsOf()) expect(text).toMatch(/^cairn_redis_up 0$/m);
  }, 120_000);
});

test('a worker whose thread does not come back says that it is unwell, until the thread is replaced', async () => {
  const folder = tempFolder();
  const api = await startServiceProcess({ folder, command: 'api' });
  expect((await api.request('POST', '/memory/add', { body: { content: 'a lamp that is lit at dusk' } })).status).toBe(
    202,
  );
  await api.end('SIGTERM');
  const port = String(await freePort());
  const settings = { ...failAt('before-embed:spin:1'), OM_LEASE_MS: '1000', OM_WORKER_METRICS_PORT: port };
  const worker = spawnService({ folder, settings, command: 'worker' });
  onTestFinished(async () => void (await worker.end('SIGKILL')));
  await worker.ready;
  const statusOf = async () => (await get(port, '/metrics', { host: 'localhost' }))[0];
  await vi.waitFor(async () => expect(await statusOf()).toBe(503), 120_000);
  await worker.logged('worker_hung');
  await vi.waitFor(async () => expect(await statusOf()).toBe(200), 120_000);
});

test('a service in one process has no queues', async () => {
  const service = await startServiceProcess({ folder: tempFolder() });
  onTestFinished(async () => void (await service.end('SIGTERM')));
  expect((await service.request('GET', '/ready')).body).toMatchObject({ queues: { mode: 'embedded' } });
});
