import type { BackgroundWork } from './background-work.ts';
import { startQueueWorker, type QueueWorkerOptions } from './queue-worker.ts';

/** A worker of the queues: a process of its own, or inside the one that serves the API (`npm start` with `REDIS_URL`). */
export async function startQueuedWork(options: QueueWorkerOptions): Promise<BackgroundWork> {
  const { executor, drain } = await startQueueWorker(options);
  return {
    dispatcher: undefined,
    metricsJson: () => executor.metricsJson(),
    died: executor.died,
    drain,
  };
}
