import { Worker } from 'node:worker_threads';
import { type Config, EngineError, type Logger, reviveError } from '../engine/index.ts';
import { createHeart, endHungThread, hasBeaten, hungAfterMs, watchHeart } from './heart.ts';
import type { ReadsLedgers, Runtime } from './runtime.ts';
import type { ThreadData, ThreadReply, ThreadRequest, ThreadTask } from './thread.ts';

/** A runtime on a thread of its own, as seen from the thread that started it. Its `run` never calls `onClaimed`. */
export interface ThreadedRuntime extends Runtime {
  /**
   * Reads the metrics of the thread, as prom-client's registries exchange them; a thread that waits for the database
   * answers later. Rejects with EngineError `unavailable` if the thread ends or hangs.
   */
  metricsJson(): Promise<object>;
  /**
   * Resolves with the error if the thread has ended, or hangs, and is not replaced: the process can no longer do its
   * work.
   */
  readonly died: Promise<Error>;
}

export interface ThreadedRuntimeOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly ledgers: ReadsLedgers | null;
  /** Called each time the thread hangs. */
  readonly onHung?: (() => void) | undefined;
}

/**
 * Starts a runtime on a thread of its own. A thread that hangs is ended. If it reads the ledgers, a new thread replaces
 * it, and its jobs become due again as those of a worker that died. If it is fed by queues it is not replaced, and
 * `died` resolves. A thread that ends by an error is not replaced in either case.
 */
export function startThreadedRuntime({ config, logger, ledgers, onHung }: ThreadedRuntimeOptions): ThreadedRuntime {
  const isReplaced = ledgers !== null;
  const requests = createRequests();
  const died = Promise.withResolvers<Error>();
  let draining = false;
  let heart = createHeart();
  let thread = start();

  function start(): Worker {
    const started = new Worker(new URL(`./thread${import.meta.filename.slice(-3)}`, import.meta.url), {
      workerData: { config, heart, ledgers } satisfies ThreadData,
      name: 'cairn-worker',
    });
    let hung = false;
    const stopWatching = watchHeart(heart, hungAfterMs(config), () => {
      logger.error({ afterMs: hungAfterMs(config) }, isReplaced ? 'worker_hung' : 'executor_hung');
      hung = true;
      onHung?.();
      requests.abandon();
      if (!isReplaced) died.resolve(new Error('the worker thread hung'));
      void endHungThread(started, heart);
    });
    started.on('message', requests.settle);
    started.on('error', (error: Error) => died.resolve(error));
    started.on('exit', () => {
      stopWatching();
      requests.abandon();
      if (draining) return;
      if (hung && isReplaced) {
        heart = createHeart();
        thread = start();
      } else died.resolve(new Error('the worker thread ended'));
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
      // A thread that ends meanwhile has nothing left to drain, and one that still waits for the database has no jobs.
      if (hasBeaten(heart)) await requests.ask({ kind: 'drain' }).catch(() => {});
      await thread.terminate();
    },
  };
}

/** Keeps the requests to a thread that have not been answered yet. */
function createRequests() {
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  let thread: Worker | undefined;
  let asked = 0;
  const hasEnded = () => new EngineError('unavailable', 'the worker thread ended');
  return {
    sendTo(next: Worker): void {
      thread = next;
    },
    /**
     * Sends a task to the thread and waits for its answer.
     * @throws the error that the task threw in the thread; EngineError `unavailable` if the thread ends or hangs before
     *   it answers, or if there is none now
     */
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
    /**
     * Rejects all open requests, as the thread will not answer any more. Later requests are rejected until `sendTo`
     * names a new thread.
     */
    abandon(): void {
      thread = undefined;
      for (const { reject } of waiting.values()) reject(hasEnded());
      waiting.clear();
    },
  };
}
