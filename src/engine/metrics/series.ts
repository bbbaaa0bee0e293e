import { Gauge, type Counter, type LabelValues, type Registry } from 'prom-client';
import type { Census } from '../census.ts';
import type { MetricSources } from './metric-sources.ts';

/** No buckets: for a histogram that only needs its sum and count, because nobody asks for more than the mean. */
export const SUM_AND_COUNT: number[] = [];

/**
 * Begins series of a counter at 0, so that the first event shows as a step and not as a new series.
 * @param labels values of all labels, one entry for each series
 * @returns the counter itself
 */
export function started<T extends string>(counter: Counter<T>, labels: readonly LabelValues<T>[]): Counter<T> {
  for (const values of labels) counter.inc(values, 0);
  return counter;
}

/** Hides a gauge without labels until it is set, and returns it. It would begin at 0, as if that had been measured. */
export function shownOnceSet(gauge: Gauge): Gauge {
  gauge.remove();
  return gauge;
}

/** Makes a gauge without labels that shows one number of the census, by `read`, and nothing without a census. */
export function censusGauge({
  name,
  help,
  registers,
  sources,
  read,
}: {
  readonly name: string;
  readonly help: string;
  readonly registers: Registry[];
  readonly sources: MetricSources;
  readonly read: (census: Census) => number;
}): Gauge {
  return shownOnceSet(
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        const census = await sources.readCensus();
        if (census !== undefined) this.set(read(census));
      },
    }),
  );
}
