import type { Config } from '../config.ts';
import type { Clock, LanguageModel, Logger } from '../ports.ts';
import type { QueryEmbeddingSource } from '../providers/query-embedder.ts';
import type { OpenTenant, SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { Tracing } from '../tracing.ts';

/** What a read command works with, whichever thread it runs on. */
export interface ReadContext {
  readonly config: Config;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Tracing of the stages of a query; null if the request is not traced. */
  readonly tracing: Tracing | null;
  /** Returns the embedder of the tenant's queries for a model; null if the settings do not say how to reach it. */
  readonly querySourceOf: (model: SpaceIdentity) => QueryEmbeddingSource | null;
  /** The language model that the tenant's queries may ask, with limits; null if none is configured. */
  readonly languageModel: LanguageModel | null;
  /** Number of threads of this process that run reads, and share what memory reads may keep; 1 without such threads. */
  readonly threads: number;
  /**
   * Returns the tenant's file, opened for reading. It must be called anew after each await, as the file may have been
   * closed.
   */
  readonly open: () => OpenTenant;
}
