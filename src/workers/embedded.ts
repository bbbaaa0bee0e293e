import type { Config, Logger } from '../engine/index.ts';
import type { BackgroundWork } from './background-work.ts';
import { startThreadedRuntime } from './threaded-runtime.ts';

/** Shortest time between two hints for one file (ms). */
const HINT_EVERY_MS = 5;

export interface EmbeddedOptions {
  readonly config: Config;
  readonly logger: Logger;
  /**
   * True where this is the only worker of the data folder, so that whatever is claimed when it starts is taken back.
   */
  readonly alone: boolean;
  /** Called for each thread that hung and was replaced. */
  readonly onHung?: () => void;
}

/** Starts a worker without queues, on a thread beside the API or in a worker process. */
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
 * Passes on at most one hint a file in 5 ms, and always one after the last write: thousands of adds a second need few
 * wake-ups.
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
