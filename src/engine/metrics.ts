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
  let readBreaker: (() => boolean) | undefined;
  const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
  return {
    registry,
    /** Process metrics (CPU, memory, event loop, garbage collection), which belong to the main thread of a process. */
    watchProcess: () => collectDefaultMetrics({ register: registry }),
    watchLedgers(read: () => LedgerReading): void {
      readLedgers = read;
    },
    watchBreaker(isOpen: () => boolean): void {
      readBreaker = isOpen;
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
    /** Set where there is a Redis; without one it is not shown. */
    redisUp: shownOnceSet(
      new Gauge({
        name: 'cairn_redis_up',
        help: 'Whether the dispatcher reaches Redis: 1 or 0.',
        aggregator: 'max',
        registers,
      }),
    ),
    queueWaiting: new Gauge({
      name: 'cairn_queue_waiting_jobs',
      help: 'Jobs in Redis that no worker has picked up yet, by step, as the dispatcher that fills the queues saw last.',
      labelNames: ['step'],
      aggregator: 'max',
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
    providerHeldBack: new Counter({
      name: 'cairn_provider_calls_held_back_total',
      help: 'Provider calls that had to wait or were put off, by reason: budget (OM_EMBED_RPM, OM_EMBED_TPM), pause (Retry-After), breaker.',
      labelNames: ['reason'],
      registers,
    }),
    providerWaits: new Counter({
      name: 'cairn_provider_wait_seconds_total',
      help: 'Time that provider calls waited in place before they started, by reason as above. A call that was put off does not count.',
      labelNames: ['reason'],
      registers,
    }),
    /** Without a provider it is not shown. */
    providerBreaker: shownOnceSet(
      new Gauge({
        name: 'cairn_provider_breaker_open',
        help: 'Whether the provider failed so often in a row that it is left alone or only probed: 1 or 0. Shared by all processes.',
        aggregator: 'max',
        registers,
        collect() {
          if (readBreaker !== undefined) this.set(readBreaker() ? 1 : 0);
        },
      }),
    ),
    languageModelCalls: new Histogram({
      name: 'cairn_language_model_call_duration_seconds',
      help: 'Time of a call of the language model, by outcome (ok, or the error code).',
      labelNames: ['outcome'],
      buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
    languageModelTokens: new Counter({
      name: 'cairn_language_model_tokens_total',
      help: 'Tokens of answered calls of the language model, by direction (input, output); estimated where the server does not count.',
      labelNames: ['direction'],
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

/** A gauge without labels begins at 0, which would say something about what is not there. */
function shownOnceSet(gauge: Gauge): Gauge {
  gauge.remove();
  return gauge;
}

export type Metrics = ReturnType<typeof createMetrics>;
