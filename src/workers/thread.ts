import { parentPort, workerData } from 'node:worker_threads';
import { createTracing } from '../engine/adapters/create-tracing.ts';
import type { Config } from '../engine/config.ts';
import { assert } from '../engine/errors.ts';
import { releaseMemoryAfterStart } from '../engine/release-memory.ts';
import { createMetrics } from '../engine/metrics.ts';
import { createLogger } from '../process.ts';
import { giveWayToRequests } from './give-way.ts';
import { startBeating, type Heart } from './heart.ts';
import { startWorker } from './worker.ts';

/** A worker without queues, on a thread of its own: beside the API, or in a worker process. */
export interface WorkerThreadData {
  readonly config: Config;
  readonly heart: Heart;
  /** True where this is the only worker of the data folder. */
  readonly alone: boolean;
}

export type ToWorkerThread =
  | { readonly kind: 'wake'; readonly path: string }
  | { readonly kind: 'metrics'; readonly id: number }
  | { readonly kind: 'drain' };
export type FromWorkerThread =
  { readonly kind: 'metrics'; readonly id: number; readonly metrics: object } | { readonly kind: 'drained' };

giveWayToRequests();
releaseMemoryAfterStart();
const { config, heart, alone } = workerData as WorkerThreadData;
const port = parentPort;
assert(port !== null, 'the worker thread has a parent');

const metrics = createMetrics();
const logger = createLogger(config, 'worker');
const tracing = await createTracing(config, logger);
const worker = startWorker({ config, metrics, tracing, logger, alone });
startBeating(heart);

port.on('message', (message: ToWorkerThread) => {
  switch (message.kind) {
    case 'wake':
      worker.wake(message.path);
      return;
    case 'metrics':
      void metrics.registry
        .getMetricsAsJSON()
        .then((json) =>
          port.postMessage({ kind: 'metrics', id: message.id, metrics: json } satisfies FromWorkerThread),
        );
      return;
    case 'drain':
      void worker.drain().then(() => port.postMessage({ kind: 'drained' } satisfies FromWorkerThread));
      return;
  }
});
