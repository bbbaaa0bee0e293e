import os from 'node:os';
import path from 'node:path';
import { createTextAnalyzer } from './adapters/text-analyzer.ts';
import { createWebhookSender } from './adapters/webhook-sender.ts';
import { createCensusTaker, type CensusTaker } from './census.ts';
import type { Config } from './config.ts';
import { openControlChanges } from './control/control-changes.ts';
import type { ControlDatabase } from './control/control-database.ts';
import { counterPlaceOf } from './control/counter-file.ts';
import { openControlDatabase } from './control/open-control-database.ts';
import { placeOf } from './control/place-of.ts';
import { queuePlaceOf } from './dispatch/ledgers.ts';
import type { Engine } from './engine.ts';
import type { Lead } from './lead.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { openDispatcher } from './open-engine/open-dispatcher.ts';
import { type OpenedStandby, openStandby } from './open-engine/open-standby.ts';
import { createQuerySources } from './open-engine/query-sources.ts';
import { createTenantLooks, lookIntoDatabase } from './open-engine/tenant-looks.ts';
import type { TenantLooks } from './types.ts';
import { createTenants } from './open-engine/tenants.ts';
import { openParts, type EngineParts } from './parts/engine-parts.ts';
import { silentLogger, systemClock, type Clock, type JobDispatcher, type LanguageModel, type Logger } from './ports.ts';
import type { ThreadServices } from './readers/read.ts';
import { createInlineReaders, type Readers, withFewRowsHere } from './readers/readers.ts';
import { createThreadReaders } from './readers/thread-readers.ts';
import { areSameModels, distinctModels, numbersOf } from './store/live-model.ts';
import { startMigrations } from './store/postgres/migrate-databases.ts';
import { countLacking } from './store/reembed.ts';
import { openGuessLimit } from './control/guess-limit.ts';
import { openRateLimits } from './control/rate-limits.ts';
import { openStreamShares } from './control/stream-shares.ts';
import { openTenant } from './tenant-file/open-tenant.ts';
import { createSharedFiles } from './tenant-file/shared-files.ts';
import { createTenantPool } from './tenant-file/tenant-pool.ts';
import { createRecallBuffer } from './tenant/recall-buffer.ts';
import type { TenantOptions } from './tenant/tenant-options.ts';
import type { Tracing } from './tracing.ts';
import { scheduleNames } from './upkeep/schedules.ts';
import { createGroupingWriter, type GroupTransport } from './writer/grouping-writer.ts';
import { createInlineTransport } from './writer/inline-transport.ts';
import { startWriterThread } from './writer/thread-transport.ts';

/** The settings of an engine, and the parts that tests and servers replace. */
export interface OpenEngineOptions {
  readonly config: Config;
  readonly clock?: Clock;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
  /**
   * Tracing of requests and work; null, the default, traces nothing. The engine does not close it: its maker does,
   * after the engine.
   */
  readonly tracing?: Tracing | null;
  /**
   * Where commits are made and queries are answered. With `thread`, the default, threads of their own do both, by the
   * system's clock: for a server. With OM_QUERY_THREADS=0 this thread answers queries nevertheless. With `inline` this
   * thread does both, by the given clock.
   */
  readonly writer?: 'thread' | 'inline';
  /**
   * Dispatcher that notifies workers of new work. By default it is that of the queues: in Redis with `REDIS_URL`,
   * else in PostgreSQL with `OM_DATABASE_URL`. Without both none is used, and workers read the ledgers. The engine
   * closes it. With `lead` it is ignored.
   */
  readonly dispatcher?: JobDispatcher | undefined;
  /**
   * The committing thread and the dispatcher of another process of this machine, which this engine uses in place of its
   * own. This engine leaves the metrics of the files to that process, and does not close the dispatcher. It calls
   * `close` of the transport, which must not end that thread.
   */
  readonly lead?: Lead | undefined;
}

/**
 * Greatest number of threads that answer queries if `OM_QUERY_THREADS` is not set; with fewer cores there are as many
 * threads as cores for each API process.
 */
const MAX_DEFAULT_THREADS = 8;

/**
 * What every part of an engine is given: the options of `openEngine`, with a default for each option that was left out.
 */
interface Surroundings {
  readonly config: Config;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tracing: Tracing | null;
}

/**
 * Builds an engine. The API, the command line and the tests start here. The caller closes it.
 * @throws EngineError the errors of `openControlDatabase`, and of `openTenant` for the default tenant's file; `invalid`
 *   if this machine cannot run the vector index of the settings; with OM_DATABASE_READ_URL the errors of `openStandby`
 */
