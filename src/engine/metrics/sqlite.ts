import { Counter, Histogram, type Registry } from 'prom-client';
import type { BusyTotals } from '../store/open-store.ts';
import type { MetricSources } from './metric-sources.ts';
import { SUM_AND_COUNT, started } from './series.ts';

/** Makes the metrics of SQLite: commits, waits for locked files, and checkpoints. */
export function createSqliteMetrics(registers: Registry[], sources: MetricSources) {
  const busyTotal = (field: keyof BusyTotals) => sources.busy.reduce((sum, read) => sum + read()[field], 0);
  return {
    commits: new Histogram({
      name: 'cairn_commit_duration_seconds',
      help: 'Time of one group commit of the writer, fsync included.',
      buckets: [0.001, 0.005, 0.025, 0.1, 0.5],
      registers,
    }),
    commitRequests: new Histogram({
      name: 'cairn_commit_requests',
      help: 'Requests that shared one group commit.',
      buckets: SUM_AND_COUNT,
      registers,
    }),
    busyRetries: new Counter({
      name: 'cairn_sqlite_busy_retries_total',
      help:
        'Attempts to use a file that another connection had locked, half a millisecond apart, in the threads of this ' +
        'process.',
      registers,
      collect() {
        this.reset();
        this.inc(busyTotal('retries'));
      },
    }),
    busyWaits: new Counter({
      name: 'cairn_sqlite_busy_wait_seconds_total',
      help: 'Time that threads of this process waited for files that another connection had locked.',
      registers,
      collect() {
        this.reset();
        this.inc(busyTotal('waitedMs') / 1000);
      },
    }),
    busyFailures: new Counter({
      name: 'cairn_sqlite_busy_timeouts_total',
      help: 'Times that a file was still locked after 5 s, so that the operation failed.',
      registers,
      collect() {
        this.reset();
        this.inc(busyTotal('timeouts'));
      },
    }),
    checkpoints: started(
      new Counter({
        name: 'cairn_checkpoints_total',
        help:
          'Checkpoints of write-ahead logs, by outcome: complete, partial (a reader still needs a part of the log), ' +
          'busy.',
        labelNames: ['outcome'],
        registers,
      }),
      ['complete', 'partial', 'busy'].map((outcome) => ({ outcome })),
    ),
    checkpointDurations: new Histogram({
      name: 'cairn_checkpoint_duration_seconds',
      help: 'Time of a checkpoint.',
      buckets: [0.005, 0.025, 0.1, 0.5, 2.5],
      registers,
    }),
  };
}
