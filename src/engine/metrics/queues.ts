import { Counter, Gauge, type Registry } from 'prom-client';
import type { MetricSources } from './metric-sources.ts';
import { shownOnceSet } from './series.ts';

/** Makes the metrics of the queues, their server and the dispatcher that fills them. */
export function createQueueMetrics(registers: Registry[], sources: MetricSources) {
  return {
    redisUp: createUpGauge(registers, sources, {
      server: 'redis',
      name: 'cairn_redis_up',
      help: 'Whether Redis took what the dispatcher asked of it last: 1 or 0.',
    }),
    queuesUp: createUpGauge(registers, sources, {
      server: 'postgres',
      name: 'cairn_queues_up',
      help: 'Whether PostgreSQL took what the dispatcher asked of its queues last: 1 or 0.',
    }),
    /**
     * Numbers of jobs in the queues. The gauge has series only in the API's process, as all share the queues, and only
     * while these can be reached.
     */
    queueJobs: new Gauge({
      name: 'cairn_queue_jobs',
      help:
        'Jobs in the queues by queue and state (waiting, prioritized, active, delayed), as BullMQ counts them; each ' +
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
        'Jobs of BullMQ whose worker lost its lock on them, by queue, as this process found them; the ledger hands ' +
        "out the jobs' rows again.",
      labelNames: ['queue'],
      registers,
    }),
    dispatchedJobs: new Counter({
      name: 'cairn_dispatched_jobs_total',
      help: 'Jobs that this process put into the queues, by step; each carries up to 64 rows of a ledger.',
      labelNames: ['step'],
      registers,
    }),
    dispatchedRows: new Counter({
      name: 'cairn_dispatched_rows_total',
      help: 'Rows of the ledgers that the dispatched jobs carried, by step.',
      labelNames: ['step'],
      registers,
    }),
    dispatchFailures: new Counter({
      name: 'cairn_dispatch_failures_total',
      help: 'Rounds of the dispatcher that failed, mostly since the server of the queues was not reached.',
      registers,
    }),
    queueRefills: new Counter({
      name: 'cairn_queue_refills_total',
      help: 'How often the queues were found to have forgotten their jobs, which were then handed out again.',
      registers,
    }),
    refilledRows: new Counter({
      name: 'cairn_queue_refilled_rows_total',
      help: 'Rows of the ledgers that were handed out again because the queues had forgotten them.',
      registers,
    }),
  };
}

/** Makes a gauge that has a series only in a process with a dispatcher over the queues of the given server. */
function createUpGauge(
  registers: Registry[],
  sources: MetricSources,
  { server, ...named }: { readonly server: 'redis' | 'postgres'; readonly name: string; readonly help: string },
): Gauge {
  return shownOnceSet(
    new Gauge({
      ...named,
      aggregator: 'max',
      registers,
      collect() {
        const own = [...sources.dispatchers].filter((dispatcher) => dispatcher.server === server);
        if (own.length > 0) this.set(own.every(({ isUp }) => isUp()) ? 1 : 0);
      },
    }),
  );
}
