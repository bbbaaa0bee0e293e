import { onTestFinished } from 'vitest';
import { checkAdds, countCrashed, describeReport, expectFinished, expectSound } from './add-checker.ts';
import { startRedisServer, type RedisServer, type RedisServerOptions } from './redis.ts';
import { spawnService, type ServiceProcess } from './running-service.ts';
import { tempFolder } from './temp-folder.ts';

/** An API process, worker processes and a Redis, each of which a test can kill. */
export interface Fleet {
  readonly folder: string;
  readonly redis: RedisServer;
  /** The API that was started last. */
  readonly api: ServiceProcess;
  /** All workers that are running. */
  readonly workers: readonly ServiceProcess[];
  /** Starts an API, without waiting until it serves. */
  spawnApi(settings?: Settings): ServiceProcess;
  /** Starts a worker, without waiting until it works. */
  spawnWorker(settings?: Settings, more?: readonly string[]): ServiceProcess;
  worker(settings?: Settings, more?: readonly string[]): Promise<ServiceProcess>;
  /** Ends all processes that are running, workers first. */
  stop(): Promise<void>;
}

export type Settings = Readonly<Record<string, string>>;

export interface FleetOptions {
  readonly folder?: string;
  readonly settings?: Settings;
  readonly redis?: RedisServerOptions;
  /** Number of workers to start at once. */
  readonly workers?: number;
}

/**
 * Returns the settings with which a process fails at a failpoint, such as by ending itself. `src/engine/failpoint.ts`
 * has the format.
 */
export function failAt(failpoint: string): Settings {
  return { NODE_ENV: 'test', CAIRN_FAILPOINT: failpoint };
}

export async function startFleet(options: FleetOptions = {}): Promise<Fleet> {
  const { folder = tempFolder(), settings = {}, workers: count = 0 } = options;
  const redis = await startRedisServer(options.redis);
  if (redis === undefined) throw new Error('redis-server is not on the PATH');
  const all = { REDIS_URL: redis.url, ...settings };
  const workers = new Set<ServiceProcess>();
  let api: ServiceProcess | undefined;

  const fleet: Fleet = {
    folder,
    redis,
    get api() {
      if (api === undefined) throw new Error('no API was started');
      return api;
    },
    get workers() {
      return [...workers];
    },
    spawnApi: (more = {}) => (api = spawnService({ folder, settings: { ...all, ...more }, command: 'api' })),
    spawnWorker(own = {}, more = []) {
      const worker = spawnService({ folder, settings: { ...all, ...own }, command: 'worker', arguments: more });
      workers.add(worker);
      void worker.exited.then(() => workers.delete(worker));
      return worker;
    },
    async worker(own, more) {
      const worker = fleet.spawnWorker(own, more);
      await worker.ready;
      return worker;
    },
    async stop() {
      // One that was stopped hears of its end only when it goes on.
      for (const process of [...workers, ...(api ? [api] : [])]) process.signal('SIGCONT');
      await Promise.all([...workers].map((worker) => worker.end('SIGTERM')));
      await api?.end('SIGTERM');
    },
  };
  onTestFinished(async () => {
    await Promise.all([...workers, ...(api ? [api] : [])].map((process) => process.end('SIGKILL')));
    await redis.stop();
  });
  fleet.spawnApi();
  await Promise.all([fleet.api.ready, ...Array.from({ length: count }, () => fleet.worker())]);
  return fleet;
}

/**
 * Waits until no job is left, checks that the stored memories agree with the history of adds, ends the processes, and
 * checks the file.
 * @param about beginning of the line that is printed
 */
export async function expectSoundFleet(fleet: Fleet, history: string, about: string): Promise<void> {
  await fleet.api.idle();
  const report = await checkAdds(fleet.api, history);
  await fleet.stop();
  const crashed = countCrashed(fleet.folder);
  console.log(
    `${about}: ${describeReport(report)}; jobs in flight at a kill: ${crashed.beforeEncoded} before their encode commit, ` +
      `${crashed.beforeLinked} before their link commit`,
  );
  expectSound(report);
  const stored = report.ok + report.recovered;
  if (expectFinished(fleet.folder) !== stored)
    throw new Error(`the file holds other memories than the ${stored} that were read`);
}
