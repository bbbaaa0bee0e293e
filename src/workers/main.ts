import { createTracing } from '../engine/adapters/index.ts';
import { giveWay, NICENESS } from '../engine/for-workers.ts';
import {
  type QueueName,
  VERSION,
  createMetrics,
  queueServerOf,
  readConfig,
  shareInstanceLock,
} from '../engine/index.ts';
import { createMetricsJoiner } from '../join-metrics.ts';
import { serveMetrics } from '../metrics-server.ts';
import { createLogger, endOnSignals, warnOfReadableEnvFile } from '../process.ts';
import { startQueuedWork } from './queued.ts';
import { startEmbeddedWorker } from './embedded.ts';

/** Options of a worker process. They have an effect only with queues: with `REDIS_URL` or `OM_DATABASE_URL`. */
export interface WorkerProcessOptions {
  /** The queues from which jobs are taken; all by default. */
  readonly queues?: readonly QueueName[] | undefined;
  /**
   * Greatest number of jobs of the queue `encode` that this process works on at once; by default 2 for an embedder that
   * computes here, and OM_EMBED_CONCURRENCY + 1 for a provider.
   */
  readonly concurrency?: number | undefined;
}

/**
 * Does the background work of a data folder beside an API process on the same machine, or of a database (`npm run
 * worker`). With `REDIS_URL` or `OM_DATABASE_URL` any number of such processes share the queues; without both there may
 * be one, which reads the ledgers; this is not checked. Returns once it is ready, though its worker thread may still
 * wait for the database. A signal ends the process, and so does the end of its worker thread, with exit code 1.
 * @throws EngineError of `readConfig`, `shareInstanceLock` and `openQueueSource`
 */
export async function runWorkerProcess(
  environment: NodeJS.ProcessEnv,
  { queues, concurrency }: WorkerProcessOptions = {},
): Promise<void> {
  giveWay(NICENESS.background);
  const config = readConfig(environment);
  const logger = createLogger(config);
  warnOfReadableEnvFile(environment, logger);
  const tracing = await createTracing(config, logger);
  const lock = await shareInstanceLock(config.paths.lock);
  const metrics = await createMetrics();
  metrics.watchProcess(VERSION);
  const work =
    queueServerOf(config) === null
      ? startEmbeddedWorker({ config, logger, alone: false, onHung: () => metrics.hungThreads.inc() })
      : await startQueuedWork({ config, logger, metrics, tracing, queues, concurrency });
  const server = await serveMetrics({
    config,
    portSetting: 'OM_WORKER_METRICS_PORT',
    read: createMetricsJoiner(metrics.registry, () => [work.metricsJson]),
  });
  const end = endOnSignals(config, logger, async () => {
    await work.drain();
    await tracing?.close();
    await server?.stop();
    lock.release();
  });
  void work.died.then((error) => {
    logger.error({ error: error.message }, 'executor_died');
    end('executor died', 1);
  });
  logger.info(
    { embeddings: config.OM_EMBEDDINGS, queues: queueServerOf(config) !== null, metrics: server?.url },
    'worker_ready',
  );
}
