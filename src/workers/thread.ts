import { setTimeout as pause } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { createTracing } from '../engine/adapters/index.ts';
import {
  type Config,
  type SerialisedError,
  assert,
  createMetrics,
  isEngineError,
  releaseMemoryAfterStart,
  serialiseError,
} from '../engine/index.ts';
import { giveWay, NICENESS } from '../engine/for-workers.ts';
import { createLogger } from '../process.ts';
import { startBeating, type Heart } from './heart.ts';
import type { Work } from './job-source.ts';
import { openRuntime, type ReadsLedgers, type Runtime } from './runtime.ts';

/**
 * Data for the thread of a worker's runtime. The runtime has a thread of its own, so that steps which compute do not
 * delay the process's requests or the renewal of its locks.
 */
export interface ThreadData {
  readonly config: Config;
  readonly heart: Heart;
  readonly ledgers: ReadsLedgers | null;
}

/**
 * A task for the worker thread. The thread answers each task once: `run` with the number of claimed jobs, `metrics`
 * with the registry's metrics as JSON, `wake` and `drain` with nothing. `wake` says that a file has new jobs.
 */
export type ThreadTask =
  | { readonly kind: 'run'; readonly work: Work }
  | { readonly kind: 'wake'; readonly path: string }
  | { readonly kind: 'metrics' }
  | { readonly kind: 'drain' };
export type ThreadRequest = { readonly id: number; readonly task: ThreadTask };
export type ThreadReply =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly error: SerialisedError };

const OPENING_TRIES = 60;

giveWay(NICENESS.background);
releaseMemoryAfterStart();
const { config, heart, ledgers } = workerData as ThreadData;
const port = parentPort;
assert(port !== null, 'the worker thread has a parent');

const metrics = await createMetrics();
const logger = createLogger(config, 'worker');
const tracing = await createTracing(config, logger);
const runtime = await openWhenReachable();
startBeating(heart);

port.on('message', ({ id, task }: ThreadRequest) => {
  perform(task).then(
    (value) => port.postMessage({ id, ok: true, value } satisfies ThreadReply),
    (error: unknown) => port.postMessage({ id, ok: false, error: serialiseError(error) } satisfies ThreadReply),
  );
});

async function perform(task: ThreadTask): Promise<unknown> {
  switch (task.kind) {
    case 'run':
      return runtime.run(task.work);
    case 'wake':
      return runtime.wake(task.path);
    case 'metrics':
      return metrics.registry.getMetricsAsJSON();
    case 'drain':
      return runtime.drain();
  }
}

/**
 * Opens the runtime. While the database cannot be reached, it tries again once a second, sixty times at most: the
 * service may have started a moment before the database went away, and its API goes on meanwhile.
 */
async function openWhenReachable(): Promise<Runtime> {
  for (let tries = 1; ; tries++) {
    try {
      return openRuntime({ config, metrics, tracing, logger, ledgers });
    } catch (error) {
      if (tries === OPENING_TRIES || !isEngineError(error, 'unavailable')) throw error;
      if (tries === 1) logger.warn({ error: serialiseError(error) }, 'worker_waits_for_database');
    }
    await pause(1_000);
  }
}
