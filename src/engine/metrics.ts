import fs from 'node:fs';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry, type LabelValues } from 'prom-client';
import type { Census } from './census.ts';
import { busyTotals, type BusyTotals } from './store/open-store.ts';
import { PROFILES, type Sector, type StageTrace } from './types.ts';

/** What BullMQ says of its queues: jobs in Redis by queue and state; undefined while Redis is not reached. */
export type QueueCounts =
  readonly { readonly queue: string; readonly state: string; readonly jobs: number }[] | undefined;

/** What a provider is asked for that a breaker may leave alone. */
export interface BreakerUse {
  readonly service: 'embedding' | 'language_model';
  /** Where each sector has a model of its own, whose failures say nothing of the others'. */
  readonly sector?: Sector;
}

/** Metrics of the process that say little and are many: a series a heap space, a kind of handle, a kind of resource. */
const LEFT_OUT = [
  'nodejs_heap_space_size_total_bytes',
  'nodejs_heap_space_size_used_bytes',
  'nodejs_heap_space_size_available_bytes',
  'nodejs_active_handles',
  'nodejs_active_requests',
  'nodejs_active_resources',
  ...['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'],
  ...['nodejs_eventloop_lag_min_seconds', 'nodejs_eventloop_lag_mean_seconds', 'nodejs_eventloop_lag_stddev_seconds'],
  ...['nodejs_eventloop_lag_p50_seconds', 'nodejs_eventloop_lag_p90_seconds', 'nodejs_version_info'],
  ...['process_cpu_user_seconds_total', 'process_cpu_system_seconds_total'],
  ...['process_virtual_memory_bytes', 'process_heap_bytes'],
];
/** A sum and a count are enough where a mean is all that anybody asks for. */
const SUM_AND_COUNT: number[] = [];

/**
 * Every metric, its unit and its meaning; docs/metrics.md adds what to look for. Labels come from closed sets; no tenant, user, id or text
 * is ever one. A process (and each of its worker threads) has one registry; whoever serves `/metrics` joins them. A histogram
 * costs a series a bucket and label value, so buckets are few where there are labels: all of it together is to stay under 500.
 */
