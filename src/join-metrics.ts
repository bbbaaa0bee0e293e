import { AggregatorRegistry, type Registry } from 'prom-client';

/** Reads the metrics of another thread or process, as prom-client's registries exchange them. */
export type MetricsSource = () => Promise<object>;

/** Longest wait for the metrics of a thread or process (ms). */
const METRICS_TIMEOUT_MS = 2_000;

/** The metrics of a process in Prometheus' text format. */
export interface JoinedMetrics {
  readonly text: string;
  /** False while a thread or process does not answer. */
  readonly isComplete: boolean;
}

/**
 * Creates a function that joins a process's own metrics with those of its threads and of the processes it started.
 * While one of them does not answer within 2 s, its last answer stands in: counters that fell and rose again would look
 * like as many events at once.
 * @param sources returns the sources of the moment; a source keeps its identity, by which its last answer is known
 */
export function createMetricsJoiner(
  own: Registry,
  sources: () => readonly MetricsSource[],
): () => Promise<JoinedMetrics> {
  const last = new WeakMap<MetricsSource, object>();
  return async () => {
    const asked = sources();
    const answers = await Promise.all(asked.map((ask) => inTime(ask())));
    for (const [index, answer] of answers.entries()) if (answer !== undefined) last.set(asked[index]!, answer);
    const theirs = asked.map((ask) => last.get(ask) ?? []);
    return { text: await joinMetrics(own, theirs), isComplete: !answers.includes(undefined) };
  };
}

/** Joins a process's own metrics with others that prom-client exchanged. @returns Prometheus' text format */
export async function joinMetrics(own: Registry, theirs: readonly object[]): Promise<string> {
  const ours = (await own.getMetricsAsJSON()).map((metric) => ({
    ...metric,
    // prom-client leaves these out where it joins processes, as the start of a process; here there is one service.
    aggregator: metric.aggregator === 'omit' ? ('first' as const) : metric.aggregator,
  }));
  return AggregatorRegistry.aggregate([ours, ...theirs]).metrics();
}

/** Waits for metrics, 2 s at most. @returns undefined if the other side is busy for longer, or gone */
async function inTime(metrics: Promise<object>): Promise<object | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), METRICS_TIMEOUT_MS).unref();
  });
  const answered = await Promise.race([metrics.catch(() => undefined), timeout]);
  clearTimeout(timer);
  return answered;
}
