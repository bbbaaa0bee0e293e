import path from 'node:path';
import { openStepQueues } from './adapters/bullmq-queues.ts';
import { createEmbedder } from './adapters/create-embedder.ts';
import { createLanguageModel } from './adapters/create-language-model.ts';
import { createPageFetcher } from './adapters/page-fetcher.ts';
import { requireVectorIndex } from './adapters/vector-index/open-vector-index.ts';
import { createParserPool } from './adapters/parser-pool.ts';
import { recreateEmbedder } from './adapters/recreate-embedder.ts';
import { createIndexMemory } from './adapters/following-index/index-memory.ts';
import { createCensusTaker } from './census.ts';
import { type Config, type NamedModel, withModel } from './config.ts';
import type { ControlDatabase } from './control/control-database.ts';
import { openControlDatabase } from './control/open-control-database.ts';
import { createDispatcher } from './dispatch/dispatcher.ts';
import { createTenantFinder, ledgerOverWriter, queuePrefix } from './dispatch/ledgers.ts';
import { createLookout } from './dispatch/lookout.ts';
import type { Engine, Tenant } from './engine.ts';
import { EngineError } from './errors.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import {
  silentLogger,
  systemClock,
  type Clock,
  type DocumentParser,
  type Embedder,
  type JobDispatcher,
  type LanguageModel,
  type Logger,
  type PageFetcher,
} from './ports.ts';
import type { EmbeddingGatherer } from './providers/embedding-gatherer.ts';
import { openLimitedEmbedder, openLimitedLanguageModel } from './providers/open-providers.ts';
import { createQueryEmbedder } from './providers/query-embedder.ts';
import type { EmbeddingSource } from './steps/step-context.ts';
import type { EmbedLogEntry } from './store/embeddings.ts';
import { areSameModels, distinctModels, numbersOf } from './store/live-model.ts';
import { countLacking } from './store/reembed.ts';
import { isSameSpace, openTenant, type OpenTenant, type SpaceIdentity } from './tenant-file/open-tenant.ts';
import { createTenantPool, type TenantPool } from './tenant-file/tenant-pool.ts';
import { createRecallBuffer } from './tenant/recall-buffer.ts';
import type { Questioner } from './tenant/tenant-options.ts';
import { createTenant } from './tenant/tenant.ts';
import { estimateTokens } from './text/tokens.ts';
import type { Tracing } from './tracing.ts';
import { SECTORS, type Sector } from './types.ts';
import { scheduleNames } from './upkeep/maintain.ts';
import { createInlineWriter } from './writer/inline-writer.ts';
import { createThreadWriter } from './writer/thread-writer.ts';
import type { Writer } from './writer/writer.ts';

export interface OpenEngineOptions {
  readonly config: Config;
  readonly clock?: Clock;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
  /** null where nothing is traced. Whoever made it closes it, after the engine. */
  readonly tracing?: Tracing | null;
  /** 'thread' for a server; 'inline' commits on this thread, by the given clock. */
  readonly writer?: 'thread' | 'inline';
  /** Whom to tell about new work; by default the queues in Redis, if `REDIS_URL` names one. */
  readonly dispatcher?: JobDispatcher | undefined;
}

/** What both sides of the pipeline share: the embedder, its gatherer, the language model and the pool of open files. */
export interface EngineParts {
  readonly embedder: Embedder | null;
  readonly gatherer: EmbeddingGatherer | null;
  /** The spaces that the settings ask for: one, or one a sector in the order of SECTORS; null where words only are searched. */
  readonly identity: SpaceIdentity | readonly SpaceIdentity[] | null;
  /**
   * What embeds for another model than the embedder's: one of a sector, or one that a file still has; null where the settings do not say
   * how.
   */
  readonly sourceOf: (model: SpaceIdentity) => EmbeddingSource | null;
  readonly languageModel: LanguageModel | null;
  readonly pool: TenantPool;
  /** What all processes may ask of providers. Whoever asked for the parts closes it. */
  readonly budget: { close(): void };
  /** What documents need, for workers only. Whoever asked for the parts closes both. */
  readonly documentParser: DocumentParser | null;
  readonly pageFetcher: PageFetcher | null;
}

