import { readConfig } from '../engine/config.ts';
import type { QueueName } from '../engine/jobs.ts';
import { createMetrics } from '../engine/metrics.ts';
import { createLogger, endOnSignals } from '../process.ts';
import { serveMetrics } from './metrics-server.ts';
import { giveWayToRequests } from './give-way.ts';
import { startQueueWorker } from './queue-worker.ts';
import { startWorker } from './worker.ts';

export interface WorkerProcessOptions {
  readonly queues?: readonly QueueName[] | undefined;
  readonly concurrency?: number | undefined;
}

/**
 * `npm run worker`: does the background work of a data folder beside an API process on the same machine. With `REDIS_URL` any number of
 * them share the queues; without it one polls the ledgers.
 */
export async function runWorkerProcess(
  environment: NodeJS.ProcessEnv,
  { queues, concurrency }: WorkerProcessOptions = {},
): Promise<void> {
  giveWayToRequests();
  const config = readConfig(environment);
  const logger = createLogger(config);
  const metrics = createMetrics();
  metrics.watchProcess();
  let theirs: (() => Promise<object>) | undefined;
  let drain: () => Promise<void>;
  let died: Promise<Error> | undefined;
  if (config.REDIS_URL === undefined) {
    ({ drain } = startWorker({ config, logger, metrics, alone: false }));
  } else {
    const worker = await startQueueWorker({ config, logger, metrics, queues, concurrency });
    ({ drain } = worker);
    theirs = () => worker.executor.metricsJson();
    died = worker.executor.died;
  }
  const server =
    config.OM_WORKER_METRICS_PORT === 0 ? undefined : await serveMetrics({ config, own: metrics.registry, theirs });
  const end = endOnSignals(config, logger, async () => {
    await drain();
    await server?.stop();
  });
  void died?.then((error) => {
    logger.error({ error: error.message }, 'executor_died');
    end('executor died', 1);
  });
  logger.info(
    { embeddings: config.OM_EMBEDDINGS, queues: config.REDIS_URL !== undefined, metrics: server?.url },
    'worker_ready',
  );
}
