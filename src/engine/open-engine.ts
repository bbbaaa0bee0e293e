import { openStepQueues } from './adapters/bullmq-queues.ts';
import { createEmbedder } from './adapters/create-embedder.ts';
import { createLanguageModel } from './adapters/create-language-model.ts';
import type { Config } from './config.ts';
import type { ControlDatabase } from './control/control-database.ts';
import { openControlDatabase } from './control/open-control-database.ts';
import { openProviderBudget, type ProviderBudget } from './control/provider-budget.ts';
import { createDispatcher } from './dispatch/dispatcher.ts';
import { createTenantFinder, ledgerOverWriter, queuePrefix } from './dispatch/ledgers.ts';
import type { Engine, Tenant } from './engine.ts';
import { EngineError, serialiseError } from './errors.ts';
import { createEmbeddingGatherer, type EmbeddingGatherer, type ProviderCall } from './ingest/embedding-gatherer.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { openTenant } from './open-tenant.ts';
import {
  silentLogger,
  systemClock,
  type Clock,
  type Embedder,
  type JobDispatcher,
  type LanguageModel,
  type Logger,
} from './ports.ts';
import { createQueryEmbedder } from './retrieve/query-embedder.ts';
import { createRecallBuffer } from './recall-buffer.ts';
import type { EmbedLogEntry } from './store/embeddings.ts';
import { countJobs, oldestWaitingAt } from './store/jobs.ts';
import { createTenantPool, type TenantPool } from './store/tenant-pool.ts';
import { createTenant } from './tenant.ts';
import { JOB_STATES, type JobState } from './types.ts';
import { createInlineWriter } from './writer/inline-writer.ts';
import { createThreadWriter } from './writer/thread-writer.ts';
import type { Writer } from './writer/writer.ts';

export interface OpenEngineOptions {
  readonly config: Config;
  readonly clock?: Clock;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
  /** 'thread' for a server; 'inline' commits on this thread, by the given clock. */
  readonly writer?: 'thread' | 'inline';
  /** Whom to tell about new work; by default the queues in Redis, if `REDIS_URL` names one. */
  readonly dispatcher?: JobDispatcher | undefined;
}

/** What both sides of the pipeline share: the embedder, its gatherer, the language model and the pool of open files. */
export interface EngineParts {
  readonly embedder: Embedder | null;
  readonly gatherer: EmbeddingGatherer | null;
  readonly languageModel: LanguageModel | null;
  readonly pool: TenantPool;
  /** What all processes may ask the provider; null for an embedder that computes. Whoever asked for the parts closes it. */
  readonly budget: ProviderBudget | null;
}

/**
 * Makes the embedder, its gatherer, the language model and a pool of files for one thread.
 * @param onCall told of every provider call, for the log of calls
 */
export function openParts({
  config,
  clock,
  metrics,
  role,
  onCall,
}: {
  config: Config;
  clock: Clock;
  metrics: Metrics;
  role: 'reader' | 'worker';
  onCall: (entry: EmbedLogEntry) => void;
}): EngineParts {
  const embedder = createEmbedder(config);
  const budget = embedder?.cacheable ? openBudget({ config, clock, metrics }) : null;
  const gatherer = embedder && createGatherer({ embedder, config, clock, metrics, budget, onCall });
  const pool = createTenantPool(config.OM_OPEN_TENANTS, (path) =>
    openTenant(path, { role, identity: embedder, now: clock.now() }),
  );
  return { embedder, gatherer, languageModel: measured(createLanguageModel(config), metrics), pool, budget };
}

/** Builds an engine: the API, the command line and the tests start here. */
export async function openEngine(options: OpenEngineOptions): Promise<Engine> {
  const { config, clock = systemClock, logger = silentLogger, metrics = createMetrics() } = options;
  const control = openControlDatabase(config, clock);
  const { embedder, gatherer, languageModel, pool, budget } = openParts({
    config,
    clock,
    metrics,
    role: 'reader',
    // A query belongs to one tenant, but its call may be shared: the default tenant keeps the record.
    onCall: (entry) => void writer.write(config.paths.defaultTenant, 'appendEmbedLog', entry).catch(() => {}),
  });
  const writer =
    options.writer === 'inline'
      ? createInlineWriter({
          pool: createTenantPool(config.OM_OPEN_TENANTS, (path) =>
            openTenant(path, { role: 'acknowledger', identity: embedder, now: clock.now() }),
          ),
          config,
          clock,
          metrics,
        })
      : createThreadWriter({ config, identity: embedder && identityOf(embedder), metrics });
  const recalls = createRecallBuffer(writer, logger);
  const embedQuery =
    embedder &&
    gatherer &&
    createQueryEmbedder({ embedder, gatherer, timeoutMs: config.OM_QUERY_EMBED_TIMEOUT_MS, logger });
  const tenants = new Map<string, Tenant>();
  await writer.write(config.paths.defaultTenant, 'open', {});
  const dispatcher =
    options.dispatcher ?? (await openDispatcher({ config, clock, logger, metrics, control, pool, writer }));
  const { space, indexes } = pool.get(config.paths.defaultTenant);
  const otherModels = indexes.size - (space === null ? 0 : 1);
  // Memories encoded by another model are found by their words alone until they are encoded again.
  if (otherModels > 0) logger.warn({ otherModels }, 'vectors_of_other_models');
  watchLedgers(metrics, clock, pool);

  return {
    config,
    clock,
    logger,
    metrics,
    embedder,
    control,
    queueState: () => dispatcher.state?.() ?? { mode: 'embedded' },
    tenant(id) {
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
          embedder,
          embedQuery,
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
      await dispatcher.close();
      await recalls.flush();
      // Readers first: the last connection to close moves the log into the database, and a reader cannot.
      pool.close();
      budget?.close();
      await writer.close();
      control.close();
    },
  };
}

