import { Worker } from 'node:worker_threads';
import { type Config, EngineError, type Logger, reviveError } from '../engine/index.ts';
import { createHeart, endHungThread, stillMostMs, watchHeart } from './heart.ts';
import type { ReadsLedgers, Runtime } from './runtime.ts';
import type { ThreadData, ThreadReply, ThreadRequest, ThreadTask } from './thread.ts';

/** A runtime on a thread, as the process that owns it sees it. */
export interface ThreadedRuntime extends Runtime {
  /** Reads the thread's metrics, as prom-client's registries exchange them. */
  metricsJson(): Promise<object>;
  /** Resolves with the error if the thread is gone for good: the process cannot do its work any more. */
  readonly died: Promise<Error>;
}

export interface ThreadedRuntimeOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly ledgers: ReadsLedgers | null;
  /** Called for each thread that hung. */
  readonly onHung?: (() => void) | undefined;
}

/**
 * Starts a runtime on a thread. A thread that hangs is ended. One that reads the ledgers is replaced: the next takes
 * its jobs back as those of a worker that died, and whatever else the process does goes on. A thread that is fed by
 * queues is not replaced, and its process ends with it.
 */
export function startThreadedRuntime({ config, logger, ledgers, onHung }: ThreadedRuntimeOptions): ThreadedRuntime {
  const isReplaced = ledgers !== null;
  const requests = createRequests();
  const died = Promise.withResolvers<Error>();
  let draining = false;
  let thread = start();

  function start(): Worker {
    const heart = createHeart();
    const started = new Worker(new URL(`./thread${import.meta.filename.slice(-3)}`, import.meta.url), {
      workerData: { config, heart, ledgers } satisfies ThreadData,
      name: 'cairn-worker',
    });
    let hung = false;
    const stopWatching = watchHeart(heart, stillMostMs(config), () => {
      logger.error({ afterMs: stillMostMs(config) }, isReplaced ? 'worker_hung' : 'executor_hung');
      hung = true;
      onHung?.();
      requests.abandon();
      if (!isReplaced) died.resolve(new Error('the worker thread hung'));
      void endHungThread(started);
    });
    started.on('message', requests.settle);
    started.on('error', (error: Error) => died.resolve(error));
    started.on('exit', () => {
      stopWatching();
      requests.abandon();
      if (draining) return;
      if (hung && isReplaced) thread = start();
      else died.resolve(new Error('the worker thread ended'));
    });
    requests.sendTo(started);
    return started;
  }

  return {
    run: (work) => requests.ask({ kind: 'run', work }),
    // Nobody waits for the answer: if the thread has ended, the next one looks for work when it starts.
    wake: (path) => void requests.ask({ kind: 'wake', path }).catch(() => {}),
    metricsJson: () => requests.ask({ kind: 'metrics' }),
    died: died.promise,
    async drain() {
      draining = true;
      // A thread that ends meanwhile has nothing left to drain.
      await requests.ask({ kind: 'drain' }).catch(() => {});
      await thread.terminate();
    },
  };
}

/** Keeps the requests to a thread that have not been answered. */
function createRequests() {
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  let thread: Worker | undefined;
  let asked = 0;
  const hasEnded = () => new EngineError('unavailable', 'the worker thread ended');
  return {
    sendTo(next: Worker): void {
      thread = next;
    },
    /** Sends a task and waits for its answer. @throws EngineError `unavailable` if the thread ends before it answers */
    ask<T>(task: ThreadTask): Promise<T> {
      return new Promise<T>((resolve, reject) => {
        if (thread === undefined) return reject(hasEnded());
        const id = ++asked;
        waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
        thread.postMessage({ id, task } satisfies ThreadRequest);
      });
    },
    settle(reply: ThreadReply): void {
      const request = waiting.get(reply.id);
      waiting.delete(reply.id);
      if (reply.ok) request?.resolve(reply.value);
      else request?.reject(reviveError(reply.error));
    },
    /** Fails all requests, as the thread answers nothing any more. */
    abandon(): void {
      thread = undefined;
      for (const { reject } of waiting.values()) reject(hasEnded());
      waiting.clear();
    },
  };
}
