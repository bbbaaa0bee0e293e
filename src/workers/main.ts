import { readConfig } from '../engine/config.ts';
import { createMetrics } from '../engine/metrics.ts';
import { createLogger, endOnSignals } from '../process.ts';
import { startWorker } from './worker.ts';

/** `npm run worker`: works off the ledgers of a data folder beside an API process on the same machine. */
export async function runWorkerProcess(environment: NodeJS.ProcessEnv): Promise<void> {
  const config = readConfig(environment);
  const logger = createLogger(config);
  const worker = startWorker({ config, logger, metrics: createMetrics(), alone: false });
  endOnSignals(config, logger, () => worker.drain());
  logger.info({ embeddings: config.OM_EMBEDDINGS }, 'worker_ready');
}
