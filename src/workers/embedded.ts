import { Worker } from 'node:worker_threads';
import { AggregatorRegistry, type Registry } from 'prom-client';
import type { Config } from '../engine/config.ts';
import type { JobDispatcher, Logger } from '../engine/ports.ts';
import type { FromWorkerThread, ToWorkerThread, WorkerThreadData } from './thread.ts';

/** The worker thread of the embedded mode, as the process that owns it sees it. */
export interface EmbeddedWorker {
  readonly dispatcher: JobDispatcher;
  /** The process's own metrics joined with the thread's, in Prometheus' text format. */
  metricsText(own: Registry): Promise<string>;
  /** Finishes or hands back what is under way. */
  drain(): Promise<void>;
  /** Settles with the error if the thread dies: the process cannot do its work any more. */
  readonly died: Promise<Error>;
}

const HINT_EVERY_MS = 5;
const METRICS_TIMEOUT_MS = 2_000;

/** Starts the worker thread. CPU-bound steps run there, so that the event loop that serves requests stays free. */
export function startEmbeddedWorker(config: Config, logger: Logger): EmbeddedWorker {
  const thread = new Worker(new URL(`./thread${import.meta.filename.slice(-3)}`, import.meta.url), {
    workerData: { config } satisfies WorkerThreadData,
    name: 'cairn-worker',
  });
  const send = (message: ToWorkerThread) => thread.postMessage(message);
  const hints = createHintThrottle((path) => send({ kind: 'wake', path }));
  let draining = false;
  const metricsWaiting = new Map<number, (metrics: object) => void>();
  let metricsAsked = 0;
  const drained = Promise.withResolvers<void>();
  const died = Promise.withResolvers<Error>();

  thread.on('message', (message: FromWorkerThread) => {
    if (message.kind === 'metrics') metricsWaiting.get(message.id)?.(message.metrics);
    else drained.resolve();
  });
  thread.on('error', (error: Error) => died.resolve(error));
  thread.on('exit', () => {
    drained.resolve();
    for (const resolve of metricsWaiting.values()) resolve([]);
    if (!draining) died.resolve(new Error('the worker thread ended'));
  });

  return {
    dispatcher: {
      dispatch: hints,
      close: async () => {},
    },
    async metricsText(own) {
      const id = ++metricsAsked;
      const { promise, resolve } = Promise.withResolvers<object>();
      metricsWaiting.set(id, resolve);
      send({ kind: 'metrics', id });
      // A thread that is busy for so long is left out of this scrape.
      const timeout = setTimeout(() => resolve([]), METRICS_TIMEOUT_MS).unref();
      const theirs = await promise;
      clearTimeout(timeout);
      metricsWaiting.delete(id);
      return AggregatorRegistry.aggregate([await own.getMetricsAsJSON(), theirs]).metrics();
    },
    async drain() {
      draining = true;
      send({ kind: 'drain' });
      await drained.promise;
      await thread.terminate();
      logger.info({}, 'worker_drained');
    },
    died: died.promise,
  };
}

/** At most one hint a file in 5 ms, and always one after the last write: thousands of adds a second need few wake-ups. */
function createHintThrottle(send: (path: string) => void): (path: string) => void {
  const again = new Map<string, boolean>();
  const hint = (path: string) => {
    if (again.has(path)) {
      again.set(path, true);
      return;
    }
    send(path);
    again.set(path, false);
    setTimeout(() => {
      const missed = again.get(path);
      again.delete(path);
      if (missed) hint(path);
    }, HINT_EVERY_MS).unref();
  };
  return hint;
}
