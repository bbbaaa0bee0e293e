import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { MetricSources } from './metric-sources.ts';
import { started } from './series.ts';

/** Makes the metrics of unfinished jobs in the ledgers, as the census counts them. */
export function createLedgerMetrics(registers: Registry[], sources: MetricSources) {
  return {
    jobs: new Gauge({
      name: 'cairn_jobs',
      help:
        'Jobs in the ledgers of all tenants that have not succeeded yet, by step and state: queued, active, failed ' +
        '(waits for its next attempt), dead.',
      labelNames: ['step', 'state'],
      registers,
      async collect() {
        const census = await sources.readCensus();
        for (const { step, state, jobs } of census?.jobs ?? []) this.set({ step, state }, jobs);
      },
    }),
    oldestJob: new Gauge({
      name: 'cairn_jobs_oldest_age_seconds',
      help: 'Age of the oldest unfinished job, by step; 0 when none waits.',
      labelNames: ['step'],
      registers,
      async collect() {
        const census = await sources.readCensus();
        for (const { step, ageMs } of census?.oldest ?? []) this.set({ step }, ageMs / 1000);
      },
    }),
  };
}

/** Makes the metrics of the work that workers do. */
export function createJobMetrics(registers: Registry[]) {
  return {
    steps: new Histogram({
      name: 'cairn_step_duration_seconds',
      help: 'Time of a batch of one step in a worker, by step and outcome (ok, failed).',
      labelNames: ['step', 'outcome'],
      buckets: [0.25, 5],
      registers,
    }),
    finishedJobs: started(
      new Counter({
        name: 'cairn_jobs_finished_total',
        help: 'Jobs that ended, by how: done, dead, cancelled.',
        labelNames: ['state'],
        registers,
      }),
      ['done', 'dead', 'cancelled'].map((state) => ({ state })),
    ),
    failedAttempts: new Counter({
      name: 'cairn_job_failures_total',
      help:
        'Attempts of jobs that failed and are counted, by step and error code. A job that waits for a provider or ' +
        'for disk space is not counted.',
      labelNames: ['step', 'code'],
      registers,
    }),
    workPauses: new Counter({
      name: 'cairn_work_pauses_total',
      help:
        'Times that a worker postponed its work, by the error code of the reason: the provider (unavailable, ' +
        'rate_limited) or the disk (storage_full).',
      labelNames: ['code'],
      registers,
    }),
    recoveredJobs: started(
      new Counter({
        name: 'cairn_jobs_recovered_total',
        help: 'Jobs taken back from workers that did not respond, by outcome: requeued, or dead after three crashes.',
        labelNames: ['outcome'],
        registers,
      }),
      ['requeued', 'dead'].map((outcome) => ({ outcome })),
    ),
    hungThreads: new Counter({
      name: 'cairn_worker_hangs_total',
      help: 'Worker threads that did not return to their event loop, so that they were ended and replaced.',
      registers,
    }),
  };
}

/**
 * Counts jobs that were taken back from workers that no longer respond: `requeued` is the number of jobs that wait
 * again; `dead` is the number of jobs that were given up, which also count as finished.
 */
export function countRecovery(metrics: RecoveryMetrics, { requeued, dead }: { requeued: number; dead: number }): void {
  metrics.recoveredJobs.inc({ outcome: 'requeued' }, requeued);
  metrics.recoveredJobs.inc({ outcome: 'dead' }, dead);
  metrics.finishedJobs.inc({ state: 'dead' }, dead);
}

type RecoveryMetrics = Pick<ReturnType<typeof createJobMetrics>, 'recoveredJobs' | 'finishedJobs'>;
