import { Worker } from 'node:worker_threads';
import type { Config } from '../engine/config.ts';
import { EngineError, reviveError } from '../engine/errors.ts';
import type { Logger } from '../engine/ports.ts';
import type { Executor } from './executor.ts';
import type { ExecutorReply, ExecutorRequest, ExecutorTask, ExecutorThreadData } from './executor-thread.ts';
import { createHeart, endHungThread, stillMostMs, watchHeart } from './heart.ts';

/** An executor on a thread, as the process that owns it sees it. */
export interface ThreadedExecutor extends Executor {
  /** The thread's metrics, as prom-client's registries exchange them. */
  metricsJson(): Promise<object>;
  /** Settles with the error if the thread dies or hangs: the process cannot do its work any more. */
  readonly died: Promise<Error>;
}

export interface ThreadedExecutorOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly linksAtOnce: boolean;
}

export function startThreadedExecutor({ config, logger, linksAtOnce }: ThreadedExecutorOptions): ThreadedExecutor {
  const heart = createHeart();
  const thread = new Worker(new URL(`./executor-thread${import.meta.filename.slice(-3)}`, import.meta.url), {
    workerData: { config, linksAtOnce, heart } satisfies ExecutorThreadData,
    name: 'cairn-executor',
  });
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  const died = Promise.withResolvers<Error>();
  let asked = 0;
  let draining = false;
  let ended = false;
  const end = (error: Error) => {
    ended = true;
    stopWatching();
    for (const { reject } of waiting.values()) reject(new EngineError('unavailable', 'the executor thread ended'));
    waiting.clear();
    if (!draining) died.resolve(error);
  };
  const stopWatching = watchHeart(heart, stillMostMs(config), () => {
    logger.error({ afterMs: stillMostMs(config) }, 'executor_hung');
    end(new Error('the executor thread hung'));
    void endHungThread(thread);
  });
  thread.on('message', (reply: ExecutorReply) => {
    const request = waiting.get(reply.id);
    waiting.delete(reply.id);
    if (reply.ok) request?.resolve(reply.value);
    else request?.reject(reviveError(reply.error));
  });
  thread.on('error', end);
  thread.on('exit', () => end(new Error('the executor thread ended')));

  const ask = <T>(task: ExecutorTask): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      if (ended) return reject(new EngineError('unavailable', 'the executor thread ended'));
      const id = ++asked;
      waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      thread.postMessage({ id, task } satisfies ExecutorRequest);
    });

  return {
    runStep: (step, payload) => ask({ kind: 'step', step, payload }),
    maintain: () => ask({ kind: 'maintain' }),
    metricsJson: () => ask({ kind: 'metrics' }),
    died: died.promise,
    async drain() {
      draining = true;
      if (ended) return;
      await ask({ kind: 'drain' });
      await thread.terminate();
    },
  };
}
