import { setTimeout as pause } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { chooseSeed, withStore } from '../support/add-checker.ts';
import { expectNoOrphans } from '../support/engine-fixture.ts';
import { inForm } from '../support/fault-form.ts';
import { startFleet } from '../support/fleet.ts';
import { startPrimitiveLoad } from '../support/primitive-load.ts';
import { canStartRedis } from '../support/redis.ts';
import { spawnService, type ServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const SETTINGS = { OM_MODE: 'langgraph' };
/** One life in eight ends while the service still starts. */
const EARLY_SHARE = 1 / 8;
const EARLY_MS = 600;
/** Most answers between two kills. */
const ANSWERS = 200;
/** Of an API, two workers and a Redis. */
const VICTIMS = ['api', 'api', 'worker', 'redis'] as const;
const REDIS_DOWN_MS = 500;

test(`${inForm(30)} kills during puts, logs, batches, moves and deletes lose and double nothing, told of once each`, async () => {
  const seed = chooseSeed();
  const random = createRandom(seed);
  const folder = tempFolder();
  let up = Promise.withResolvers<ServiceProcess>();
  const load = startPrimitiveLoad({ seed, service: () => up.promise });
  for (let life = 0; life < inForm(30); life += 1) {
    const service = spawnService({ folder, settings: SETTINGS });
    if (random() < EARLY_SHARE) {
      await pause(random() * EARLY_MS);
    } else {
      await service.ready;
      up.resolve(service);
      await load.proceed(random() * ANSWERS);
      up = Promise.withResolvers();
    }
    await service.end('SIGKILL');
  }
  const service = spawnService({ folder, settings: SETTINGS });
  await service.ready;
  up.resolve(service);
  await load.proceed(ANSWERS);
  load.stop();
  await load.done;
  await service.idle();
  const seen = await load.check();
  await service.end('SIGTERM');
  withStore(folder, expectNoOrphans);
  console.log(`seed ${seed}: ${load.answered} answers, ${load.repeated} after a repetition; ${seen}`);
});

describe.skipIf(!canStartRedis())('with Redis', () => {
  test(`${inForm(20)} kills of API, workers and Redis during the same cost nothing either`, async () => {
    const seed = chooseSeed();
    const random = createRandom(seed);
    const fleet = await startFleet({ settings: { ...SETTINGS, OM_LEASE_MS: '2000' }, workers: 2 });
    let up = Promise.withResolvers<ServiceProcess>();
    up.resolve(fleet.api);
    const load = startPrimitiveLoad({ seed, service: () => up.promise });
    for (let kill = 0; kill < inForm(20); kill += 1) {
      await load.proceed(random() * ANSWERS);
      const victim = VICTIMS[kill % VICTIMS.length];
      if (victim === 'worker') {
        await fleet.workers[0]?.end('SIGKILL');
        fleet.spawnWorker();
      } else if (victim === 'redis') {
        await fleet.redis.restart({ keepData: random() < 0.5, downMs: random() * REDIS_DOWN_MS });
      } else {
        up = Promise.withResolvers();
        await fleet.api.end('SIGKILL');
        await fleet.spawnApi().ready;
        up.resolve(fleet.api);
      }
    }
    await load.proceed(ANSWERS);
    load.stop();
    await load.done;
    await fleet.api.idle();
    const seen = await load.check();
    await fleet.stop();
    withStore(fleet.folder, expectNoOrphans);
    console.log(`seed ${seed}: ${load.answered} answers, ${load.repeated} after a repetition; ${seen}`);
  });
});
