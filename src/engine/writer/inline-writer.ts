import type { Config } from '../config.ts';
import type { Metrics } from '../metrics.ts';
import type { Clock } from '../ports.ts';
import type { TenantPool } from '../tenant-file/tenant-pool.ts';
import type { Tracing } from '../tracing.ts';
import { createGroupRunner } from './group-runner.ts';
import { createGroupingWriter } from './grouping-writer.ts';
import type { Writer } from './writer.ts';

/**
 * Creates a writer that commits on the calling thread: for the command line, for workers and for tests with a clock of
 * their own. Its `close` closes the pool.
 */
export function createInlineWriter(options: {
  pool: TenantPool;
  config: Config;
  clock: Clock;
  metrics: Metrics;
  tracing?: Tracing | null;
}): Writer {
  const commit = createGroupRunner(options);
  return createGroupingWriter(
    {
      commit: async (groups) => groups.map(commit),
      evict: async (path) => options.pool.evict(path),
      close: async () => options.pool.close(),
    },
    options.metrics,
    options.tracing,
  );
}
