import type { JobDispatcher } from '../engine/index.ts';
import type { MetricsSource } from '../join-metrics.ts';

/** The work that a process does beside serving requests, as the process sees it. */
export interface BackgroundWork {
  /**
   * Passes hints of new work from the engine on to the work of this process; undefined to let the engine tell the
   * queues itself.
   */
  readonly dispatcher: JobDispatcher | undefined;
  /** Reads the metrics of the thread that works, as prom-client's registries exchange them. */
  readonly metricsJson: MetricsSource;
  /** Takes no more work, and finishes or hands back what is under way. */
  drain(): Promise<void>;
  /** Resolves with the error if the thread is gone for good: the process cannot do its work any more. */
  readonly died: Promise<Error>;
}
