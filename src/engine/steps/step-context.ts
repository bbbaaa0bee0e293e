import type { Config } from '../config.ts';
import type { Metrics } from '../metrics.ts';
import type { Clock, DocumentParser, Embedder, LanguageModel, PageFetcher } from '../ports.ts';
import type { EmbeddingGatherer } from '../providers/embedding-gatherer.ts';
import { distinctModels } from '../store/live-model.ts';
import { isSameSpace, type OpenTenant, type SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { Tracing } from '../tracing.ts';

/** An embedder and what gathers its calls. */
export interface EmbeddingSource {
  readonly embedder: Embedder;
  readonly gatherer: EmbeddingGatherer;
}

/** What the steps of one tenant's jobs work with, in a worker. */
export interface StepContext {
  /** The tenant's file; asked for again after every `await`, as it may have been closed meanwhile. */
  readonly open: () => OpenTenant;
  readonly config: Config;
  readonly clock: Clock;
  readonly embedder: Embedder | null;
  readonly gatherer: EmbeddingGatherer | null;
  /** What embeds for another model than the embedder's; null, or left out, where the settings do not say how. */
  readonly sourceOf?: ((model: SpaceIdentity) => EmbeddingSource | null) | undefined;
  /** null where none is configured. */
  readonly languageModel: LanguageModel | null;
  /** null where no documents are read. */
  readonly documentParser: DocumentParser | null;
  readonly pageFetcher: PageFetcher | null;
  readonly newId: () => string;
  readonly metrics: Metrics;
  /** null, or left out, where nothing is traced. */
  readonly tracing?: Tracing | null | undefined;
}

/** Why a claim did not get through its step. */
export interface StepFailure {
  readonly claimSeq: number;
  readonly error: unknown;
}

/** What embeds for a model; null where the settings do not say how, or nothing is to be embedded. */
export function sourceOfModel(
  { embedder, gatherer, sourceOf }: Pick<StepContext, 'embedder' | 'gatherer' | 'sourceOf'>,
  model: SpaceIdentity,
): EmbeddingSource | null {
  if (embedder === null || gatherer === null) return null;
  return isSameSpace(model, embedder) ? { embedder, gatherer } : (sourceOf?.(model) ?? null);
}

/** What embeds for the live models, by their numbers; without those that the settings do not say how to reach. */
export function liveSources(context: StepContext): ReadonlyMap<number, EmbeddingSource> {
  const { liveModels } = context.open();
  const sources = (liveModels === null ? [] : distinctModels(liveModels)).flatMap((model) => {
    const source = sourceOfModel(context, model);
    return source === null ? [] : [[model.modelNo, source] as const];
  });
  return new Map(sources);
}
