import { createHash } from 'node:crypto';
import type { Config } from '../config.ts';
import { counterPlaceOf } from '../control/counter-file.ts';
import type { CounterPlace } from '../control/counters.ts';
import { openProviderBudget, type ProviderBudget } from '../control/provider-budget.ts';
import type { Metrics } from '../metrics.ts';
import type { Clock, Embedder, LanguageModel } from '../ports.ts';
import { costOf } from '../prices.ts';
import type { Tracing } from '../tracing.ts';
import type { EmbedLogEntry, Sector } from '../types.ts';
import type { ProviderCall } from './call-provider.ts';
import { createEmbeddingGatherer, type EmbeddingGatherer } from './embedding-gatherer.ts';
import { createLimitedLanguageModel, type LanguageModelCall } from './limited-language-model.ts';

/** What the calls of embedders and language models are limited, counted and logged with. */
export interface ProviderOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly tracing?: Tracing | null | undefined;
  /** Called after every provider call, for the log of calls. */
  readonly onCall: (entry: EmbedLogEntry) => void;
}

/** An embedder whose calls are limited, counted and logged. The code that opens it must close it. */
export interface LimitedEmbedder {
  readonly gatherer: EmbeddingGatherer;
  close(): void;
}

/** The role of an embedder if several are used, as sectors may be embedded by different models. */
export interface EmbedderUse {
  /**
   * Whether the embedder has limits and a circuit breaker of its own, because it is one of several models in use:
   * providers count each model separately, and failures of one model say nothing about another.
   */
  readonly ownLimits: boolean;
  /**
   * The sectors whose memories the model embeds; null for all sectors, empty for a model that only made earlier
   * vectors.
   */
  readonly sectors: readonly Sector[] | null;
}

/**
 * Opens the budgets (limits of calls and tokens) of an embedder and makes the gatherer, which combines its calls.
 * @param standIns servers of the same model, each with limits of its own, which are called if the embedder's own fails
 */
export function openLimitedEmbedder(
  embedder: Embedder,
  standIns: readonly Embedder[],
  { ownLimits, sectors }: EmbedderUse,
  options: ProviderOptions,
): LimitedEmbedder {
  const { config } = options;
  // An embedder that computes by itself needs no budget.
  const budgets = embedder.cacheable
    ? [embedder, ...standIns].map((_, place) => openEmbeddingBudget(place, ownLimits ? embedder : null, options))
    : [];
  const [budget, ...others] = budgets;
  if (budget !== undefined) {
    const uses = sectors === null ? [{}] : sectors.map((sector) => ({ sector }));
    for (const use of uses)
      options.metrics.watchBreaker({ service: 'embedding', ...use }, () => budget.isBreakerOpen());
  }
  const maxBatchTexts = Math.min(config.OM_EMBED_BATCH_TEXTS, embedder.maxBatchTexts);
  const gatherer = createEmbeddingGatherer(embedder, {
    maxBatchTexts,
    maxBatchTokens: Math.min(
      config.OM_EMBED_BATCH_TOKENS,
      embedder.maxBatchTokens,
      // A call that took most of a minute's tokens would leave none to other calls for a minute.
      config.OM_EMBED_TPM === 0 ? Infinity : Math.ceil(config.OM_EMBED_TPM / 4),
    ),
    lingerMs: config.OM_EMBED_LINGER_MS,
    concurrency: config.OM_EMBED_CONCURRENCY,
    budget,
    fallbacks: standIns.map((standIn, place) => ({ embedder: standIn, budget: others[place] })),
    tracing: options.tracing,
    onCall: (call) => recordEmbedding(embedder, maxBatchTexts, call, options),
  });
  return { gatherer, close: () => budgets.forEach((opened) => opened.close()) };
}

/** A language model whose calls are limited, counted and logged. The code that opens it must close it. */
export interface OpenLanguageModel {
  readonly languageModel: LanguageModel;
  close(): void;
}

/**
 * Opens the budget (limits of calls and tokens) of a language model, and counts and logs its calls.
 * @param standIn a model that reranks if the first one fails; it has a budget and a circuit breaker of its own; null if
 *   there is none
 */
export function openLimitedLanguageModel(
  model: LanguageModel,
  standIn: LanguageModel | null,
  options: ProviderOptions,
): OpenLanguageModel {
  const first = openOne(model, [], options);
  if (standIn === null) return first;
  const second = openOne(standIn, [standIn.model], options);
  return {
    languageModel: withStandIn(first.languageModel, second.languageModel),
    close: () => [first, second].forEach((opened) => opened.close()),
  };
}

/** Wraps a model so that a rerank which fails is sent to another model, unless `signal` was aborted. */
function withStandIn(model: LanguageModel, standIn: LanguageModel): LanguageModel {
  return {
    ...model,
    complete: async (request, signal, onReply) =>
      model.complete(request, signal, onReply).catch((error: unknown) => {
        if (request.purpose !== 'rerank' || signal?.aborted === true) throw error;
        return standIn.complete(request, signal, onReply);
      }),
  };
}

/**
 * Opens the budget (limits of calls and tokens) of one model, and counts and logs its calls.
 * @param account values that give the model limits of its own, apart from those of the first model at the same server;
 *   empty for the first model
 */
