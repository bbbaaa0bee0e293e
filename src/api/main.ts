import { readConfig } from '../engine/config.ts';
import { createMetrics } from '../engine/metrics.ts';
import { openEngine } from '../engine/open-engine.ts';
import { releaseMemoryAfterStart } from '../engine/release-memory.ts';
import { createLogger, endOnSignals } from '../process.ts';
import { startApi } from './start.ts';

/** `npm run start:api`: the API alone. What it accepts waits in the ledger for a worker process on the same files. */
export async function serveApi(environment: NodeJS.ProcessEnv): Promise<void> {
  const config = readConfig(environment);
  const logger = createLogger(config);
  const metrics = createMetrics();
  metrics.watchProcess();
  const engine = await openEngine({ config, logger, metrics, writer: 'thread' });
  const api = await startApi({ engine, metricsText: () => metrics.registry.metrics() });
  endOnSignals(config, logger, async () => {
    await api.stop();
    await engine.close();
  });
  releaseMemoryAfterStart();
  logger.info({ url: api.url }, 'ready');
}
