import { EngineError, isEngineError } from '../errors.ts';
import { PROBE_TEXT } from '../providers/call-provider.ts';
import type { EmbeddingGatherer } from '../providers/embedding-gatherer.ts';
import { createProviderHealth } from '../providers/provider-health.ts';
import { sourceOfModel } from '../steps/step-context.ts';
import { distinctModels } from '../store/live-model.ts';
import type { SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { Batch, BatchContext } from './batch-context.ts';

/**
 * Returns the batch with a gatherer (sender of embedding calls) that records the answers and failures of the provider,
 * so that `recordEncodeFailures` can tell what is at fault. Only vectors that the provider returned count as an answer;
 * cached vectors never pass through the gatherer. With one model, only answers are recorded. With several models, one
 * may answer while another is down, so each model is watched separately, and a probe tells whether a failure is the
 * fault of the model or of a text.
 */
export function watchProvider(context: BatchContext): Batch {
  const { gatherer, embedder, sourceOf, provider = createProviderHealth() } = context;
  if (gatherer === null || embedder === null) return { ...context, provider };
  if (context.config.OM_EMBED_MODE === 'simple') {
    return { ...context, provider, gatherer: watch(gatherer, { answered: () => provider.noteAnswer() }) };
  }
  const { configuredModels } = context.open();
  const configured = new Set(configuredModels === null ? [] : distinctModels(configuredModels).map(nameOf));
  const models = { answered: new Set<string>(), failed: new Set<string>() };
  const watchModel = (of: EmbeddingGatherer, model: SpaceIdentity) =>
    watch(of, {
      answered: () => void models.answered.add(nameOf(model)),
      failed: () => void models.failed.add(nameOf(model)),
    });
  return {
    ...context,
    provider,
    models,
    gatherer: watchModel(gatherer, embedder),
    sourceOf(model) {
      const source = sourceOf?.(model) ?? null;
      // A live model that is not configured any more may never answer again, and no job waits for it.
      if (source === null || !configured.has(nameOf(model))) return source;
      return { ...source, gatherer: watchModel(source.gatherer, model) };
    },
  };
}

function watch(
  gatherer: EmbeddingGatherer,
  { answered, failed }: { readonly answered: () => void; readonly failed?: () => void },
): EmbeddingGatherer {
  return {
    ...gatherer,
    async embedAll(texts, purpose, signal) {
      try {
        const vectors = await gatherer.embedAll(texts, purpose, signal);
        if (vectors.length > 0) answered();
        return vectors;
      } catch (error) {
        if (isEngineError(error, 'unavailable') || isEngineError(error, 'rate_limited')) failed?.();
        throw error;
      }
    },
  };
}

/** Names a model as the settings do: `model@dimensions`. */
function nameOf({ model, dimensions }: SpaceIdentity): string {
  return `${model}@${dimensions}`;
}

/** Tells whether a batch succeeded: no pause is needed, and no model failed. */
export function hasWorked({ models }: Batch, pauseMs: number | null): boolean {
  return pauseMs === null && (models === undefined || models.failed.size === 0);
}

/**
 * Records for later batches which models answered and which failed. A model that answered at least once is not down:
 * the batch finds out why it failed for some texts.
 */
export function noteModels({ models, provider }: Batch): void {
  for (const model of models?.failed ?? []) provider.noteModel(model, false);
  for (const model of models?.answered ?? []) provider.noteModel(model, true);
}

/**
 * Tells whether a configured model was unavailable or limited its rate in this batch. Always false if the models are
 * not watched separately, as with `OM_EMBED_MODE=simple`.
 */
export function hasFailedModel({ models }: Batch): boolean {
  return models !== undefined && models.failed.size > 0;
}

/** Tells whether at least one configured model did not fail at its last call, or was not called yet. */
export function mayOtherModelAnswer({ provider, open }: Batch): boolean {
  const { configuredModels } = open();
  return (
    configuredModels !== null &&
    distinctModels(configuredModels).some((model) => !provider.isModelFailing(nameOf(model)))
  );
}

/**
 * Embeds a probe text with each configured model that failed in this batch; with a single model, by that one.
 * @returns whether all of them answered; true also if none of them is to be asked; false without configured models
 */
export async function answersProbe(batch: Batch, signal: AbortSignal | undefined): Promise<boolean> {
  const { configuredModels } = batch.open();
  if (configuredModels === null) return false;
  const asked = distinctModels(configuredModels).filter((model) => batch.models?.failed.has(nameOf(model)) ?? true);
  const probes = asked.map(async (model) => {
    const source = sourceOfModel(batch, model);
    if (source === null) throw new EngineError('unavailable', `no embedder for ${model.model}`);
    await source.gatherer.embed(PROBE_TEXT, 'document', signal);
  });
  return Promise.all(probes).then(
    () => true,
    () => false,
  );
}
