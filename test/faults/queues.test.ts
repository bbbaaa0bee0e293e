import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { chooseSeed, createAddClient, type AddClient } from '../support/add-checker.ts';
import { inForm } from '../support/fault-form.ts';
import { expectSoundFleet, startFleet, type Fleet, type FleetOptions } from '../support/fleet.ts';
import { addUnderFleetKills } from '../support/kill-loop.ts';
import { canStartRedis } from '../support/redis.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** A fleet and a client whose adds follow from a seed. */
async function startLoad(
  options: FleetOptions,
): Promise<{ fleet: Fleet; client: AddClient; finish: Finish; seed: number }> {
  const fleet = await startFleet(options);
  const history = path.join(tempFolder(), 'history.jsonl');
  const seed = chooseSeed();
  const client = createAddClient({ history, seed, concurrency: 16, service: async () => fleet.api });
  return { fleet, client, seed, finish: (about) => expectSoundFleet(fleet, history, `seed ${seed}, ${about}`) };
}

type Finish = (about: string) => Promise<void>;

const FLUSHED_ADDS = 5_000;
/** Of 20 flushes. */
const HALF = 10;
const STOPPED_MS = 20_000;

describe.skipIf(!canStartRedis())('whatever becomes of Redis and of those who talk to it', () => {
  test(`${inForm(50)} kills of API, workers and Redis lose and double nothing`, async () => {
    await addUnderFleetKills({ seed: chooseSeed(), kills: inForm(50), adds: inForm(10_000), concurrency: 16 });
  });

  test('FLUSHALL at 20 random moments costs time only', async () => {
    const { fleet, client, seed, finish } = await startLoad({});
    const random = createRandom(seed);
    const redis = fleet.redis.connect();
    const momentOf = (flush: number) => Math.floor((FLUSHED_ADDS * ((flush % HALF) + random())) / (HALF + 1));
    const adding = client.add(FLUSHED_ADDS);
    for (let flush = 0; flush < HALF; flush++) {
      await client.untilAcknowledged(momentOf(flush));
      await redis.flushall();
    }
    await adding;
    // The other half while all of it is worked off.
    await Promise.all([fleet.worker(), fleet.worker()]);
    const countDone = async () => (await fleet.api.request('GET', '/jobs?l=1')).body.counts.done;
    for (let flush = HALF; flush < 2 * HALF; flush++) {
      const moment = momentOf(flush);
      while ((await countDone()) < moment) await pause(20);
      await redis.flushall();
    }
    const flushedAt = performance.now();
    const left = FLUSHED_ADDS - (await countDone());
    redis.disconnect();
    await fleet.api.idle();
    const seconds = ((performance.now() - flushedAt) / 1_000).toFixed(1);
    await finish(`${2 * HALF} flushes, ${left} left at the last, all finished ${seconds} s later`);
  });

  test('a Redis that is down at the start, and again for 20 s under load, delays work and nothing else', async () => {
    const { fleet, client, finish } = await startLoad({ redis: { down: true } });
    await client.add(300);
    expect((await fleet.api.request('GET', '/ready')).status).toBe(200);
    const starting = [fleet.worker(), fleet.worker()];
    await pause(1_000);
    await fleet.redis.restart({ keepData: true });
    await Promise.all(starting);
    await fleet.api.idle();
    const adding = client.add(1_500);
    await client.untilAcknowledged(600);
    await fleet.redis.restart({ keepData: true, downMs: STOPPED_MS });
    await adding;
    await finish('Redis down at the start and for 20 s');
  });

  test('while Redis is stopped for 20 s, adds, health and queries are answered', async () => {
    const { fleet, client, finish } = await startLoad({ workers: 2 });
    await client.add(200);
    fleet.redis.signal('SIGSTOP');
    const until = performance.now() + STOPPED_MS;
    let slowestMs = 0;
    let rounds = 0;
    while (performance.now() < until) {
      const startedAt = performance.now();
      await client.add(16);
      expect((await fleet.api.request('GET', '/health')).status).toBe(200);
      expect((await fleet.api.request('GET', '/ready')).status).toBe(200);
      const { body } = await fleet.api.request('POST', '/memory/query', {
        body: { query: 'the old harbour', k: 3, min_score: 0 },
      });
      expect(body.matches.length).toBeGreaterThan(0);
      slowestMs = Math.max(slowestMs, performance.now() - startedAt);
      rounds++;
      await pause(100);
    }
    fleet.redis.signal('SIGCONT');
    await finish(
      `${rounds} rounds of 16 adds, /health, /ready and a query; the slowest took ${slowestMs.toFixed(0)} ms`,
    );
  });

  test('a Redis that is full refuses jobs, not adds, and all is finished once it has room', async () => {
    const { fleet, client, finish } = await startLoad({ workers: 2, redis: { options: ['--maxmemory', '3mb'] } });
    const redis = fleet.redis.connect();
    await expect(async () => {
      for (let weight = 0; ; weight++) await redis.set(`ballast-${weight}`, Buffer.alloc(64 * 1024));
    }).rejects.toThrow('OOM');
    await client.add(1_000);
    expect(client.acknowledged).toBe(1_000);
    await fleet.api.logged('dispatch_failed');
    expect((await fleet.api.request('GET', '/jobs?l=1')).body.counts.queued).toBeGreaterThan(0);
    await redis.config('SET', 'maxmemory', '0');
    redis.disconnect();
    await finish('Redis at maxmemory');
  });
});
