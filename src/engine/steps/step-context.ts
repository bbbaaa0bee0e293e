import type { WriteContext } from '../commands/write-context.ts';
import type { Config } from '../config.ts';
import type { DocumentShare } from '../control/document-shares.ts';
import type { Metrics } from '../metrics.ts';
import type { Clock, DocumentParser, Embedder, LanguageModel, PageFetcher } from '../ports.ts';
import type { PrivacyGuard } from '../privacy/guard.ts';
import type { EmbeddingGatherer } from '../providers/embedding-gatherer.ts';
import { distinctModels } from '../store/live-model.ts';
import { isSameSpace, type OpenTenant, type SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { Tracing } from '../tracing.ts';

/** An embedder with the gatherer that joins small calls of it into large ones. */
export interface EmbeddingSource {
  readonly embedder: Embedder;
  readonly gatherer: EmbeddingGatherer;
}

/** Context in which a worker runs the steps of one tenant's jobs. */
export interface StepContext {
  /**
   * Opens the tenant's file, or returns it if it is open. Call it again after every `await`, since the pool may have
   * closed the file meanwhile.
   */
  readonly open: () => OpenTenant;
  readonly config: Config;
  readonly clock: Clock;
  /** The configured embedder, and the gatherer of its calls; both null with `OM_EMBEDDINGS=none`. */
  readonly embedder: Embedder | null;
  readonly gatherer: EmbeddingGatherer | null;
  /**
   * Finds the embedder and gatherer of another model than that of `embedder`. It returns null if the settings do not
   * say how to reach that model. If the function is left out, no other model can be reached.
   */
  readonly sourceOf?: ((model: SpaceIdentity) => EmbeddingSource | null) | undefined;
  /** The configured language model; null if `OM_LLM_MODEL` is not set. */
  readonly languageModel: LanguageModel | null;
  /** The parser of documents; null if this worker reads no documents. */
  readonly documentParser: DocumentParser | null;
  /** The fetcher of pages; null if this worker fetches no pages. */
  readonly pageFetcher: PageFetcher | null;
  /** Screens what the steps store for the tenant; if it is left out, nothing is screened. */
  readonly guard?: PrivacyGuard | undefined;
  /**
   * Limits how much of the document parsers and page fetches the tenant uses, and makes its documents wait for its
   * quota of memories; if it is left out, nothing is limited.
   */
  readonly share?: DocumentShare | undefined;
  readonly newId: () => string;
  readonly metrics: Metrics;
  /** The tracing of steps; if it is null or left out, nothing is traced. */
  readonly tracing?: Tracing | null | undefined;
}

/**
 * Makes the context in which a step runs a command of the writer. It opens the tenant's file and fixes `now`, so make a
 * new one after each `await`. Its backlog begins at 0, since the limit on waiting jobs applies to adds only.
 */
export function writeContextOf({
  open,
  config,
  newId,
  clock,
}: Pick<StepContext, 'open' | 'config' | 'newId' | 'clock'>): WriteContext {
  const { store, indexes } = open();
  return { store, indexes, config, newId, now: clock.now(), backlog: { atMost: 0 }, writtenBy: null };
}

/** A job, by its number in the ledger, that failed at its step, with the error. */
export interface StepFailure {
  readonly jobNo: number;
  readonly error: unknown;
}

/**
 * Finds the embedder and gatherer of a model; null if the settings do not say how to reach it, or if nothing is
 * embedded.
 */
export function sourceOfModel(
  { embedder, gatherer, sourceOf }: Pick<StepContext, 'embedder' | 'gatherer' | 'sourceOf'>,
  model: SpaceIdentity,
): EmbeddingSource | null {
  if (embedder === null || gatherer === null) return null;
  return isSameSpace(model, embedder) ? { embedder, gatherer } : (sourceOf?.(model) ?? null);
}

/**
 * Returns the embedders and gatherers of the live models, by `modelNo`. Models that the settings do not say how to
 * reach are left out, so the map is empty if nothing can be embedded.
 */
export function liveSources(context: StepContext): ReadonlyMap<number, EmbeddingSource> {
  const { liveModels } = context.open();
  const sources = (liveModels === null ? [] : distinctModels(liveModels)).flatMap((model) => {
    const source = sourceOfModel(context, model);
    return source === null ? [] : [[model.modelNo, source] as const];
  });
  return new Map(sources);
}
