import type { Config } from '../config.ts';
import type { Metrics } from '../metrics.ts';
import type { Clock, Embedder, LanguageModel } from '../ports.ts';
import type { OpenTenant } from '../open-tenant.ts';
import type { EmbeddingGatherer } from './embedding-gatherer.ts';

/** What the steps of one tenant's jobs work with, in a worker. */
export interface StepContext {
  /** The tenant's file; asked for again after every `await`, as it may have been closed meanwhile. */
  readonly open: () => OpenTenant;
  readonly config: Config;
  readonly clock: Clock;
  readonly embedder: Embedder | null;
  readonly gatherer: EmbeddingGatherer | null;
  /** null where none is configured. */
  readonly languageModel: LanguageModel | null;
  readonly newId: () => string;
  readonly metrics: Metrics;
}

/** Why a claim did not get through its step. */
export interface StepFailure {
  readonly claimSeq: number;
  readonly error: unknown;
}
