import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { JOB_STATES, type JobCounts } from './types.ts';

/** What the ledgers of the open files say at one moment. */
export interface LedgerReading {
  readonly counts: JobCounts;
  readonly oldestAgeMs: number;
}

/**
 * Every metric, its unit and its meaning. Labels come from closed sets; no tenant, user, id or text is ever one. A process (and
 * each of its worker threads) has one registry; the API joins them at `/metrics`.
 */
export function createMetrics(registry = new Registry()) {
  const registers = [registry];
  let readLedgers: (() => LedgerReading) | undefined;
  const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
  return {
    registry,
    /** Process metrics (CPU, memory, event loop, garbage collection), which belong to the main thread of a process. */
    watchProcess: () => collectDefaultMetrics({ register: registry }),
    watchLedgers(read: () => LedgerReading): void {
      readLedgers = read;
    },
    httpRequests: new Histogram({
      name: 'cairn_http_request_duration_seconds',
      help: 'Time from the first byte of a request to the end of its reply, by route pattern, method and status.',
      labelNames: ['route', 'method', 'status'],
      buckets: seconds,
      registers,
    }),
    queries: new Histogram({
      name: 'cairn_query_duration_seconds',
      help: 'Time of a query inside the engine, its embedding included.',
      labelNames: ['profile'],
      buckets: seconds,
      registers,
    }),
    degradedQueries: new Counter({
      name: 'cairn_queries_degraded_total',
      help: 'Queries answered from words alone although vectors are configured.',
      registers,
    }),
    adds: new Counter({
      name: 'cairn_adds_total',
      help: 'Memories offered to add, by outcome: accepted, duplicate, rejected.',
      labelNames: ['outcome'],
      registers,
    }),
    commits: new Histogram({
      name: 'cairn_commit_duration_seconds',
      help: 'Time of one group commit of the writer, fsync included.',
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5],
      registers,
    }),
    commitRequests: new Histogram({
      name: 'cairn_commit_requests',
      help: 'Requests that shared one group commit.',
      buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
      registers,
    }),
    jobs: new Gauge({
      name: 'cairn_jobs',
      help: 'Jobs in the ledgers of the open tenants, by state.',
      labelNames: ['state'],
      registers,
      collect() {
        const counts = readLedgers?.().counts;
        if (counts) for (const state of JOB_STATES) this.set({ state }, counts[state]);
      },
    }),
    oldestJob: new Gauge({
      name: 'cairn_jobs_oldest_age_seconds',
      help: 'Age of the oldest unfinished job; 0 when none waits.',
      registers,
      collect() {
        const reading = readLedgers?.();
        if (reading) this.set(reading.oldestAgeMs / 1000);
      },
    }),
    steps: new Histogram({
      name: 'cairn_step_duration_seconds',
      help: 'Time of a batch of one step in a worker, by step and outcome (ok, failed).',
      labelNames: ['step', 'outcome'],
      buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300],
      registers,
    }),
    finishedJobs: new Counter({
      name: 'cairn_jobs_finished_total',
      help: 'Jobs that ended, by how: done, dead, cancelled.',
      labelNames: ['state'],
      registers,
    }),
    embeddingCalls: new Histogram({
      name: 'cairn_embedding_call_duration_seconds',
      help: 'Time of a provider call, by provider, purpose (document, query) and outcome (ok, or the error code).',
      labelNames: ['provider', 'purpose', 'outcome'],
      buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    }),
    embeddedTexts: new Counter({
      name: 'cairn_embedded_texts_total',
      help: 'Texts that got a vector, by provider and source (provider, cache).',
      labelNames: ['provider', 'source'],
      registers,
    }),
    decayedMemories: new Counter({
      name: 'cairn_decayed_memories_total',
      help: 'Memories whose cached salience the decay job refreshed.',
      registers,
    }),
    expiredMemories: new Counter({
      name: 'cairn_expired_memories_total',
      help: 'Memories erased because their time had come.',
      registers,
    }),
    prunedWaypoints: new Counter({
      name: 'cairn_pruned_waypoints_total',
      help: 'Waypoints removed because their weight fell under 0.05.',
      registers,
    }),
  };
}

export type Metrics = ReturnType<typeof createMetrics>;
