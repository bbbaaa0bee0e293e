import { AggregatorRegistry, type Registry } from 'prom-client';
import type { JobDispatcher } from '../engine/ports.ts';

/** The work that a process does beside serving requests, as the process sees it. */
export interface BackgroundWork {
  /** Whom the engine tells about new work; undefined to let it tell the queues itself. */
  readonly dispatcher: JobDispatcher | undefined;
  /** The process's own metrics joined with those of the thread that works, in Prometheus' text format. */
  metricsText(own: Registry): Promise<string>;
  /** Finishes or hands back what is under way. */
  drain(): Promise<void>;
  /** Settles with the error if the thread dies: the process cannot do its work any more. */
  readonly died: Promise<Error>;
}

const METRICS_TIMEOUT_MS = 2_000;

/** A thread that is busy for so long is left out of this scrape. */
export async function joinMetrics(own: Registry, theirs: Promise<object>): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<object>((resolve) => {
    timer = setTimeout(() => resolve([]), METRICS_TIMEOUT_MS).unref();
  });
  const answered = await Promise.race([theirs.catch(() => []), timeout]);
  clearTimeout(timer);
  return AggregatorRegistry.aggregate([await own.getMetricsAsJSON(), answered]).metrics();
}