/**
 * Makes the embedder, its gatherer, the language model and a pool of files for one thread.
 * @param onCall told of every provider call, for the log of calls
 */
export function openParts({
  config,
  clock,
  metrics,
  tracing,
  logger = silentLogger,
  role,
  onCall,
}: {
  config: Config;
  clock: Clock;
  metrics: Metrics;
  tracing?: Tracing | null;
  logger?: Logger;
  role: 'reader' | 'worker';
  onCall: (entry: EmbedLogEntry) => void;
}): EngineParts {
  requireVectorIndex(config.OM_VECTOR_INDEX);
  const options = { config, clock, metrics, tracing, onCall };
  const limited: { close(): void }[] = [];
  const opened = <T extends { close(): void }>(one: T): T => {
    limited.push(one);
    return one;
  };
  const embedder = createEmbedder(config);
  const gatherer =
    embedder &&
    opened(
      openLimitedEmbedder(
        embedder,
        createStandIns(config),
        { ownLimits: false, sectors: sectorsOf(config, embedder) },
        options,
      ),
    ).gatherer;
  const identity = embedder && identitiesOf(config, embedder);
  const model = createLanguageModel(config);
  const languageModel = model && opened(openLimitedLanguageModel(model, options)).languageModel;
  const sources = new Map<string, EmbeddingSource | null>();
  const sourceOf = (model: SpaceIdentity) => {
    const key = JSON.stringify(identityOf(model));
    const known = sources.get(key);
    if (known !== undefined) return known;
    const other = recreateEmbedder(config, model);
    const sectors = sectorsOf(config, model) ?? [];
    const ownLimits = sectors.length > 0;
    const standIns = ownLimits ? createStandIns(withModel(config, model)) : [];
    const source = other && {
      embedder: other,
      gatherer: opened(openLimitedEmbedder(other, standIns, { ownLimits, sectors }, options)).gatherer,
    };
    sources.set(key, source);
    return source;
  };
  // All of them now and not at their first call, so that each shows whether it is left alone, whichever process found that out.
  if (embedder !== null && Array.isArray(identity)) {
    for (const model of identity) if (!isSameSpace(model, embedder)) sourceOf(model);
  }
  const indexMemory = createIndexMemory(config.OM_INDEX_MEMORY_MB * 1024 * 1024);
  const reportUnknownFormat = createFormatReporter(metrics, logger);
  const pool = createTenantPool(config.OM_OPEN_TENANTS, (path) =>
    openTenant(path, {
      ...{ role, identity, now: clock.now(), indexMemory },
      vectorIndex: config.OM_VECTOR_INDEX,
      wordIndex: config.OM_WORD_INDEX,
      onUnknownWordFormat: () => reportUnknownFormat(path),
    }),
  );
  return {
    ...{ identity, sourceOf },
    ...{ embedder, gatherer, languageModel, pool },
    budget: { close: () => limited.forEach((one) => one.close()) },
    ...(role === 'worker' ? openReaders(config, metrics) : { documentParser: null, pageFetcher: null }),
  };
}

/** Counts files whose word index has a format that is not known, and says so of each file once, however often it is opened. */
function createFormatReporter(metrics: Metrics, logger: Logger): (file: string) => void {
  const reported = new Set<string>();
  return (file) => {
    metrics.wordIndexFallbacks.inc();
    if (reported.has(file)) return;
    reported.add(file);
    const until = 'a version of Cairn that knows it, or cairn rebuild-index';
    logger.warn({ file: path.basename(file), readBy: 'fts5-match', until }, 'word_index_format_unknown');
  };
}

function identitiesOf(config: Config, embedder: Embedder): SpaceIdentity | SpaceIdentity[] {
  const { sectorModels } = config;
  if (sectorModels === null) return identityOf(embedder);
  return sectorModels.map((model) => identityOf(createEmbedder(withModel(config, model))!));
}

