import { Worker } from 'node:worker_threads';
import type { Config } from '../engine/config.ts';
import type { Logger } from '../engine/ports.ts';
import { joinMetrics, type BackgroundWork } from './background-work.ts';
import type { FromWorkerThread, ToWorkerThread, WorkerThreadData } from './thread.ts';

const HINT_EVERY_MS = 5;

/** Starts the worker thread. CPU-bound steps run there, so that the event loop that serves requests stays free. */
export function startEmbeddedWorker(config: Config, logger: Logger): BackgroundWork {
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
    metricsText(own) {
      const id = ++metricsAsked;
      const { promise, resolve } = Promise.withResolvers<object>();
      metricsWaiting.set(id, resolve);
      send({ kind: 'metrics', id });
      return joinMetrics(
        own,
        promise.finally(() => metricsWaiting.delete(id)),
      );
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
