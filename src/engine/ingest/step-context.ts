import type { Config } from '../config.ts';
import type { Metrics } from '../metrics.ts';
import type { Clock, DocumentParser, Embedder, LanguageModel, PageFetcher } from '../ports.ts';
import type { OpenTenant, SpaceIdentity } from '../open-tenant.ts';
import type { EmbeddingGatherer } from './embedding-gatherer.ts';

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
  /** What embeds for another model than the configured one; null, or left out, where the settings do not say how. */
  readonly sourceOf?: ((model: SpaceIdentity) => EmbeddingSource | null) | undefined;
  /** null where none is configured. */
  readonly languageModel: LanguageModel | null;
  /** null where no documents are read. */
  readonly documentParser: DocumentParser | null;
  readonly pageFetcher: PageFetcher | null;
  readonly newId: () => string;
  readonly metrics: Metrics;
}

/** Why a claim did not get through its step. */
export interface StepFailure {
  readonly claimSeq: number;
  readonly error: unknown;
}

/** What embeds for the live model; null where the settings do not say how, or nothing is to be embedded. */
export function liveSource({ open, embedder, gatherer, sourceOf }: StepContext): EmbeddingSource | null {
  const { live, configured } = open();
  if (live === null || embedder === null || gatherer === null) return null;
  return live.modelNo === configured?.modelNo ? { embedder, gatherer } : (sourceOf?.(live) ?? null);
}