/** The sectors that a model is configured for; null where one model embeds all. */
function sectorsOf({ sectorModels }: Config, { model, dimensions }: NamedModel): Sector[] | null {
  if (sectorModels === null) return null;
  return SECTORS.filter((_, place) => {
    const named = sectorModels[place];
    return named?.model === model && named.dimensions === dimensions;
  });
}

/** Other doors to the same vector space: the same model at other addresses. */
function createStandIns(config: Config): Embedder[] {
  return config.fallbacks.flatMap(
    ({ baseUrl, apiKey }) => createEmbedder({ ...config, OM_OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: apiKey }) ?? [],
  );
}

/** Neither starts a process or opens a socket before it is needed. */
function openReaders(config: Config, metrics: Metrics): Pick<EngineParts, 'documentParser' | 'pageFetcher'> {
  return {
    documentParser: createParserPool({
      size: config.OM_PARSERS,
      timeoutMs: config.OM_PARSE_TIMEOUT_MS,
      heapMb: config.OM_PARSE_HEAP_MB,
      onStart: () => metrics.parsers.inc(),
      onExit(reason) {
        metrics.parsers.dec();
        metrics.parserExits.inc({ reason });
      },
    }),
    pageFetcher: createPageFetcher({
      timeoutMs: config.OM_URL_TIMEOUT_MS,
      maxBytes: config.OM_URL_MAX_MB * 1024 * 1024,
    }),
  };
}

/** Builds an engine: the API, the command line and the tests start here. */
export async function openEngine(options: OpenEngineOptions): Promise<Engine> {
  const { config, clock = systemClock, logger = silentLogger, metrics = createMetrics(), tracing = null } = options;
  const control = openControlDatabase(config, clock);
  const { embedder, gatherer, identity, sourceOf, languageModel, pool, budget } = openParts({
    config,
    clock,
    metrics,
    tracing,
    logger,
    role: 'reader',
    // A query belongs to one tenant, but its call may be shared: the default tenant keeps the record.
    onCall: (entry) => void writer.write(config.paths.defaultTenant, 'appendEmbedLog', entry).catch(() => {}),
  });
  const writer =
    options.writer === 'inline'
      ? createInlineWriter({
          pool: createTenantPool(config.OM_OPEN_TENANTS, (path) =>
            openTenant(path, { role: 'acknowledger', identity, now: clock.now() }),
          ),
          config,
          clock,
          metrics,
          tracing,
        })
      : createThreadWriter({ config, identity, metrics, tracing });
  const recalls = createRecallBuffer(writer, logger);
  const questioners = new Map<EmbeddingSource, Questioner>();
  const configuredSource = embedder && gatherer && { embedder, gatherer };
  const questionerOf = (model: SpaceIdentity): Questioner | null => {
    const source = embedder !== null && isSameSpace(model, embedder) ? configuredSource : sourceOf(model);
    if (source === null) return null;
    let questioner = questioners.get(source);
    if (questioner === undefined) {
      const embedQuery = createQueryEmbedder({
        ...source,
        timeoutMs: config.OM_QUERY_EMBED_TIMEOUT_MS,
        logger,
        onLookup: (outcome, text) => countLookup(metrics, outcome, text),
      });
      questioners.set(source, (questioner = { embedder: source.embedder, embedQuery }));
    }
    return questioner;
  };
  const tenants = new Map<string, Tenant>();
  await writer.write(config.paths.defaultTenant, 'open', {});
  const { REDIS_URL: redisUrl } = config;
  const queuesAt = redisUrl === undefined ? null : { redisUrl, prefix: queuePrefix(pool, control) };
  const dispatcher =
    options.dispatcher ??
    (await openDispatcher({ config, clock, logger, metrics, tracing, control, queuesAt, writer }));
  warnOfOtherModel(pool.get(config.paths.defaultTenant), questionerOf, logger);
  const census = createCensusTaker({
    ...{ control, clock, logger },
    schedules: scheduleNames(config),
    onTaken: (busyMs) => metrics.censusDurations.observe(busyMs / 1000),
  });
  metrics.watchFiles(path.dirname(config.paths.defaultTenant), () => census.read());

  return {
    config,
    clock,
    logger,
    metrics,
    tracing,
    embedder,
    control,
    queuesAt,
    queueState: () => dispatcher.state?.() ?? { mode: 'embedded' },
    prepare: async () => void (await Promise.allSettled([embedder?.prepare?.(), languageModel?.prepare?.()])),
    async tenant(id) {
      const path = control.findTenantPath(id);
      if (path === undefined) {
        tenants.delete(id);
        throw new EngineError('not_found', 'no such tenant');
      }
      let tenant = tenants.get(id);
      if (tenant === undefined) {
        tenant = createTenant({
          id,
          path,
          config,
          clock,
          logger,
          metrics,
          tracing,
          questionerOf,
          languageModel: languageModel && limitedInTime(languageModel, config.OM_LLM_RERANK_TIMEOUT_MS),
          control,
          open: () => pool.get(path),
          writer,
          dispatcher,
          recalls,
        });
        tenants.set(id, tenant);
      }
      return tenant;
    },
    async close() {
      await census.close();
      await dispatcher.close();
      await recalls.flush();
      // Readers first: the last connection to close moves the log into the database, and a reader cannot.
      pool.close();
      budget.close();
      await writer.close();
      control.close();
    },
  };
}