export async function openEngine(options: OpenEngineOptions): Promise<Engine> {
  const { config, clock = systemClock, logger = silentLogger, metrics = createMetrics(), tracing = null } = options;
  const surroundings: Surroundings = { config, clock, logger, metrics, tracing };
  const { writer: kind = 'thread' } = options;
  // Only reader threads read from it.
  const standby = kind === 'thread' ? openStandby(surroundings) : null;
  const { control, migrations } = openControl(surroundings, options.lead);
  const changes = openControlChanges(config, control, kind);
  const { close: closeCounts, ...counts } = openCounts(config, clock);
  const parts = openParts({
    ...surroundings,
    ...{ role: 'reader', waitsBriefly: kind === 'thread' }, // Without threads, this one answers queries.
    // A query belongs to one tenant, but its call may be shared: the default tenant keeps the record.
    onCall: (entry) => void writer.write(config.paths.defaultTenant, 'appendEmbedLog', entry).catch(() => {}),
  });
  const { embedder, languageModel, pool, budget } = parts;
  const transport = options.lead?.transport ?? openTransport(kind, parts.identity, surroundings);
  const writer = createGroupingWriter(transport, { metrics, tracing, onSeen: standby?.state.raise });
  const recalls = createRecallBuffer(writer, logger);
  const querySourceOf = createQuerySources(parts, surroundings);
  const readers = openReaders(kind, surroundings, {
    ...parts,
    standby,
    querySourceOf,
    languageModel: languageModel && limitedInTime(languageModel, config.OM_LLM_RERANK_TIMEOUT_MS),
  });
  await writer.write(config.paths.defaultTenant, 'open', {});
  const queuesAt = queuePlaceOf(config, { pool, control });
  const dispatcher =
    options.lead?.dispatcher ??
    options.dispatcher ??
    (await openDispatcher({ ...surroundings, control, queuesAt, writer }));
  warnOfOtherModel(surroundings, pool, querySourceOf);
  const looks = createTenantLooks(config, control);
  const census = options.lead === undefined ? watchFiles(control, looks, surroundings) : undefined;
  const tending = createTending(surroundings);
  const tenants = createTenants({
    ...surroundings,
    ...{ querySourceOf, control, changeControl: changes.change, languageModel },
    ...{ pool, readers, writer, dispatcher, recalls },
    ...{ ...tending, analyzerOf: createTextAnalyzer(config, clock) },
  });

  return {
    ...surroundings,
    embedder,
    ...{ control, changeControl: changes.change },
    ...counts,
    queuesAt,
    lead: { transport, dispatcher },
    queueState: () => dispatcher.state?.() ?? { mode: 'embedded' },
    standbyState: () => standby && (standby.state.isUp ? 'up' : 'down'),
    prepare: async () => void (await Promise.allSettled([embedder?.prepare?.(), languageModel?.prepare?.()])),
    tenant: async (id) => tenants.get(id),
    tended: tending.tended,
    looks,
    async close() {
      for (const watching of [migrations, tenants, census, looks, changes]) await watching?.close();
      if (options.lead === undefined) await dispatcher.close();
      await recalls.flush();
      await readers.close();
      // Readers first: the last connection to close moves the log into the database, and a reader cannot.
      pool.close();
      budget.close();
      await writer.close();
      closeCounts();
      control.close();
    },
  };
}

/**
 * Opens the control database, and migrates further databases, while this thread serves nothing yet; with `lead`, the
 * other process has done that.
 */
function openControl({ config, clock, logger }: Surroundings, lead: Lead | undefined) {
  const control = openControlDatabase(config, clock);
  return { control, migrations: lead === undefined ? startMigrations(config.databases, logger) : undefined };
}

/**
 * Opens the rate limits, the counts of wrong keys and those of open event streams, which the processes of a data folder
 * share. No file is made before there is something to count.
 */
function openCounts(config: Config, clock: Clock) {
  const { paths, OM_MAX_WRONG_KEYS } = config;
  const rates = openRateLimits(counterPlaceOf(config, paths.rates), clock);
  // Wrong keys are counted on each machine: a flood of them must not reach a database that all machines share.
  const guesses = openGuessLimit(paths.guesses, OM_MAX_WRONG_KEYS, clock);
  const streams = openStreamShares(counterPlaceOf(config, paths.rates), clock);
  return { rates, guesses, streams, close: () => [rates, guesses, streams].forEach((counts) => counts.close()) };
}

/** Makes the parts with which tenants deliver webhooks and keep standing queries. */
function createTending({ config, clock }: Surroundings): Pick<TenantOptions, 'webhookSender' | 'tended'> {
  const { deniedNetworks: denied, webhookNetworks: allowed } = config;
  return { webhookSender: createWebhookSender({ denied, allowed, clock }), tended: new Set() };
}