function openOne(model: LanguageModel, account: readonly string[], options: ProviderOptions): OpenLanguageModel {
  const { config, clock, metrics } = options;
  const budget = openProviderBudget({
    file: budgetPlace(config, config.paths.llmBudget, [config.OM_LLM_BASE_URL, config.OM_LLM_API_KEY, ...account]),
    role: 'language model',
    requestsPerMinute: config.OM_LLM_RPM,
    tokensPerMinute: config.OM_LLM_TPM,
    clock,
    onHeldBack: countHeldBack('language_model', metrics),
  });
  if (account.length === 0) metrics.watchBreaker({ service: 'language_model' }, () => budget.isBreakerOpen());
  const languageModel = createLimitedLanguageModel(model, {
    budget,
    maxCached: config.OM_LLM_CACHE,
    tracing: options.tracing,
    onCall: (call) => recordAnswer(model, call, options),
  });
  return { languageModel, close: () => budget.close() };
}

/**
 * Opens the budget of one server of the embedding provider.
 * @param place 0 for the provider's own server, 1 and up for its fallback servers
 * @param model the model whose own limits these are; null for the limits that all other calls to the server share
 */
function openEmbeddingBudget(
  place: number,
  model: Embedder | null,
  { config, clock, metrics }: ProviderOptions,
): ProviderBudget {
  return openProviderBudget({
    file: budgetPlace(config, config.paths.budget, [...accountOf(config, place), model?.model]),
    requestsPerMinute: config.OM_EMBED_RPM,
    tokensPerMinute: config.OM_EMBED_TPM,
    gapMs: config.OM_EMBED_DELAY_MS,
    clock,
    onHeldBack: countHeldBack('embedding', metrics),
  });
}

/**
 * Returns what identifies the account for which a server counts limits: provider, address and key. Another provider or
 * key has its own limits.
 * @param place index of the server: 0 for the provider's own, 1 and up for its fallback servers
 */
function accountOf(config: Config, place: number): readonly (string | undefined)[] {
  if (place > 0) {
    const { baseUrl, apiKey } = config.fallbacks[place - 1]!;
    return ['openai', baseUrl, apiKey];
  }
  switch (config.OM_EMBEDDINGS) {
    case 'openai':
      return ['openai', config.OM_OPENAI_BASE_URL, config.OPENAI_API_KEY];
    case 'gemini':
      return ['gemini', config.OM_GEMINI_BASE_URL, config.GEMINI_API_KEY];
    case 'ollama':
      return ['ollama', config.OLLAMA_URL];
    case 'bedrock': {
      const { OM_BEDROCK_BASE_URL, AWS_REGION, AWS_BEARER_TOKEN_BEDROCK, AWS_ACCESS_KEY_ID } = config;
      return ['bedrock', OM_BEDROCK_BASE_URL ?? AWS_REGION, AWS_BEARER_TOKEN_BEDROCK ?? AWS_ACCESS_KEY_ID];
    }
    case 'synthetic':
    case 'local':
    case 'none':
      return [config.OM_EMBEDDINGS];
  }
}

/**
 * Returns where the budget of an account is stored: a `.sqlite` file, or its counterpart in PostgreSQL, with a digest
 * of the account in its name. The digest has 32 bits only, so that it reveals no key.
 */
function budgetPlace(config: Config, file: string, account: readonly (string | undefined)[]): CounterPlace {
  const digest = createHash('sha256').update(JSON.stringify(account)).digest('hex').slice(0, 8);
  return counterPlaceOf(config, file.replace(/\.sqlite$/, `-${digest}.sqlite`));
}

function countHeldBack(service: string, metrics: Metrics) {
  return (reason: string, ms: number) => {
    metrics.providerHeldBack.inc({ service, reason });
    metrics.providerWaits.inc({ service, reason }, ms / 1000);
  };
}

function recordEmbedding(
  { provider, model }: Embedder,
  maxBatchTexts: number,
  { purpose, texts, tokens, ms, outcome, error, server }: ProviderCall,
  options: ProviderOptions,
): void {
  const { metrics } = options;
  metrics.embeddingCalls.inc({ provider, purpose, outcome });
  metrics.embeddingCallDurations.observe({ purpose }, ms / 1000);
  if (purpose === 'document') metrics.embeddingBatchFill.observe(texts / maxBatchTexts);
  if (outcome === 'ok') metrics.embeddedTexts.inc({ provider, source: 'provider' }, texts);
  record({ provider, model, server, purpose, texts, tokens, outputTokens: 0, ms, outcome, error }, options);
}

function recordAnswer({ provider, model }: LanguageModel, call: LanguageModelCall, options: ProviderOptions): void {
  const { metrics } = options;
  const { purpose, inputTokens: tokens, outputTokens, ms, outcome, error } = call;
  metrics.languageModelCalls.inc({ outcome });
  metrics.languageModelCallDurations.observe(ms / 1000);
  if (outcome === 'ok') {
    metrics.languageModelTokens.inc({ direction: 'input' }, tokens);
    metrics.languageModelTokens.inc({ direction: 'output' }, outputTokens);
  }
  record({ provider, model, server: 0, purpose, texts: 1, tokens, outputTokens, ms, outcome, error }, options);
}

function record(
  {
    outcome,
    error,
    ...call
  }: Omit<EmbedLogEntry, 'at' | 'costUsd' | 'error'> & Pick<ProviderCall, 'outcome' | 'error'>,
  { config, clock, metrics, onCall }: ProviderOptions,
): void {
  const isDone = outcome === 'ok';
  // A failed call is not billed.
  const costUsd = isDone ? costOf(config.prices, call) : 0;
  if (isDone) {
    metrics.providerTokens.inc({ purpose: call.purpose }, call.tokens + call.outputTokens);
    metrics.providerCost.inc({ purpose: call.purpose }, costUsd);
  }
  onCall({ ...call, at: clock.now(), costUsd, error: isDone ? null : { code: outcome, message: error ?? '' } });
}