/** The settings ask for another model than the one that made the vectors, or other settings left memories without them. */
function warnOfOtherModel(
  { store, liveModels, configuredModels }: OpenTenant,
  questionerOf: (model: SpaceIdentity) => Questioner | null,
  logger: Logger,
): void {
  if (liveModels === null) return;
  if (configuredModels !== null && areSameModels(numbersOf(liveModels), numbersOf(configuredModels))) {
    const { owed } = countLacking(store, configuredModels);
    if (owed > 0) logger.warn({ memories: owed, until: 'cairn reembed' }, 'memories_without_vectors');
    return;
  }
  const models = distinctModels(liveModels);
  const answersBy = models.some((model) => questionerOf(model) !== null) ? 'words and its vectors' : 'words';
  for (const { provider, model, dimensions } of models) {
    logger.warn({ live: { provider, model, dimensions }, answersBy, until: 'cairn reembed' }, 'model_changed');
  }
}

/** Over Redis where there is one; else nobody is told, and the workers' own sweep finds what is due. */
async function openDispatcher({
  config,
  clock,
  logger,
  metrics,
  tracing,
  control,
  queuesAt,
  writer,
}: {
  config: Config;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  tracing: Tracing | null;
  control: ControlDatabase;
  queuesAt: Engine['queuesAt'];
  writer: Writer;
}): Promise<JobDispatcher> {
  if (queuesAt === null) return { dispatch() {}, close: async () => {} };
  const queues = await openStepQueues({ ...queuesAt, logger });
  metrics.watchQueues(() => queues.counts());
  return createDispatcher({
    ledger: ledgerOverWriter({
      control,
      lookout: createLookout({ openMost: config.OM_OPEN_TENANTS, leaseMs: config.OM_LEASE_MS, clock }),
      clock,
      embedsHere: config.embedsHere,
      writer,
    }),
    queues,
    logger,
    metrics,
    tracing,
    leads: true,
    tenantOf: createTenantFinder(control),
  });
}

function countLookup(metrics: Metrics, outcome: 'hit' | 'miss', text: string): void {
  metrics.embeddingCache.inc({ cache: 'query', outcome });
  if (outcome === 'hit') metrics.savedTokens.inc({ cache: 'query' }, estimateTokens(text));
}

/** Who asks while a query waits has less time than a worker. */
function limitedInTime(model: LanguageModel, timeoutMs: number): LanguageModel {
  return {
    ...model,
    complete(request, signal) {
      const timeout = AbortSignal.timeout(timeoutMs);
      return model.complete(request, signal ? AbortSignal.any([signal, timeout]) : timeout);
    },
  };
}

/** Only what can cross to a thread. */
function identityOf({ provider, model, dimensions, encoding }: SpaceIdentity) {
  return { provider, model, dimensions, encoding };
}
