import { startApiProcesses } from './api/processes/start-processes.ts';
import { type RunningApi, startApi } from './api/start.ts';
import { createTracing } from './engine/adapters/index.ts';
import {
  acquireInstanceLock,
  type Config,
  createMetrics,
  type Logger,
  type Metrics,
  openEngine,
  queueServerOf,
  readConfig,
  releaseMemoryAfterStart,
  shareInstanceLock,
  silentLogger,
  type Tracing,
  VERSION,
} from './engine/index.ts';
import { keepActivity } from './activity.ts';
import { createMetricsJoiner } from './join-metrics.ts';
import { serveMetrics } from './metrics-server.ts';
import { createLogger, endOnSignals, warnOfReadableEnvFile } from './process.ts';
import { type Stoppable, stopAll } from './stop-all.ts';
import type { BackgroundWork } from './workers/background-work.ts';
import { startEmbeddedWorker } from './workers/embedded.ts';

export interface RunningService {
  /** Address at which clients on this machine reach the API. */
  readonly url: string;
  /** URL of `/metrics` on the metrics server; undefined if `OM_METRICS_PORT` is 0, so that there is none. */
  readonly metricsUrl: string | undefined;
  /**
   * Stops the service: `/ready` answers 503, requests in flight are answered, running job steps are finished or handed
   * back, and SQLite's write-ahead log is moved into the database. If a part fails to stop, the others are stopped, and
   * then it rejects with the first error.
   */
  stop(): Promise<void>;
  /**
   * Resolves with the reason if the worker thread has ended and is not replaced; the caller should then stop the
   * service.
   */
  readonly died: Promise<Error>;
  /** Resolves with the reason if the writer thread has ended; the caller should then stop the service. */
  readonly writerDied: Promise<Error> | undefined;
}

/**
 * Starts the API and the workers in one process. Without `REDIS_URL` and `OM_DATABASE_URL` this is the whole service,
 * and no other process may use the data folder.
 * @throws the error of the part that cannot start, after those that have started are stopped
 */
export async function startService(config: Config, logger: Logger = silentLogger): Promise<RunningService> {
  const started: Stoppable[] = [];
  const stop = () => stopAll(started.splice(0));
  try {
    const metrics = await createMetrics();
    metrics.watchProcess(VERSION);
    const tracing = await createTracing(config, logger);
    if (tracing !== null) started.push({ stop: () => tracing.close() });
    // Without queues no other process may work here, so all leases at the start belong to processes that died.
    const lock = await (queueServerOf(config) === null ? acquireInstanceLock : shareInstanceLock)(config.paths.lock);
    started.push({ stop: () => lock.release() });
    const worker = await startWork(config, { logger, metrics, tracing });
    let drained: Promise<void> | undefined;
    const drain = () => (drained ??= worker.drain());
    started.push({ stop: drain });
    const engine = await openEngine({
      config,
      logger,
      metrics,
      tracing,
      dispatcher: worker.dispatcher,
      writer: 'thread',
    });
    started.push({ stop: () => engine.close() });
    let apiMetrics: RunningApi['metrics'] = () => [];
    const readMetrics = createMetricsJoiner(metrics.registry, () => [worker.metricsJson, ...apiMetrics()]);
    const metricsServer = await serveMetrics({ config, portSetting: 'OM_METRICS_PORT', read: readMetrics });
    if (metricsServer !== undefined) started.push(metricsServer);
    const metricsText = async () => (await readMetrics()).text;
    const activity = keepActivity(metricsText);
    started.push(activity);
    const start = config.OM_API_PROCESSES > 1 ? startApiProcesses : startApi;
    const api = await start({ engine, metricsText, activity: () => activity.read() });
    started.push({
      stop() {
        // The worker finishes its steps while requests are answered. Its own stop, which comes later, waits for it.
        drain().catch(() => {});
        return api.stop();
      },
    });
    apiMetrics = api.metrics;
    const { died: writerDied } = engine.lead.transport;
    return { url: api.url, metricsUrl: metricsServer?.url, died: worker.died, writerDied, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Starts the background work of this process. Its jobs come from the ledgers in the tenants' files, or with `REDIS_URL`
 * or `OM_DATABASE_URL` from BullMQ's queues.
 */
async function startWork(
  config: Config,
  { logger, metrics, tracing }: { logger: Logger; metrics: Metrics; tracing: Tracing | null },
): Promise<BackgroundWork> {
  if (queueServerOf(config) === null)
    return startEmbeddedWorker({ config, logger, alone: true, onHung: () => metrics.hungThreads.inc() });
  // Loaded here, so that a process without queues does not hold it in memory.
  const { startQueuedWork } = await import('./workers/queued.ts');
  return startQueuedWork({ config, logger, metrics, tracing });
}

/**
 * Runs the whole service (`npm start`) until SIGTERM, SIGINT or the death of the worker thread or of the writer thread
 * ends it. Returns once the service is ready.
 */
export async function serve(environment: NodeJS.ProcessEnv): Promise<void> {
  const config = readConfig(environment);
  const logger = createLogger(config);
  warnOfReadableEnvFile(environment, logger);
  const service = await startService(config, logger);
  const end = endOnSignals(config, logger, () => service.stop());
  const endWithout = (part: 'worker' | 'writer') => (error: Error) => {
    logger.error({ error: error.message }, `${part}_died`);
    end(`${part} died`, 1);
  };
  void service.died.then(endWithout('worker'));
  void service.writerDied?.then(endWithout('writer'));
  releaseMemoryAfterStart();
  logger.info(
    {
      url: service.url,
      metrics: service.metricsUrl,
      embeddings: config.OM_EMBEDDINGS,
      open: config.OM_API_KEY === undefined && config.OM_OIDC_ISSUER === undefined,
    },
    'ready',
  );
}
