import { collectDefaultMetrics, Gauge, type Registry } from 'prom-client';
import { SUM_AND_COUNT } from './series.ts';

/**
 * Metrics that prom-client collects of a process and Cairn does not export, because they say little or are many series,
 * such as one for each heap space or kind of handle.
 */
const LEFT_OUT = [
  'nodejs_heap_space_size_total_bytes',
  'nodejs_heap_space_size_used_bytes',
  'nodejs_heap_space_size_available_bytes',
  'nodejs_active_handles',
  'nodejs_active_requests',
  'nodejs_active_resources',
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
  'nodejs_eventloop_lag_min_seconds',
  'nodejs_eventloop_lag_mean_seconds',
  'nodejs_eventloop_lag_stddev_seconds',
  'nodejs_eventloop_lag_p50_seconds',
  'nodejs_eventloop_lag_p90_seconds',
  'nodejs_version_info',
  'process_cpu_user_seconds_total',
  'process_cpu_system_seconds_total',
  'process_virtual_memory_bytes',
  'process_heap_bytes',
];

/**
 * Prepares the metrics of the process itself: its version, CPU, memory, event loop and garbage collection. They appear
 * once the returned function is called with the version of Cairn. The function must be called once, in the main thread.
 */
export function createProcessMetrics(registry: Registry): (version: string) => void {
  const build = new Gauge({
    name: 'cairn_build_info',
    help: 'Always 1; the label is the version of Cairn that this process runs.',
    labelNames: ['version'],
    aggregator: 'first',
    registers: [registry],
  });
  return (version) => {
    collectDefaultMetrics({ register: registry, gcDurationBuckets: SUM_AND_COUNT });
    for (const name of LEFT_OUT) registry.removeSingleMetric(name);
    build.set({ version }, 1);
  };
}
