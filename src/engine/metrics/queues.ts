import { Counter, Gauge, type Registry } from 'prom-client';
import type { MetricSources } from './metric-sources.ts';
import { shownOnceSet } from './series.ts';

/** Makes the metrics of Redis, its queues and the dispatcher that fills them. */
export function createQueueMetrics(registers: Registry[], sources: MetricSources) {
  return {
    /** The gauge has a series only in a process with a dispatcher over Redis. */
    redisUp: shownOnceSet(
      new Gauge({
        name: 'cairn_redis_up',
        help: 'Whether Redis took what the dispatcher asked of it last: 1 or 0.',
        aggregator: 'max',
        registers,
        collect() {
          if (sources.redis.size > 0) this.set([...sources.redis].every((isUp) => isUp()) ? 1 : 0);
        },
      }),
    ),
    /** The gauge has series only in the API's process, as all share the queues, and only while Redis can be reached. */
    queueJobs: new Gauge({
      name: 'cairn_queue_jobs',
      help:
        'Jobs in Redis by queue and state (waiting, prioritized, active, delayed), as BullMQ counts them; each ' +
        'carries up to 64 rows of a ledger.',
      labelNames: ['queue', 'state'],
      registers,
      async collect() {
        this.reset();
        for (const { queue, state, jobs } of (await sources.readQueues()) ?? []) this.set({ queue, state }, jobs);
      },
    }),
    stalledJobs: new Counter({
      name: 'cairn_queue_stalled_jobs_total',
      help:
        'Jobs of BullMQ whose worker let go of their lock, by queue, as this process found them; the ledger hands ' +
        'their rows out again.',
      labelNames: ['queue'],
      registers,
    }),
    dispatchedJobs: new Counter({
      name: 'cairn_dispatched_jobs_total',
      help: 'Jobs that this process put into Redis, by step; each carries up to 64 rows of a ledger.',
      labelNames: ['step'],
      registers,
    }),
    dispatchedRows: new Counter({
      name: 'cairn_dispatched_rows_total',
      help: 'Rows of the ledgers that those jobs carried, by step.',
      labelNames: ['step'],
      registers,
    }),
    dispatchFailures: new Counter({
      name: 'cairn_dispatch_failures_total',
      help: 'Rounds of the dispatcher that failed, mostly since Redis was not reached.',
      registers,
    }),
    queueRefills: new Counter({
      name: 'cairn_queue_refills_total',
      help: 'How often Redis was found to have forgotten its jobs, which were then handed out again.',
      registers,
    }),
    refilledRows: new Counter({
      name: 'cairn_queue_refilled_rows_total',
      help: 'Rows of the ledgers that were handed out again because Redis had forgotten them.',
      registers,
    }),
  };
}
