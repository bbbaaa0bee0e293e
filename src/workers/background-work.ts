import { AggregatorRegistry, type Registry } from 'prom-client';
import type { JobDispatcher } from '../engine/index.ts';

/** The work that a process does beside serving requests, as the process sees it. */
export interface BackgroundWork {
  /**
   * Passes hints of new work from the engine on to the work of this process; undefined to let the engine tell the
   * queues itself.
   */
  readonly dispatcher: JobDispatcher | undefined;
  /** Reads the metrics of the thread that works, as prom-client's registries exchange them. */
  metricsJson(): Promise<object>;
  /** Takes no more work, and finishes or hands back what is under way. */
  drain(): Promise<void>;
  /** Resolves with the error if the thread is gone for good: the process cannot do its work any more. */
  readonly died: Promise<Error>;
}

/** Longest wait for the metrics of the thread that works (ms). */
const METRICS_TIMEOUT_MS = 2_000;

/** The metrics of a process in Prometheus' text format. */
export interface JoinedMetrics {
  readonly text: string;
  /** False while the thread that works does not answer. */
  readonly isComplete: boolean;
}

/**
 * Creates a function that joins a process's own metrics with those of the thread that works. While the thread does not
 * answer within 2 s, its last answer stands in: counters that fell and rose again would look like as many events at
 * once.
 * @param ask reads the thread's metrics, as `BackgroundWork.metricsJson`
 */
export function createMetricsJoiner(own: Registry, ask: () => Promise<object>): () => Promise<JoinedMetrics> {
  let last: object = [];
  return async () => {
    const answered = await inTime(ask());
    last = answered ?? last;
    return { text: await joinMetrics(own, last), isComplete: answered !== undefined };
  };
}

/** Joins a process's own metrics with others that prom-client exchanged. @returns Prometheus' text format */
export async function joinMetrics(own: Registry, theirs: object): Promise<string> {
  const ours = (await own.getMetricsAsJSON()).map((metric) => ({
    ...metric,
    // prom-client leaves these out where it joins processes, as the start of a process; here there is one process.
    aggregator: metric.aggregator === 'omit' ? ('first' as const) : metric.aggregator,
  }));
  return AggregatorRegistry.aggregate([ours, theirs]).metrics();
}

/** Waits for metrics, 2 s at most. @returns undefined if the thread is busy for longer, or gone */
async function inTime(metrics: Promise<object>): Promise<object | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), METRICS_TIMEOUT_MS).unref();
  });
  const answered = await Promise.race([metrics.catch(() => undefined), timeout]);
  clearTimeout(timer);
  return answered;
}