export function createMetrics(registry = new Registry()) {
  const registers = [registry];
  let readCensus: () => Promise<Census | undefined> = async () => undefined;
  let readQueues: () => Promise<QueueCounts> = async () => undefined;
  let dataFolder: string | undefined;
  const readBreakers = new Map<string, { readonly use: BreakerUse; readonly isOpen: () => boolean }>();
  const readRedis = new Set<() => boolean>();
  const readBusy = [busyTotals];
  const busy = (field: keyof BusyTotals) => readBusy.reduce((sum, read) => sum + read()[field], 0);
  const build = new Gauge({
    name: 'cairn_build_info',
    help: 'Always 1; the label is the version of Cairn that this process runs.',
    labelNames: ['version'],
    aggregator: 'first',
    registers,
  });
  return {
    registry,
    /** Process metrics (CPU, memory, event loop, garbage collection), which belong to the main thread of a process. */
    watchProcess(version: string): void {
      collectDefaultMetrics({ register: registry, gcDurationBuckets: SUM_AND_COUNT });
      for (const name of LEFT_OUT) registry.removeSingleMetric(name);
      build.set({ version }, 1);
    },
    /** What all tenants' files say, for the one process that speaks of them: the API. */
    watchFiles(folder: string, read: () => Promise<Census | undefined>): void {
      dataFolder = folder;
      readCensus = read;
    },
    /** Likewise the queues in Redis, which all processes share. */
    watchQueues(read: () => Promise<QueueCounts>): void {
      readQueues = read;
    },
    /** Of a thread that has no registry of its own. */
    watchBusy(read: () => BusyTotals): void {
      readBusy.push(read);
    },
    /** One that does not get through is enough: a process may have a dispatcher that fills the queues and one that stands by. */
    watchRedis(isUp: () => boolean): void {
      readRedis.add(isUp);
    },
    watchBreaker(use: BreakerUse, isOpen: () => boolean): void {
      readBreakers.set(JSON.stringify(use), { use, isOpen });
    },
    httpRequests: new Counter({
      name: 'cairn_http_requests_total',
      help: 'Requests that were answered, by route pattern and method.',
      labelNames: ['route', 'method'],
      registers,
    }),
    /** Apart from the routes: each of them with each status would be hundreds of series. */
    httpResponses: new Counter({
      name: 'cairn_http_responses_total',
      help: 'Answers, by status; 499 for a client that hung up before.',
      labelNames: ['status'],
      registers,
    }),
    httpDurations: new Histogram({
      name: 'cairn_http_request_duration_seconds',
      help: 'Time from the first byte of a request to the end of its reply, by kind: add, query, documents, read, write. Streams of events and what watches the service (/health, /metrics) are left out.',
      labelNames: ['kind'],
      buckets: [0.025, 0.1, 0.5, 2.5],
      registers,
    }),
    httpInFlight: new Gauge({
      name: 'cairn_http_requests_in_flight',
      help: 'Requests that wait for the end of their answer, open streams of events and this scrape included.',
      registers,
    }),
    queries: new Histogram({
      name: 'cairn_query_duration_seconds',
      help: 'Time of a query inside the engine, its embedding included.',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
      registers,
    }),
    queriesByProfile: started(
      new Counter({
        name: 'cairn_queries_total',
        help: 'Queries that were answered, by profile.',
        labelNames: ['profile'],
        registers,
      }),
      PROFILES.map((profile) => ({ profile })),
    ),
    queryStages: new Histogram({
      name: 'cairn_query_stage_duration_seconds',
      help: 'Time of each part of a query: embed, plan, lexical, dense, links (expand, entities), score (fuse, score, resolve, calibrate), rerank, model, pack (floor, pack).',
      labelNames: ['stage'],
      buckets: SUM_AND_COUNT,
      registers,
    }),
    wordIndexFallbacks: new Counter({
      name: 'cairn_word_index_fallbacks_total',
      help: 'Files whose word index has a format that this version does not read itself, so that SQLite is asked, which is slower; each time that a thread opens one.',
      registers,
    }),
    queryHits: new Histogram({
      name: 'cairn_query_hits',
      help: 'Hits that a query returned.',
      buckets: [0, 1, 3, 8, 20, 50],
      registers,
    }),
    emptyQueries: new Counter({
      name: 'cairn_queries_empty_total',
      help: 'Queries without a hit: nothing fitted, or nothing well enough (OM_MIN_SCORE).',
      registers,
    }),
    degradedQueries: new Counter({
      name: 'cairn_queries_degraded_total',
      help: 'Queries answered from words alone although vectors are configured.',
      registers,
    }),
    adds: started(
      new Counter({
        name: 'cairn_adds_total',
        help: 'Memories offered to add, by outcome: accepted, duplicate, rejected.',
        labelNames: ['outcome'],
        registers,
      }),
      ['accepted', 'duplicate', 'rejected'].map((outcome) => ({ outcome })),
    ),
    readyAfter: new Histogram({
      name: 'cairn_memory_ready_seconds',
      help: 'Time from accepting a memory to a stage: encoded (found by its vectors), linked (all is done); by priority: interactive, bulk. Words are found at once.',
      labelNames: ['stage', 'priority'],
      buckets: [0.5, 2, 10, 60, 600],
      registers,
    }),
    documents: new Counter({
      name: 'cairn_documents_total',
      help: 'Documents read, by format and outcome: shown, empty, unchanged, lost, failed. What was not read to its end has format none.',
      labelNames: ['format', 'outcome'],
      registers,
    }),
    documentPages: new Counter({
      name: 'cairn_document_pages_total',
      help: 'Pages of documents that were read; a document without pages counts as one.',
      registers,
    }),
    documentBytes: new Counter({
      name: 'cairn_document_bytes_total',
      help: 'Bytes of the files that were handed to a parser, those that failed included.',
      registers,
    }),
    documentFailures: new Counter({
      name: 'cairn_document_failures_total',
      help: 'Readings of documents that failed, by the code of the reason; those that are tried again count each time.',
      labelNames: ['code'],
      registers,
    }),
    parsers: new Gauge({
      name: 'cairn_parsers',
      help: 'Child processes that read documents or wait for one.',
      registers,
    }),
    parserExits: new Counter({
      name: 'cairn_parser_exits_total',
      help: 'Child processes that ended, by reason: stopped (idle, spent, shut down), aborted, or killed for time, output, reply, memory; crashed.',
      labelNames: ['reason'],
      registers,
    }),
    commits: new Histogram({
      name: 'cairn_commit_duration_seconds',
      help: 'Time of one group commit of the writer, fsync included.',
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5],
      registers,
    }),
    commitRequests: new Histogram({
      name: 'cairn_commit_requests',
      help: 'Requests that shared one group commit.',
      buckets: SUM_AND_COUNT,
      registers,
    }),
    jobs: new Gauge({
      name: 'cairn_jobs',
      help: 'Jobs in the ledgers of all tenants that have not ended well, by step and state: queued, active, failed (waits for its next attempt), dead.',
      labelNames: ['step', 'state'],
      registers,
      async collect() {
        const census = await readCensus();
        for (const { step, state, jobs } of census?.jobs ?? []) this.set({ step, state }, jobs);
      },
    }),
    oldestJob: new Gauge({
      name: 'cairn_jobs_oldest_age_seconds',
      help: 'Age of the oldest unfinished job, by step; 0 when none waits.',
      labelNames: ['step'],
      registers,
      async collect() {
        const census = await readCensus();
        for (const { step, ageMs } of census?.oldest ?? []) this.set({ step }, ageMs / 1000);
      },
    }),
    steps: new Histogram({
      name: 'cairn_step_duration_seconds',
      help: 'Time of a batch of one step in a worker, by step and outcome (ok, failed).',
      labelNames: ['step', 'outcome'],
      buckets: [0.1, 1, 10],
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
      help: 'Attempts of jobs that failed and count, by step and error code. What waits for a provider or for disk is not counted.',
      labelNames: ['step', 'code'],
      registers,
    }),
    workPauses: new Counter({
      name: 'cairn_work_pauses_total',
      help: 'How often a worker put its work off, by the error code of the reason: the provider (unavailable, rate_limited) or the disk (storage_full).',
      labelNames: ['code'],
      registers,
    }),
    recoveredJobs: started(
      new Counter({
        name: 'cairn_jobs_recovered_total',
        help: 'Jobs taken back from workers that fell silent, by what became of them: requeued, or dead after three crashes.',
        labelNames: ['outcome'],
        registers,
      }),
      ['requeued', 'dead'].map((outcome) => ({ outcome })),
    ),
    hungThreads: new Counter({
      name: 'cairn_worker_hangs_total',
      help: 'Worker threads that did not come back to their event loop and were ended and replaced.',
      registers,
    }),
    stalledJobs: new Counter({
      name: 'cairn_queue_stalled_jobs_total',
      help: 'Jobs of BullMQ whose worker let go of their lock, by queue, as this process found them; the ledger hands their rows out again.',
      labelNames: ['queue'],
      registers,
    }),
    embeddingCalls: new Counter({
      name: 'cairn_embedding_calls_total',
      help: 'Calls of the embedding provider, by provider, purpose (document, query) and outcome (ok, or the error code; rate_limited is a 429).',
      labelNames: ['provider', 'purpose', 'outcome'],
      registers,
    }),
    embeddingCallDurations: new Histogram({
      name: 'cairn_embedding_call_duration_seconds',
      help: 'Time of a call of the embedding provider, whatever its outcome, by purpose (document, query).',
      labelNames: ['purpose'],
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 5, 30],
      registers,
    }),
    embeddingBatchFill: new Histogram({
      name: 'cairn_embedding_batch_fill_ratio',
      help: 'How full the calls for documents were: texts as a share of the most that a call may hold.',
      buckets: SUM_AND_COUNT,
      registers,
    }),
    embeddedTexts: new Counter({
      name: 'cairn_embedded_texts_total',
      help: 'Texts that got a vector, by provider and source (provider, cache).',
      labelNames: ['provider', 'source'],
      registers,
    }),
    /** Without a Redis it is not shown. */
    redisUp: shownOnceSet(
      new Gauge({
        name: 'cairn_redis_up',
        help: 'Whether Redis took what the dispatcher asked of it last: 1 or 0.',
        aggregator: 'max',
        registers,
        collect() {
          if (readRedis.size > 0) this.set([...readRedis].every((isUp) => isUp()) ? 1 : 0);
        },
      }),
    ),
    /** Shown by the API only, as all processes share the queues. */
    queueJobs: new Gauge({
      name: 'cairn_queue_jobs',
      help: 'Jobs in Redis by queue and state (waiting, prioritized, active, delayed), as BullMQ counts them; each carries up to 64 rows of a ledger.',
      labelNames: ['queue', 'state'],
      registers,
      async collect() {
        this.reset();
        for (const { queue, state, jobs } of (await readQueues()) ?? []) this.set({ queue, state }, jobs);
      },
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
    embeddingCache: new Counter({
      name: 'cairn_embedding_cache_lookups_total',
      help: 'Texts looked up among vectors that were paid for, by cache (document, query) and outcome (hit, miss).',
      labelNames: ['cache', 'outcome'],
      registers,
    }),
    savedTokens: new Counter({
      name: 'cairn_embedding_cache_saved_tokens_total',
      help: 'Tokens, by estimate, that did not go to the provider because the vector was known, by cache (document, query).',
      labelNames: ['cache'],
      registers,
    }),
    providerTokens: new Counter({
      name: 'cairn_provider_tokens_total',
      help: 'Tokens of provider calls that completed, read and written, by purpose (document, query, entities, rerank, contradictions, reflection); as billed where the reply says, else estimated.',
      labelNames: ['purpose'],
      registers,
    }),
    providerCost: new Counter({
      name: 'cairn_provider_cost_usd_total',
      help: 'What those calls cost by the price table (OM_PRICES), in US dollars, by purpose as above.',
      labelNames: ['purpose'],
      registers,
    }),
    providerHeldBack: new Counter({
      name: 'cairn_provider_calls_held_back_total',
      help: 'Provider calls that had to wait or were put off, by service (embedding, language_model) and reason: budget (the limits of the settings), gap (OM_EMBED_DELAY_MS), told (what replies say is left), pause (Retry-After), breaker.',
      labelNames: ['service', 'reason'],
      registers,
    }),
    providerWaits: new Counter({
      name: 'cairn_provider_wait_seconds_total',
      help: 'Time that provider calls waited in place before they started, by service and reason as above. A call that was put off does not count.',
      labelNames: ['service', 'reason'],
      registers,
    }),
    /** Without a provider it is not shown. */
    providerBreaker: new Gauge({
      name: 'cairn_provider_breaker_open',
      help: 'Whether the provider of a service (embedding, language_model) failed so often in a row that it is left alone or only probed: 1 or 0. Shared by all processes. With a model a sector, by sector; else without that label.',
      labelNames: ['service', 'sector'],
      aggregator: 'max',
      registers,
      collect() {
        for (const { use, isOpen } of readBreakers.values()) this.set({ ...use }, isOpen() ? 1 : 0);
      },
    }),
    languageModelCalls: new Counter({
      name: 'cairn_language_model_calls_total',
      help: 'Calls of the language model, by outcome (ok, or the error code).',
      labelNames: ['outcome'],
      registers,
    }),
    languageModelCallDurations: new Histogram({
      name: 'cairn_language_model_call_duration_seconds',
      help: 'Time of a call of the language model, whatever its outcome.',
      buckets: [0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    }),
    languageModelTokens: new Counter({
      name: 'cairn_language_model_tokens_total',
      help: 'Tokens of answered calls of the language model, by direction (input, output); estimated where the server does not count.',
      labelNames: ['direction'],
      registers,
    }),
    memories: new Gauge({
      name: 'cairn_memories',
      help: 'Memories of all tenants, by primary sector and state: queued, ready, failed.',
      labelNames: ['sector', 'state'],
      registers,
      async collect() {
        const census = await readCensus();
        for (const { sector, state, memories } of census?.memories ?? []) this.set({ sector, state }, memories);
      },
    }),
    waypoints: shownOnceSet(
      new Gauge({
        name: 'cairn_waypoints',
        help: 'Waypoints between memories, of all tenants.',
        registers,
        async collect() {
          const census = await readCensus();
          if (census !== undefined) this.set(census.waypoints);
        },
      }),
    ),
    tenants: shownOnceSet(
      new Gauge({
        name: 'cairn_tenants',
        help: 'Tenants, the default one included.',
        registers,
        async collect() {
          const census = await readCensus();
          if (census !== undefined) this.set(census.tenants);
        },
      }),
    ),
    unreadableTenants: shownOnceSet(
      new Gauge({
        name: 'cairn_tenants_unreadable',
        help: 'Tenants whose file could not be read when it was counted last.',
        registers,
        async collect() {
          const census = await readCensus();
          if (census !== undefined) this.set(census.unreadable);
        },
      }),
    ),
    censusDurations: new Histogram({
      name: 'cairn_census_duration_seconds',
      help: 'Time of counting what all files hold, for the gauges that say so; in slices of some milliseconds, and never more than a twentieth of the time.',
      buckets: SUM_AND_COUNT,
      registers,
    }),
    scheduleRuns: new Counter({
      name: 'cairn_schedule_runs_total',
      help: 'Runs of the schedules in this process, by schedule and outcome (ok, failed).',
      labelNames: ['schedule', 'outcome'],
      registers,
    }),
    scheduleLastRun: new Gauge({
      name: 'cairn_schedule_last_run_timestamp_seconds',
      help: 'Unix time at which each schedule last began a run that came to its end, in the file where that is longest ago. In a new file the first period begins when it is made.',
      labelNames: ['schedule'],
      registers,
      async collect() {
        const census = await readCensus();
        for (const { schedule, at } of census?.schedules ?? []) this.set({ schedule }, at / 1000);
      },
    }),
    decayedMemories: new Counter({
      name: 'cairn_decayed_memories_total',
      help: 'Memories whose cached salience the decay job refreshed.',
      registers,
    }),
    archivedMemories: new Counter({
      name: 'cairn_archived_memories_total',
      help: 'Memories that the decay job archived because their salience fell under OM_ARCHIVE_BELOW.',
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
    databaseBytes: shownOnceSet(
      new Gauge({
        name: 'cairn_database_bytes',
        help: "Size of all tenants' files, without their write-ahead logs.",
        registers,
        async collect() {
          const census = await readCensus();
          if (census !== undefined) this.set(census.databaseBytes);
        },
      }),
    ),
    walBytes: shownOnceSet(
      new Gauge({
        name: 'cairn_wal_bytes',
        help: "Size of all tenants' write-ahead logs.",
        registers,
        async collect() {
          const census = await readCensus();
          if (census !== undefined) this.set(census.walBytes);
        },
      }),
    ),
    largestWalBytes: shownOnceSet(
      new Gauge({
        name: 'cairn_wal_largest_bytes',
        help: 'Size of the largest write-ahead log of a tenant: one that grows on has a reader that does not let go, or a disk that is full.',
        registers,
        async collect() {
          const census = await readCensus();
          if (census !== undefined) this.set(census.largestWalBytes);
        },
      }),
    ),
    diskFree: shownOnceSet(
      new Gauge({
        name: 'cairn_disk_free_bytes',
        help: 'Room that is left on the disk that holds the data.',
        registers,
        async collect() {
          if (dataFolder === undefined) return;
          const { bavail, bsize } = await fs.promises.statfs(dataFolder);
          this.set(bavail * bsize);
        },
      }),
    ),
    diskSize: shownOnceSet(
      new Gauge({
        name: 'cairn_disk_size_bytes',
        help: 'Size of the disk that holds the data.',
        registers,
        async collect() {
          if (dataFolder === undefined) return;
          const { blocks, bsize } = await fs.promises.statfs(dataFolder);
          this.set(blocks * bsize);
        },
      }),
    ),
    busyRetries: new Counter({
      name: 'cairn_sqlite_busy_retries_total',
      help: 'Attempts to get at a file that another connection held, half a millisecond apart, in the threads of this process.',
      registers,
      collect() {
        this.reset();
        this.inc(busy('retries'));
      },
    }),
    busyWaits: new Counter({
      name: 'cairn_sqlite_busy_wait_seconds_total',
      help: 'Time that those attempts waited.',
      registers,
      collect() {
        this.reset();
        this.inc(busy('waitedMs') / 1000);
      },
    }),
    busyFailures: new Counter({
      name: 'cairn_sqlite_busy_timeouts_total',
      help: 'Times that a file was still held after 5 s, and what was to be done failed.',
      registers,
      collect() {
        this.reset();
        this.inc(busy('timeouts'));
      },
    }),
    checkpoints: started(
      new Counter({
        name: 'cairn_checkpoints_total',
        help: 'Checkpoints of write-ahead logs, by outcome: complete, partial (a reader still needs some of the log), busy.',
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

/** Begins the series of a counter at 0, so that the first event shows as a step and not as a series that was not there before. */
function started<T extends string>(counter: Counter<T>, labels: readonly LabelValues<T>[]): Counter<T> {
  for (const values of labels) counter.inc(values, 0);
  return counter;
}

/** Which part of a query each stage belongs to: a histogram for every stage would be a hundred series. */
const PART_OF_STAGE: Readonly<Record<string, string>> = {
  ...{
    embed: 'embed',
    plan: 'plan',
    lexical: 'lexical',
    'lexical, live': 'lexical',
    dense: 'dense',
    'dense, live': 'dense',
  },
  ...{ expand: 'links', entities: 'links', fuse: 'score', score: 'score', resolve: 'score', calibrate: 'score' },
  ...{ rerank: 'rerank', 'rerank by model': 'model', floor: 'pack', pack: 'pack' },
};

/** A stage that no part is named for is counted as `other`. */
export function observeStages(metrics: Metrics, trace: readonly StageTrace[]): void {
  const parts = new Map<string, number>();
  for (const { stage, ms } of trace) {
    const part = PART_OF_STAGE[stage] ?? 'other';
    parts.set(part, (parts.get(part) ?? 0) + ms);
  }
  for (const [stage, ms] of parts) metrics.queryStages.observe({ stage }, ms / 1000);
}

/** What was taken back from workers that fell silent; those that are dead now have ended, too. */
export function countRecovery(metrics: Metrics, { requeued, dead }: { requeued: number; dead: number }): void {
  metrics.recoveredJobs.inc({ outcome: 'requeued' }, requeued);
  metrics.recoveredJobs.inc({ outcome: 'dead' }, dead);
  metrics.finishedJobs.inc({ state: 'dead' }, dead);
}

/** A gauge without labels begins at 0, which would say something about what is not there. */
function shownOnceSet(gauge: Gauge): Gauge {
  gauge.remove();
  return gauge;
}

export type Metrics = ReturnType<typeof createMetrics>;
