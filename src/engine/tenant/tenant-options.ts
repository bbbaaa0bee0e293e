import type { RecallEffects } from '../commands/reinforce.ts';
import type { Config } from '../config.ts';
import type { ControlDatabase } from '../control/control-database.ts';
import type { Metrics } from '../metrics.ts';
import type { Clock, Embedder, JobDispatcher, LanguageModel, Logger } from '../ports.ts';
import type { QueryEmbedder } from '../providers/query-embedder.ts';
import type { OpenTenant, SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { Tracing } from '../tracing.ts';
import type { Writer } from '../writer/writer.ts';

export interface TenantOptions {
  readonly id: string;
  readonly path: string;
  readonly config: Config;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tracing: Tracing | null;
  /** What turns questions into vectors of a model; null where the settings do not say how. */
  readonly questionerOf: (model: SpaceIdentity) => Questioner | null;
  readonly languageModel: LanguageModel | null;
  readonly control: ControlDatabase;
  /** The reader's connection; asked for at each use, as the pool may have closed it. */
  readonly open: () => OpenTenant;
  readonly writer: Writer;
  readonly dispatcher: JobDispatcher;
  readonly recalls: RecallBuffer;
}

/** An embedder, and its way to embed questions. */
export interface Questioner {
  readonly embedder: Embedder;
  readonly embedQuery: QueryEmbedder;
}

/** Collects what recalls owe, so that reading never waits for a write. */
export interface RecallBuffer {
  add(path: string, effects: RecallEffects): void;
}
