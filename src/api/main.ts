import { createTracing } from '../engine/adapters/index.ts';
import {
  createMetrics,
  openEngine,
  readConfig,
  releaseMemoryAfterStart,
  shareInstanceLock,
  VERSION,
} from '../engine/index.ts';
import { keepActivity } from '../activity.ts';
import { createMetricsJoiner } from '../join-metrics.ts';
import { serveMetrics } from '../metrics-server.ts';
import { createLogger, endOnSignals, warnOfReadableEnvFile } from '../process.ts';
import { startApiProcesses } from './processes/start-processes.ts';
import { type RunningApi, startApi } from './start.ts';

/**
 * Runs the API without workers (`npm run start:api`), until a signal or the death of the writer thread ends it. The
 * jobs of accepted memories wait in the database for a worker process with the same data folder. Returns once the API
 * is ready.
 */
export async function serveApi(environment: NodeJS.ProcessEnv): Promise<void> {
  const config = readConfig(environment);
  const logger = createLogger(config);
  warnOfReadableEnvFile(environment, logger);
  const tracing = await createTracing(config, logger);
  const lock = await shareInstanceLock(config.paths.lock);
  const metrics = await createMetrics();
  metrics.watchProcess(VERSION);
  const engine = await openEngine({ config, logger, metrics, tracing, writer: 'thread' });
  let apiMetrics: RunningApi['metrics'] = () => [];
  const readMetrics = createMetricsJoiner(metrics.registry, () => apiMetrics());
  const metricsServer = await serveMetrics({
    config,
    portSetting: 'OM_METRICS_PORT',
    read: readMetrics,
  });
  const metricsText = async () => (await readMetrics()).text;
  const activity = keepActivity(metricsText);
  const start = config.OM_API_PROCESSES > 1 ? startApiProcesses : startApi;
  const api = await start({ engine, metricsText, activity: () => activity.read() });
  apiMetrics = api.metrics;
  const end = endOnSignals(config, logger, async () => {
    activity.stop();
    await api.stop();
    await metricsServer?.stop();
    await engine.close();
    await tracing?.close();
    lock.release();
  });
  void engine.lead.transport.died?.then((error) => {
    logger.error({ error: error.message }, 'writer_died');
    end('writer died', 1);
  });
  releaseMemoryAfterStart();
  logger.info({ url: api.url, metrics: metricsServer?.url }, 'ready');
}