function openReaders(
  kind: 'thread' | 'inline',
  surroundings: Surroundings,
  parts: Pick<EngineParts, 'identity' | 'pool' | 'languageModel' | 'reportUnknownFormat'> &
    Pick<ThreadServices, 'querySourceOf'> & { readonly standby: OpenedStandby | null },
): Readers {
  const { config, metrics } = surroundings;
  const cores = Math.floor(os.availableParallelism() / config.OM_API_PROCESSES);
  const threads = config.OM_QUERY_THREADS ?? Math.max(1, Math.min(MAX_DEFAULT_THREADS, cores));
  const here = createInlineReaders(parts.pool, { ...surroundings, ...parts, threads: 1 });
  if (kind === 'inline' || threads === 0) return here;
  const readers = createThreadReaders({
    ...surroundings,
    ...parts,
    threads,
    standby: parts.standby?.state ?? null,
    primary: parts.standby?.primary ?? null,
    sharedFiles: createSharedFiles({
      vectorIndex: config.OM_VECTOR_INDEX,
      maxReaders: threads,
      maxBytes: config.OM_INDEX_MEMORY_MB * 1024 * 1024,
      maxFiles: config.OM_OPEN_TENANTS,
    }),
    watchWaiting: metrics.watchReads,
    onThreadEnd: () => metrics.readerThreadEnds.inc(),
    onUnknownWordFormat: parts.reportUnknownFormat,
  });
  return config.OM_DATABASE_URL === undefined ? withFewRowsHere(readers, here) : readers;
}

function openTransport(
  kind: 'thread' | 'inline',
  identity: EngineParts['identity'],
  { config, clock, metrics }: Surroundings,
): GroupTransport {
  if (kind === 'thread') return startWriterThread({ config, identity, metrics });
  const pool = createTenantPool(config.OM_OPEN_TENANTS, (path) =>
    openTenant(path, {
      place: placeOf(config, path),
      role: 'acknowledger',
      identity,
      now: clock.now(),
      events: config.OM_EVENTS,
    }),
  );
  return createInlineTransport({ pool, config, clock });
}

/**
 * Makes the census taker, which counts what all tenants' files hold, and lets the metrics read its results. The caller
 * closes it.
 */
function watchFiles(
  control: ControlDatabase,
  { stampsOf }: TenantLooks,
  { config, clock, logger, metrics }: Surroundings,
): CensusTaker {
  const census = createCensusTaker({
    control,
    clock,
    logger,
    schedules: scheduleNames(config),
    ...(config.OM_DATABASE_URL === undefined
      ? {}
      : { look: (path: string) => lookIntoDatabase(config, control, path), stampsOf }),
    onTaken: (busyMs) => metrics.censusDurations.observe(busyMs / 1000),
  });
  metrics.watchFiles(path.dirname(config.paths.defaultTenant), () => census.read());
  return census;
}

/**
 * Logs a warning if the settings ask for another model than the one that made the live vectors of the default tenant,
 * or if its memories have no vectors of the configured model. It does nothing where there are no vectors.
 */
function warnOfOtherModel(
  { config, logger }: Surroundings,
  pool: EngineParts['pool'],
  querySourceOf: ThreadServices['querySourceOf'],
): void {
  const { defaultTenant } = config.paths;
  const { store, liveModels, configuredModels } = pool.get(defaultTenant);
  if (liveModels === null) return;
  if (configuredModels !== null && areSameModels(numbersOf(liveModels), numbersOf(configuredModels))) {
    const { owed } = countLacking(store, configuredModels);
    if (owed > 0) logger.warn({ memories: owed, until: 'cairn reembed' }, 'memories_without_vectors');
    return;
  }
  const models = distinctModels(liveModels);
  const isReachable = models.some((model) => querySourceOf(model, defaultTenant) !== null);
  const answersBy = isReachable ? 'words and its vectors' : 'words';
  for (const { provider, model, dimensions } of models) {
    logger.warn({ live: { provider, model, dimensions }, answersBy, until: 'cairn reembed' }, 'model_changed');
  }
}

/**
 * Returns the model with a time limit for each call, since a query that waits for it has less time than a worker. A
 * call beyond the limit fails as on abort. `onReply` is not passed on.
 */
function limitedInTime(model: LanguageModel, timeoutMs: number): LanguageModel {
  return {
    ...model,
    complete(request, signal) {
      const timeout = AbortSignal.timeout(timeoutMs);
      return model.complete(request, signal ? AbortSignal.any([signal, timeout]) : timeout);
    },
  };
}
