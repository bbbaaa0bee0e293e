import { Gauge, type Counter, type LabelValues, type Registry } from 'prom-client';
import type { Census } from '../census.ts';
import type { MetricSources } from './metric-sources.ts';

/** No buckets, for a histogram of which only the sum and the count are needed. */
export const SUM_AND_COUNT: number[] = [];

/**
 * Starts series of a counter at 0, so that the first event appears as a rise and not as a new series.
 * @param labels values of all labels, one entry for each series
 * @returns the counter itself
 */
export function started<T extends string>(counter: Counter<T>, labels: readonly LabelValues<T>[]): Counter<T> {
  for (const values of labels) counter.inc(values, 0);
  return counter;
}

/**
 * Removes the series of a gauge without labels until the gauge is set, and returns the gauge. Otherwise the series
 * would begin at 0, as if 0 had been measured.
 */
export function shownOnceSet(gauge: Gauge): Gauge {
  gauge.remove();
  return gauge;
}

/**
 * Makes a gauge without labels that exports one number of the census, chosen by `read`. It has no series before the
 * first census.
 */
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
