import { Worker } from 'node:worker_threads';
import { EngineError, reviveError } from '../engine/errors.ts';
import type { Executor } from './executor.ts';
import type { ExecutorReply, ExecutorRequest, ExecutorTask, ExecutorThreadData } from './executor-thread.ts';

/** An executor on a thread, as the process that owns it sees it. */
export interface ThreadedExecutor extends Executor {
  /** The thread's metrics, as prom-client's registries exchange them. */
  metricsJson(): Promise<object>;
  /** Settles with the error if the thread dies: the process cannot do its work any more. */
  readonly died: Promise<Error>;
}

export function startThreadedExecutor({ config, linksAtOnce }: ExecutorThreadData): ThreadedExecutor {
  const thread = new Worker(new URL(`./executor-thread${import.meta.filename.slice(-3)}`, import.meta.url), {
    workerData: { config, linksAtOnce } satisfies ExecutorThreadData,
    name: 'cairn-executor',
  });
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  const died = Promise.withResolvers<Error>();
  let asked = 0;
  let draining = false;
  const end = (error: Error) => {
    for (const { reject } of waiting.values()) reject(new EngineError('unavailable', 'the executor thread ended'));
    waiting.clear();
    if (!draining) died.resolve(error);
  };
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
      const id = ++asked;
      waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      thread.postMessage({ id, task } satisfies ExecutorRequest);
    });

  return {
    runStep: (step, payload) => ask({ kind: 'step', step, payload }),
    runSchedule: (schedule) => ask({ kind: 'schedule', schedule }),
    metricsJson: () => ask({ kind: 'metrics' }),
    died: died.promise,
    async drain() {
      draining = true;
      await ask({ kind: 'drain' });
      await thread.terminate();
    },
  };
}
