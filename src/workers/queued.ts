import { startMigrations } from '../engine/for-workers.ts';
import type { BackgroundWork } from './background-work.ts';
import { openQueueSource, type QueueSourceOptions } from './queue-source.ts';
import { startThreadedRuntime } from './threaded-runtime.ts';

/**
 * Starts a worker that takes its jobs from BullMQ's queues, in a process of its own or in the one that serves the API
 * (`npm start` with `REDIS_URL` or `OM_DATABASE_URL`). This thread talks to the server of the queues and another one
 * runs the steps, so that a long step never delays the renewal of BullMQ's locks. Throws as `openQueueSource`.
 */
export async function startQueuedWork(options: QueueSourceOptions): Promise<BackgroundWork> {
  const { config, logger } = options;
  const source = await openQueueSource(options);
  // Before the work begins, also where the API of this process migrates later.
  const migrations = startMigrations(config.databases, logger);
  const runtime = startThreadedRuntime({ config, logger, ledgers: null });
  source.start(runtime.run);
  return {
    dispatcher: undefined,
    metricsJson: runtime.metricsJson,
    died: runtime.died,
    async drain() {
      await source.pause();
      await runtime.drain();
      await source.close();
      await migrations?.close();
      logger.info({}, 'worker_drained');
    },
  };
}
