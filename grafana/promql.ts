/** Building blocks for the PromQL queries of the dashboards. */
/**
 * Selects a metric of the processes that the dashboard's variable picks; metrics that all processes share do not use
 * it.
 */
export function of(metric: string, matchers = ''): string {
  return `${metric}{${['instance=~"$instance"', matchers].filter(Boolean).join(',')}}`;
}

/** Events a second, summed over processes. `by` holds labels, separated by commas; '' for none. */
export function perSecond(metric: string, by = '', matchers = ''): string {
  return `sum${byLabels(by)} (rate(${of(metric, matchers)}[$__rate_interval]))`;
}

/** Events a minute, summed over processes, for rare events. */
export function perMinute(metric: string, by = '', matchers = ''): string {
  return `60 * ${perSecond(metric, by, matchers)}`;
}

/** A quantile of a histogram; `q` is from 0 to 1. */
export function quantile(q: number, histogram: string, by = '', matchers = ''): string {
  const labels = ['le', by].filter(Boolean).join(', ');
  return `histogram_quantile(${q}, ${perSecond(`${histogram}_bucket`, labels, matchers)})`;
}

/** Mean of a histogram's observations. */
export function mean(histogram: string, by = '', matchers = ''): string {
  return `${perSecond(`${histogram}_sum`, by, matchers)} / ${perSecond(`${histogram}_count`, by, matchers)}`;
}

/** Queries for the p50, p95 and p99 of a histogram without labels. */
export function quantiles(histogram: string, matchers = ''): { expr: string; legend: string }[] {
  return [0.5, 0.95, 0.99].map((q) => ({ expr: quantile(q, histogram, '', matchers), legend: `p${q * 100}` }));
}

function byLabels(by: string): string {
  return by === '' ? '' : ` by (${by})`;
}
