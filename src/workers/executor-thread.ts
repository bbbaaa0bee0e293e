import { parentPort, workerData } from 'node:worker_threads';
import { createTracing } from '../engine/adapters/create-tracing.ts';
import type { Config } from '../engine/config.ts';
import { assert, serialiseError, type SerialisedError } from '../engine/errors.ts';
import type { QueuedStep, StepPayload } from '../engine/jobs.ts';
import { createMetrics } from '../engine/metrics.ts';
import { releaseMemoryAfterStart } from '../engine/release-memory.ts';
import { createLogger } from '../process.ts';
import { createExecutor } from './executor.ts';
import { giveWayToRequests } from './give-way.ts';
import { startBeating, type Heart } from './heart.ts';

/** The executor on a thread of its own, so that CPU-bound steps never keep a worker from renewing its locks. */
export interface ExecutorThreadData {
  readonly config: Config;
  readonly linksAtOnce: boolean;
  readonly heart: Heart;
}

export type ExecutorTask =
  | { readonly kind: 'step'; readonly step: QueuedStep; readonly payload: StepPayload }
  | { readonly kind: 'maintain' }
  | { readonly kind: 'metrics' }
  | { readonly kind: 'drain' };
export type ExecutorRequest = { readonly id: number; readonly task: ExecutorTask };
export type ExecutorReply =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly error: SerialisedError };

giveWayToRequests();
releaseMemoryAfterStart();
const { config, linksAtOnce, heart } = workerData as ExecutorThreadData;
const port = parentPort;
assert(port !== null, 'the executor thread has a parent');

const metrics = createMetrics();
const logger = createLogger(config, 'executor');
const tracing = await createTracing(config, logger);
const executor = createExecutor({ config, metrics, tracing, linksAtOnce, logger });
startBeating(heart);

port.on('message', ({ id, task }: ExecutorRequest) => {
  run(task).then(
    (value) => port.postMessage({ id, ok: true, value } satisfies ExecutorReply),
    (error: unknown) => port.postMessage({ id, ok: false, error: serialiseError(error) } satisfies ExecutorReply),
  );
});

async function run(task: ExecutorTask): Promise<unknown> {
  switch (task.kind) {
    case 'step':
      return executor.runStep(task.step, task.payload);
    case 'maintain':
      return executor.maintain();
    case 'metrics':
      return metrics.registry.getMetricsAsJSON();
    case 'drain':
      return executor.drain();
  }
}
