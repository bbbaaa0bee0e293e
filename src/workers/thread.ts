import { parentPort, workerData } from 'node:worker_threads';
import { pino } from 'pino';
import type { Config } from '../engine/config.ts';
import { assert } from '../engine/errors.ts';
import { releaseMemoryAfterStart } from '../engine/release-memory.ts';
import { createMetrics } from '../engine/metrics.ts';
import { giveWayToRequests } from './give-way.ts';
import { startWorker } from './worker.ts';

/** The worker of the embedded mode, on a thread of the process that serves the API. */
export interface WorkerThreadData {
  readonly config: Config;
}

export type ToWorkerThread =
  | { readonly kind: 'wake'; readonly path: string }
  | { readonly kind: 'metrics'; readonly id: number }
  | { readonly kind: 'drain' };
export type FromWorkerThread =
  { readonly kind: 'metrics'; readonly id: number; readonly metrics: object } | { readonly kind: 'drained' };

giveWayToRequests();
releaseMemoryAfterStart();
const { config } = workerData as WorkerThreadData;
const port = parentPort;
assert(port !== null, 'the worker thread has a parent');

const metrics = createMetrics();
const worker = startWorker({
  config,
  metrics,
  logger: pino({ level: config.OM_LOG_LEVEL, base: { thread: 'worker' } }),
  alone: true,
});

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
