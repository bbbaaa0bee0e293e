import type { Config, Logger } from '../engine/index.ts';
import type { BackgroundWork } from './background-work.ts';
import { startThreadedRuntime } from './threaded-runtime.ts';

/** Shortest time between two hints (messages to the worker thread) of new jobs in one tenant's file, ms. */
const HINT_EVERY_MS = 5;

export interface EmbeddedOptions {
  readonly config: Config;
  readonly logger: Logger;
  /**
   * True if this is the only worker of the data folder. Jobs that are claimed when it starts then belong to a worker
   * that died, so all of them become due again. If it is false, only claimed jobs whose lease has ended do.
   */
  readonly alone: boolean;
  /** Called each time the worker thread hangs and is replaced. */
  readonly onHung?: () => void;
}

/**
 * Starts a worker thread that finds its jobs in the ledgers of the tenants' files, without queues. It may belong to an
 * API process or to a worker process.
 */
export function startEmbeddedWorker({ config, logger, alone, onHung }: EmbeddedOptions): BackgroundWork {
  const runtime = startThreadedRuntime({ config, logger, ledgers: { alone }, onHung });
  return {
    dispatcher: {
      dispatch: createHintThrottle(runtime.wake),
      close: async () => {},
    },
    metricsJson: runtime.metricsJson,
    died: runtime.died,
    async drain() {
      await runtime.drain();
      logger.info({}, 'worker_drained');
    },
  };
}

/**
 * Limits hints of new jobs to one for each file in 5 ms, since thousands of adds a second need few wake-ups. If hints
 * come within the 5 ms, one is sent at their end, so the last write is always followed by a hint.
 */
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