/** Over Redis where there is one; else nobody is told, and the workers' own sweep finds what is due. */
async function openDispatcher({
  config,
  clock,
  logger,
  metrics,
  control,
  pool,
  writer,
}: {
  config: Config;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  control: ControlDatabase;
  pool: TenantPool;
  writer: Writer;
}): Promise<JobDispatcher> {
  const redisUrl = config.REDIS_URL;
  if (redisUrl === undefined) return { dispatch() {}, close: async () => {} };
  return createDispatcher({
    ledger: ledgerOverWriter({ control, pool, clock, writer }),
    queues: await openStepQueues({ redisUrl, prefix: queuePrefix(pool, control), logger, metrics }),
    logger,
    metrics,
    leads: true,
    tenantOf: createTenantFinder(control),
  });
}

/** Reads the ledgers of the open files whenever the metrics are asked for. */
function watchLedgers(metrics: Metrics, clock: Clock, pool: TenantPool): void {
  metrics.watchLedgers(() => {
    const ledgers = pool.openPaths().map((path) => {
      const { store } = pool.get(path);
      return { counts: countJobs(store), oldestAt: oldestWaitingAt(store) };
    });
    const counts = Object.fromEntries(
      JOB_STATES.map((state) => [state, ledgers.reduce((sum, ledger) => sum + ledger.counts[state], 0)]),
    ) as Record<JobState, number>;
    const oldest = Math.min(...ledgers.map((ledger) => ledger.oldestAt ?? Infinity));
    return { counts, oldestAgeMs: Number.isFinite(oldest) ? Math.max(0, clock.now() - oldest) : 0 };
  });
}

function createGatherer({
  embedder,
  config,
  clock,
  metrics,
  budget,
  onCall,
}: {
  embedder: Embedder;
  config: Config;
  clock: Clock;
  metrics: Metrics;
  budget: ProviderBudget | null;
  onCall: (entry: EmbedLogEntry) => void;
}): EmbeddingGatherer {
  const { provider, model } = embedder;
  return createEmbeddingGatherer(embedder, {
    maxBatchTexts: Math.min(config.OM_EMBED_BATCH_TEXTS, embedder.maxBatchTexts),
    maxBatchTokens: Math.min(
      config.OM_EMBED_BATCH_TOKENS,
      embedder.maxBatchTokens,
      // A call that needs most of a minute's tokens would wait for a minute without any.
      config.OM_EMBED_TPM === 0 ? Infinity : Math.ceil(config.OM_EMBED_TPM / 4),
    ),
    lingerMs: config.OM_EMBED_LINGER_MS,
    concurrency: config.OM_EMBED_CONCURRENCY,
    budget: budget ?? undefined,
    delayMs: config.OM_EMBED_DELAY_MS,
    onCall({ purpose, texts, tokens, ms, outcome, error }: ProviderCall) {
      metrics.embeddingCalls.observe({ provider, purpose, outcome }, ms / 1000);
      if (outcome === 'ok') metrics.embeddedTexts.inc({ provider, source: 'provider' }, texts);
      onCall({
        at: clock.now(),
        provider,
        model,
        purpose,
        texts,
        tokens,
        ms,
        error: outcome === 'ok' ? null : { code: outcome, message: error ?? '' },
      });
    },
  });
}

function measured(model: LanguageModel | null, metrics: Metrics): LanguageModel | null {
  if (model === null) return null;
  return {
    ...model,
    async complete(request, signal) {
      const started = performance.now();
      const observe = (outcome: string) =>
        metrics.languageModelCalls.observe({ outcome }, (performance.now() - started) / 1000);
      try {
        const completion = await model.complete(request, signal);
        observe('ok');
        metrics.languageModelTokens.inc({ direction: 'input' }, completion.inputTokens);
        metrics.languageModelTokens.inc({ direction: 'output' }, completion.outputTokens);
        return completion;
      } catch (error) {
        observe(serialiseError(error).code);
        throw error;
      }
    },
  };
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

function openBudget({
  config: { paths, OM_EMBED_RPM, OM_EMBED_TPM },
  clock,
  metrics,
}: {
  config: Config;
  clock: Clock;
  metrics: Metrics;
}): ProviderBudget {
  const budget = openProviderBudget({
    file: paths.budget,
    requestsPerMinute: OM_EMBED_RPM,
    tokensPerMinute: OM_EMBED_TPM,
    clock,
    onHeldBack(reason, ms) {
      metrics.providerHeldBack.inc({ reason });
      metrics.providerWaits.inc({ reason }, ms / 1000);
    },
  });
  metrics.watchBreaker(() => budget.isBreakerOpen());
  return budget;
}

/** Only what can cross to a thread. */
function identityOf({ provider, model, dimensions, encoding }: Embedder) {
  return { provider, model, dimensions, encoding };
}
