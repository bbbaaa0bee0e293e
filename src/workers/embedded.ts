import { Worker } from 'node:worker_threads';
import type { Config } from '../engine/config.ts';
import type { Logger } from '../engine/ports.ts';
import type { BackgroundWork } from './background-work.ts';
import { createHeart, endHungThread, stillMostMs, watchHeart } from './heart.ts';
import type { FromWorkerThread, ToWorkerThread, WorkerThreadData } from './thread.ts';

const HINT_EVERY_MS = 5;

export interface EmbeddedOptions {
  readonly config: Config;
  readonly logger: Logger;
  /** True where this is the only worker of the data folder. */
  readonly alone: boolean;
  /** Told of each thread that hung and was replaced. */
  readonly onHung?: () => void;
}

/**
 * Starts the worker thread. CPU-bound steps run there, so that the event loop that serves requests stays free. A thread that hangs is
 * ended and replaced: the next one takes its jobs back as those of a worker that died, and what the API does goes on.
 */
export function startEmbeddedWorker({ config, logger, alone, onHung }: EmbeddedOptions): BackgroundWork {
  const send = (message: ToWorkerThread) => thread.postMessage(message);
  const hints = createHintThrottle((path) => send({ kind: 'wake', path }));
  let draining = false;
  const metricsWaiting = new Map<number, (metrics: object) => void>();
  let metricsAsked = 0;
  const drained = Promise.withResolvers<void>();
  const died = Promise.withResolvers<Error>();
  let thread = start();

  function start(): Worker {
    const heart = createHeart();
    const started = new Worker(new URL(`./thread${import.meta.filename.slice(-3)}`, import.meta.url), {
      workerData: { config, heart, alone } satisfies WorkerThreadData,
      name: 'cairn-worker',
    });
    let hung = false;
    const stopWatching = watchHeart(heart, stillMostMs(config), () => {
      logger.error({ afterMs: stillMostMs(config) }, 'worker_hung');
      hung = true;
      onHung?.();
      void endHungThread(started);
    });
    started.on('message', (message: FromWorkerThread) => {
      if (message.kind === 'metrics') metricsWaiting.get(message.id)?.(message.metrics);
      else drained.resolve();
    });
    started.on('error', (error: Error) => died.resolve(error));
    started.on('exit', () => {
      stopWatching();
      for (const resolve of metricsWaiting.values()) resolve([]);
      if (draining) drained.resolve();
      else if (hung) thread = start();
      else died.resolve(new Error('the worker thread ended'));
    });
    return started;
  }

  return {
    dispatcher: {
      dispatch: hints,
      close: async () => {},
    },
    metricsJson() {
      const id = ++metricsAsked;
      const { promise, resolve } = Promise.withResolvers<object>();
      metricsWaiting.set(id, resolve);
      send({ kind: 'metrics', id });
      return promise.finally(() => metricsWaiting.delete(id));
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
