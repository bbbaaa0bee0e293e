import { Counter, Gauge, type Registry } from 'prom-client';
import type { MetricSources } from './metric-sources.ts';

/** Makes the metrics of schedules. */
export function createScheduleMetrics(registers: Registry[], sources: MetricSources) {
  const scheduleRuns = new Counter({
    name: 'cairn_schedule_runs_total',
    help: 'Runs of the schedules in this process, by schedule and outcome (ok, failed).',
    labelNames: ['schedule', 'outcome'],
    registers,
  });
  // From 0 on, so that the first failure is seen as a rise.
  scheduleRuns.inc({ schedule: 'backup', outcome: 'failed' }, 0);
  return {
    scheduleRuns,
    scheduleLastRun: new Gauge({
      name: 'cairn_schedule_last_run_timestamp_seconds',
      help:
        'Unix time at which each schedule last began a run that came to its end, in the file where that is longest ' +
        'ago. In a new file the first period begins when it is made.',
      labelNames: ['schedule'],
      registers,
      async collect() {
        const census = await sources.readCensus();
        for (const { schedule, at } of census?.schedules ?? []) this.set({ schedule }, at / 1000);
      },
    }),
  };
}
