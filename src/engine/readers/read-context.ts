import type { Config } from '../config.ts';
import type { Clock, LanguageModel, Logger } from '../ports.ts';
import type { Questioner } from '../providers/query-embedder.ts';
import type { OpenTenant, SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { Tracing } from '../tracing.ts';

/** What a read command works with, on whatever thread it runs. */
export interface ReadContext {
  readonly config: Config;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Tracing of the stages of a query; null if the request is not traced. */
  readonly tracing: Tracing | null;
  /** Finds what embeds queries for a model; returns null if the settings do not say how to reach the model. */
  readonly questionerOf: (model: SpaceIdentity) => Questioner | null;
  /** The language model that queries may ask, limited in time; null without one. */
  readonly languageModel: LanguageModel | null;
  /** Returns the tenant's file, open for reading. Call it anew after each await: the file may have been closed. */
  readonly open: () => OpenTenant;
}
