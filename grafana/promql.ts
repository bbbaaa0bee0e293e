/** The few shapes that nearly all queries of the dashboards have. */

/** Of the processes that the dashboard's variable picks. What all processes share is asked for without it. */
export function of(metric: string, matchers = ''): string {
  return `${metric}{${['instance=~"$instance"', matchers].filter(Boolean).join(',')}}`;
}

/** Events a second, summed over processes. @param by labels, comma-separated; '' for none */
export function perSecond(metric: string, by = '', matchers = ''): string {
  return `sum${byLabels(by)} (rate(${of(metric, matchers)}[$__rate_interval]))`;
}

/** The same a minute, for what should be rare. */
export function perMinute(metric: string, by = '', matchers = ''): string {
  return `60 * ${perSecond(metric, by, matchers)}`;
}

/** @param q from 0 to 1 */
export function quantile(q: number, histogram: string, by = '', matchers = ''): string {
  return `histogram_quantile(${q}, ${perSecond(`${histogram}_bucket`, ['le', by].filter(Boolean).join(', '), matchers)})`;
}

/** Mean of what a histogram observed. */
export function mean(histogram: string, by = '', matchers = ''): string {
  return `${perSecond(`${histogram}_sum`, by, matchers)} / ${perSecond(`${histogram}_count`, by, matchers)}`;
}

/** The p50, p95 and p99 of a histogram without labels, as three lines. */
export function quantiles(histogram: string, matchers = ''): { expr: string; legend: string }[] {
  return [0.5, 0.95, 0.99].map((q) => ({ expr: quantile(q, histogram, '', matchers), legend: `p${q * 100}` }));
}

function byLabels(by: string): string {
  return by === '' ? '' : ` by (${by})`;
}
