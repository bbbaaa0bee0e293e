import type { JobDispatcher } from '../engine/index.ts';
import type { MetricsSource } from '../join-metrics.ts';

/** Background work of a process (jobs and upkeep of the tenants' files), as the code that starts it sees it. */
export interface BackgroundWork {
  /**
   * Receives the engine's hints of new jobs and passes them to the worker. It is undefined where jobs come from
   * BullMQ's queues: the engine then dispatches to them itself.
   */
  readonly dispatcher: JobDispatcher | undefined;
  /** Reads the metrics of the worker thread, as prom-client's registries exchange them. */
  readonly metricsJson: MetricsSource;
  /** Takes no more jobs, finishes or hands back those that run, and closes everything. */
  drain(): Promise<void>;
  /**
   * Resolves with the error if the worker thread has ended, or hangs, and is not replaced: the process can no longer do
   * its work.
   */
  readonly died: Promise<Error>;
}
