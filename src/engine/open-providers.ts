import { createHash } from 'node:crypto';
import type { Config } from './config.ts';
import { costOf } from './control/prices.ts';
import { openProviderBudget, type ProviderBudget } from './control/provider-budget.ts';
import type { ProviderCall } from './ingest/call-provider.ts';
import { createEmbeddingGatherer, type EmbeddingGatherer } from './ingest/embedding-gatherer.ts';
import { createLimitedLanguageModel, type LanguageModelCall } from './limited-language-model.ts';
import type { Metrics } from './metrics.ts';
import type { Clock, Embedder, LanguageModel } from './ports.ts';
import type { EmbedLogEntry } from './types.ts';

export interface ProviderOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Told of every call of a provider, for the log of calls. */
  readonly onCall: (entry: EmbedLogEntry) => void;
}

/** An embedder or a language model with its limits, counted and logged. Whoever opened it closes it. */
export interface LimitedEmbedder {
  readonly gatherer: EmbeddingGatherer;
  close(): void;
}

/**
 * @param standIns servers of the same model, each with limits of its own, for when the embedder's own fails
 * @param ownLimits for one of several models at work: providers count each by itself, and the failures of one say nothing of another
 */
export function openLimitedEmbedder(
  embedder: Embedder,
  standIns: readonly Embedder[],
  options: ProviderOptions,
  { ownLimits = false }: { readonly ownLimits?: boolean } = {},
): LimitedEmbedder {
  const { config } = options;
  // An embedder that computes has nobody to be polite to.
  const budgets = embedder.cacheable
    ? [embedder, ...standIns].map((_, place) => openEmbeddingBudget(place, ownLimits ? embedder : null, options))
    : [];
  const [budget, ...others] = budgets;
  if (budget !== undefined && !ownLimits) options.metrics.watchBreaker('embedding', () => budget.isBreakerOpen());
  const maxBatchTexts = Math.min(config.OM_EMBED_BATCH_TEXTS, embedder.maxBatchTexts);
  const gatherer = createEmbeddingGatherer(embedder, {
    maxBatchTexts,
    maxBatchTokens: Math.min(
      config.OM_EMBED_BATCH_TOKENS,
      embedder.maxBatchTokens,
      // A call that needs most of a minute's tokens would wait for a minute without any.
      config.OM_EMBED_TPM === 0 ? Infinity : Math.ceil(config.OM_EMBED_TPM / 4),
    ),
    lingerMs: config.OM_EMBED_LINGER_MS,
    concurrency: config.OM_EMBED_CONCURRENCY,
    budget,
    fallbacks: standIns.map((standIn, place) => ({ embedder: standIn, budget: others[place] })),
    onCall: (call) => recordEmbedding(embedder, maxBatchTexts, call, options),
  });
  return { gatherer, close: () => budgets.forEach((one) => one.close()) };
}

export interface OpenLanguageModel {
  readonly languageModel: LanguageModel;
  close(): void;
}

export function openLimitedLanguageModel(model: LanguageModel, options: ProviderOptions): OpenLanguageModel {
  const { config, clock, metrics } = options;
  const budget = openProviderBudget({
    file: config.paths.llmBudget,
    role: 'language model',
    requestsPerMinute: config.OM_LLM_RPM,
    tokensPerMinute: config.OM_LLM_TPM,
    clock,
    onHeldBack: countHeldBack('language_model', metrics),
  });
  metrics.watchBreaker('language_model', () => budget.isBreakerOpen());
  const languageModel = createLimitedLanguageModel(model, {
    budget,
    onCall: (call) => recordAnswer(model, call, options),
  });
  return { languageModel, close: () => budget.close() };
}

/**
 * @param place 0 for the provider's own server, 1.. for those that stand in
 * @param model null for the limits of whatever else is asked there
 */
function openEmbeddingBudget(
  place: number,
  model: Embedder | null,
  { config, clock, metrics }: ProviderOptions,
): ProviderBudget {
  const parts = [...(model === null ? [] : [digestOf(model.model)]), ...(place === 0 ? [] : [place])];
  return openProviderBudget({
    file: config.paths.budget.replace(/\.sqlite$/, `${parts.map((part) => `-${part}`).join('')}.sqlite`),
    requestsPerMinute: config.OM_EMBED_RPM,
    tokensPerMinute: config.OM_EMBED_TPM,
    gapMs: config.OM_EMBED_DELAY_MS,
    clock,
    onHeldBack: countHeldBack('embedding', metrics),
  });
}

/** What a file may be named. */
function digestOf(model: string): string {
  return createHash('sha256').update(model).digest('hex').slice(0, 8);
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
  metrics.languageModelCalls.observe({ outcome }, ms / 1000);
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
  // What failed is not billed.
  const costUsd = isDone ? costOf(config.prices, call) : 0;
  if (isDone) {
    metrics.providerTokens.inc({ purpose: call.purpose }, call.tokens + call.outputTokens);
    metrics.providerCost.inc({ purpose: call.purpose }, costUsd);
  }
  onCall({ ...call, at: clock.now(), costUsd, error: isDone ? null : { code: outcome, message: error ?? '' } });
}
