import { describe, expect, test } from 'vitest';
import { TICK } from '../../src/engine/jobs.ts';
import { findInfo, putInfo } from '../../src/engine/store/store-info.ts';
import { chooseSeed, withStore } from '../support/add-checker.ts';
import { failAt, startFleet } from '../support/fleet.ts';
import { addUnderFleetKills } from '../support/kill-loop.ts';
import { canStartRedis } from '../support/redis.ts';
import type { ServiceProcess } from '../support/running-service.ts';

/** What every way of working owes its callers is in `pipeline.test.ts`; here is what only a Redis can do to it. */

async function addAll(api: ServiceProcess, count: number, about: string): Promise<void> {
  for (let first = 0; first < count; first += 50) {
    const items = Array.from({ length: Math.min(50, count - first) }, (_, n) => ({
      content: `${about} number ${first + n}`,
      user_id: 'ada',
    }));
    const { status } = await api.request('POST', '/memory/add/batch', { body: { items } });
    expect(status).toBe(202);
  }
}

describe.skipIf(!canStartRedis())('with a Redis that is no more reliable than it has to be', () => {
  test('API, workers and Redis killed during adds lose and double nothing, and all is finished', async () => {
    await addUnderFleetKills({ seed: chooseSeed(), kills: 6, adds: 600, concurrency: 16 });
  });

  test('adds are accepted while Redis is down, workers wait for it, and all is finished when it comes', async () => {
    const { api, redis, worker } = await startFleet({ redis: { down: true } });
    await addAll(api, 100, 'a lighthouse without a keeper');
    expect((await api.request('GET', '/ready')).status).toBe(200);
    const starting = worker();
    await redis.restart({ keepData: false });
    await starting;
    expect(await api.idle()).toMatchObject({ done: 100, dead: 0 });
  });

  test('a flushed Redis is filled again from the ledger', async () => {
    const { api, redis, worker } = await startFleet();
    await addAll(api, 200, 'a letter nobody opened');
    const connection = redis.connect();
    await connection.flushall();
    await worker();
    await connection.flushall();
    connection.disconnect();
    expect(await api.idle()).toMatchObject({ done: 200, dead: 0 });
  });

  test('what is due runs although Redis holds the schedules back until tomorrow', async () => {
    const { folder, redis, worker } = await startFleet();
    const { logged } = await worker();
    const connection = redis.connect();
    const find = async (pattern: string) => (await connection.keys(pattern))[0];
    const lastDecay = () => withStore(folder, (store) => findInfo(store, 'last_decay'));
    await expect.poll(lastDecay).toBeDefined();
    await expect.poll(() => find('*:maintain:delayed')).toBeDefined();
    // As if the clock had been set back a day.
    const tomorrow = Date.now() + 86_400_000;
    const delayed = (await find('*:maintain:delayed'))!;
    for (const job of await connection.zrange(delayed, '0', '-1'))
      await connection.zadd(delayed, String(tomorrow * 4_096), job);
    await connection.zadd((await find('*:maintain:repeat'))!, String(tomorrow), TICK.id);
    withStore(folder, (store) => store.write(() => putInfo(store, 'last_decay', '1')));
    await logged('decay_done');
    connection.disconnect();
  });

  test('the jobs of a worker that died between its commit and its word to the queue are done once, by another', async () => {
    const { api, spawnWorker, worker } = await startFleet({ settings: { OM_LEASE_MS: '4000' } });
    const doomed = spawnWorker(failAt('before-ack:kill:2'));
    await addAll(api, 300, 'a bridge under repair');
    expect(await doomed.exited).toMatchObject({ signal: 'SIGKILL' });
    await worker();
    expect(await api.idle()).toMatchObject({ done: 300, dead: 0 });
  });

  test('the jobs of a worker that died are taken back although nobody takes the queue of the schedules', async () => {
    const { api, spawnWorker, worker } = await startFleet({ settings: { OM_LEASE_MS: '5000' } });
    const some = ['--queues', 'encode,link'];
    const doomed = spawnWorker(failAt('before-encode-commit:kill:1'), some);
    await addAll(api, 50, 'a ferry that did not come back');
    expect(await doomed.exited).toMatchObject({ signal: 'SIGKILL' });
    expect((await api.request('GET', '/jobs?l=1')).body.counts.active).toBeGreaterThan(0);
    await worker({}, some);
    expect(await api.idle()).toMatchObject({ done: 50, dead: 0 });
  });

  test('Redis holds ids and never what was said', async () => {
    const { api, redis } = await startFleet();
    await addAll(api, 100, 'xylophoneflavoured canary');
    const connection = redis.connect();
    const names = async () => connection.keys('*');
    await expect.poll(names).toContainEqual(expect.stringContaining(':encode:'));
    for (const key of await names()) {
      const dump = await connection.dumpBuffer(key);
      expect(dump?.includes('xylophoneflavoured') ?? false, key).toBe(false);
      expect(dump?.includes('ada') ?? false, key).toBe(false);
    }
    connection.disconnect();
  });

  test('a Redis that may evict is named at the start, with the setting to change', async () => {
    const { api } = await startFleet({ redis: { options: ['--maxmemory-policy', 'allkeys-lru'] } });
    expect(await api.logged('redis_settings')).toMatchObject({
      setting: 'maxmemory-policy',
      value: 'allkeys-lru',
      expected: 'noeviction',
    });
  });

  test('API and worker end on SIGTERM with 0 although Redis went first', async () => {
    const { api, redis, workers } = await startFleet({ workers: 1 });
    await addAll(api, 100, 'the last to leave');
    await redis.kill();
    const exits = await Promise.all([api, ...workers].map((process) => process.end('SIGTERM')));
    expect(exits).toEqual([
      { code: 0, signal: null },
      { code: 0, signal: null },
    ]);
  });
});
