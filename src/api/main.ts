import { createTracing } from '../engine/adapters/index.ts';
import {
  createMetrics,
  openEngine,
  readConfig,
  releaseMemoryAfterStart,
  shareInstanceLock,
  VERSION,
} from '../engine/index.ts';
import { serveMetrics } from '../metrics-server.ts';
import { createLogger, endOnSignals } from '../process.ts';
import { startApi } from './start.ts';

/**
 * Runs the API alone (`npm run start:api`). What it accepts waits in the ledger for a worker process on the same files.
 */
export async function serveApi(environment: NodeJS.ProcessEnv): Promise<void> {
  const config = readConfig(environment);
  const logger = createLogger(config);
  const tracing = await createTracing(config, logger);
  const lock = await shareInstanceLock(config.paths.lock);
  const metrics = await createMetrics();
  metrics.watchProcess(VERSION);
  const engine = await openEngine({ config, logger, metrics, tracing, writer: 'thread' });
  const metricsText = () => metrics.registry.metrics();
  const metricsServer = await serveMetrics({
    config,
    portSetting: 'OM_METRICS_PORT',
    read: async () => ({ text: await metricsText(), isComplete: true }),
  });
  const api = await startApi({ engine, metricsText });
  endOnSignals(config, logger, async () => {
    await api.stop();
    await metricsServer?.stop();
    await engine.close();
    await tracing?.close();
    lock.release();
  });
  releaseMemoryAfterStart();
  logger.info({ url: api.url, metrics: metricsServer?.url }, 'ready');
}
