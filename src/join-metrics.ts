import { AggregatorRegistry, type Registry } from 'prom-client';

/** Reads the metrics of another thread or process, as prom-client's registries exchange them. */
export type MetricsSource = () => Promise<object>;

/** Longest wait for the metrics of a thread or process (ms). */
const METRICS_TIMEOUT_MS = 2_000;

/** The metrics of a process with those of its threads and child processes, in Prometheus' text format. */
export interface JoinedMetrics {
  readonly text: string;
  /** False if a thread or process failed or did not answer within 2 s, so that its part is old or missing. */
  readonly isComplete: boolean;
}

/**
 * Creates a function that joins a process's own metrics with those of its threads and of the processes it started. If
 * one of them does not answer within 2 s, its last answer is used, since counters that fell and rose again would look
 * like that many new events. A source that has never answered adds nothing. Calls during a reading share the next one,
 * which begins after them, so that many calls at once cost two readings and none gets old numbers.
 * @param sources returns the current sources; a source must keep its object identity, by which its last answer is found
 */
export function createMetricsJoiner(
  own: Registry,
  sources: () => readonly MetricsSource[],
): () => Promise<JoinedMetrics> {
  const last = new WeakMap<MetricsSource, object>();
  return shareNext(async () => {
    const asked = sources();
    const answers = await Promise.all(asked.map((ask) => inTime(ask())));
    for (const [index, answer] of answers.entries()) if (answer !== undefined) last.set(asked[index]!, answer);
    const theirs = asked.map((ask) => last.get(ask) ?? []);
    return { text: await joinMetrics(own, theirs), isComplete: !answers.includes(undefined) };
  });
}

/** Makes a function of which one call runs at a time. All calls that arrive while it runs share the next run. */
function shareNext<T>(run: () => Promise<T>): () => Promise<T> {
  let present: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | undefined;
  return () => {
    if (next !== undefined) return next;
    next = present.then(() => {
      next = undefined;
      return run();
    });
    present = next.catch(() => {});
    return next;
  };
}

/**
 * Joins a process's own metrics with those that other threads or processes exported as JSON.
 * @returns Prometheus' text format
 */
export async function joinMetrics(own: Registry, theirs: readonly object[]): Promise<string> {
  const ours = (await own.getMetricsAsJSON()).map((metric) => ({
    ...metric,
    // prom-client leaves these out where it joins processes, as the start of a process; here there is one service.
    aggregator: metric.aggregator === 'omit' ? ('first' as const) : metric.aggregator,
  }));
  return AggregatorRegistry.aggregate([ours, ...theirs]).metrics();
}

/**
 * Waits for metrics, for at most 2 s.
 * @returns undefined if the other side does not answer in that time, or fails
 */
async function inTime(metrics: Promise<object>): Promise<object | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), METRICS_TIMEOUT_MS).unref();
  });
  const answered = await Promise.race([metrics.catch(() => undefined), timeout]);
  clearTimeout(timer);
  return answered;
}
