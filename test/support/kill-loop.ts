import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import {
  checkAdds,
  countCrashed,
  createAddClient,
  createRandom,
  describeReport,
  expectFinished,
  expectSound,
} from './add-checker.ts';
import { spawnService, type ServiceProcess } from './running-service.ts';
import { tempFolder } from './temp-folder.ts';

export interface KillPlan {
  readonly seed: number;
  readonly kills: number;
  readonly adds: number;
  readonly concurrency: number;
  readonly settings?: Readonly<Record<string, string>>;
}

/** One life in eight ends while the service still starts; the others after some of their adds and a moment more. */
const EARLY_SHARE = 1 / 8;
const EARLY_MS = 600;
const MOMENT_MS = 60;

/**
 * Adds memories while the service is killed outright at moments that follow from the seed, then lets it finish and checks
 * everything. @returns a line that says what was seen
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
