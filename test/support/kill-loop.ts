import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createRandom } from '../../src/engine/random.ts';
import {
  checkAdds,
  countCrashed,
  createAddClient,
  describeReport,
  expectFinished,
  expectSound,
} from './add-checker.ts';
import { expectSoundFleet, startFleet, type Fleet } from './fleet.ts';
import { spawnService, type ServiceProcess } from './running-service.ts';
import { tempFolder } from './temp-folder.ts';

export interface KillPlan {
  readonly seed: number;
  readonly kills: number;
  readonly adds: number;
  readonly concurrency: number;
  readonly settings?: Readonly<Record<string, string>>;
}

/**
 * Share of the service's starts after which it is killed while it is still starting. Otherwise it is killed after some
 * adds and a moment more.
 */
const EARLY_SHARE = 1 / 8;
const EARLY_MS = 600;
const MOMENT_MS = 60;

/**
 * Adds memories while the service is killed with SIGKILL at random times (from the seed). Then it lets the service
 * finish, and checks everything that is stored.
 * @returns a line that sums up the run
 */
export async function addUnderKills({ seed, kills, adds, concurrency, settings = {} }: KillPlan): Promise<string> {
  const random = createRandom(seed);
  const folder = tempFolder();
  const history = path.join(folder, 'history.jsonl');
  let up = Promise.withResolvers<ServiceProcess>();
  const client = createAddClient({ history, seed, concurrency, service: () => up.promise });
  const adding: Promise<void>[] = [];
  let left = adds;

  for (let life = 0; life < kills; life++) {
    const service = spawnService({ folder, settings });
    if (random() < EARLY_SHARE) {
      await pause(random() * EARLY_MS);
      await service.end('SIGKILL');
      continue;
    }
    await service.ready;
    const share = Math.min(left, Math.ceil(adds / kills));
    const before = client.acknowledged;
    left -= share;
    up.resolve(service);
    adding.push(client.add(share));
    await client.untilAcknowledged(before + Math.floor(random() * share));
    await pause(random() * MOMENT_MS);
    up = Promise.withResolvers();
    await service.end('SIGKILL');
  }

  const service = spawnService({ folder, settings });
  await service.ready;
  up.resolve(service);
  await Promise.all([...adding, client.add(left)]);
  await service.idle();
  const report = await checkAdds(service, history);
  await service.end('SIGTERM');
  const crashed = countCrashed(folder);
  const line =
    `seed ${seed}, ${kills} kills: ${describeReport(report)}; answers replayed ${client.replayed}; ` +
    `jobs in flight at a kill: ${crashed.beforeEncoded} before their encode commit, ${crashed.beforeLinked} before their link commit`;
  console.log(line);
  expectSound(report);
  const stored = report.ok + report.recovered;
  if (expectFinished(folder) !== stored)
    throw new Error(`the file holds other memories than the ${stored} that were read`);
  return line;
}

/**
 * The processes of which one is chosen at random for each kill: an API, two workers, and a Redis with an append-only
 * file.
 */
const VICTIMS = ['api', 'api', 'api', 'worker', 'worker', 'worker', 'worker', 'redis', 'redis', 'redis'] as const;
const REDIS_KEEPS_SHARE = 2 / 3;
const REDIS_DOWN_MS = 500;

/**
 * Adds memories while one of several processes is killed and started again, chosen at random with the time of each kill
 * (from the seed). Redis restarts with the data that it had written, or with none.
 */
export async function addUnderFleetKills({ seed, kills, adds, concurrency, settings = {} }: KillPlan): Promise<void> {
  const random = createRandom(seed);
  const fleet = await startFleet({ settings: { OM_LEASE_MS: '4000', ...settings }, workers: 2 });
  const history = path.join(tempFolder(), 'history.jsonl');
  let up = Promise.withResolvers<ServiceProcess>();
  up.resolve(fleet.api);
  const client = createAddClient({ history, seed, concurrency, service: () => up.promise });
  const adding = client.add(adds);
  const killed = { api: 0, worker: 0, redis: 0, redisEmptied: 0 };

  for (let kill = 0; kill < kills; kill++) {
    const at = Math.floor((adds * (kill + random())) / (kills + 1));
    await Promise.race([client.untilAcknowledged(at), adding]);
    await pause(random() * MOMENT_MS);
    const victim = VICTIMS[Math.floor(random() * VICTIMS.length)]!;
    killed[victim]++;
    switch (victim) {
      case 'api':
        up = Promise.withResolvers();
        await fleet.api.end('SIGKILL');
        up.resolve(await restartApi(fleet, random));
        break;
      case 'worker':
        // It may still be about to start.
        await fleet.workers[random() < 0.5 ? 0 : 1]?.end('SIGKILL');
        fleet.spawnWorker();
        break;
      case 'redis': {
        const keepData = random() < REDIS_KEEPS_SHARE;
        if (!keepData) killed.redisEmptied++;
        await fleet.redis.restart({ keepData, downMs: random() * REDIS_DOWN_MS });
      }
    }
  }
  await adding;
  const kinds = `API ${killed.api}, workers ${killed.worker}, Redis ${killed.redis} (${killed.redisEmptied} without its data)`;
  await expectSoundFleet(
    fleet,
    history,
    `seed ${seed}, ${kills} kills (${kinds}), answers replayed ${client.replayed}`,
  );
}

/** Starts the API again. In one case of eight it is killed once more while it starts. */
async function restartApi(fleet: Fleet, random: () => number): Promise<ServiceProcess> {
  fleet.spawnApi();
  if (random() < EARLY_SHARE) {
    await pause(random() * EARLY_MS);
    await fleet.api.end('SIGKILL');
    fleet.spawnApi();
  }
  await fleet.api.ready;
  return fleet.api;
}
