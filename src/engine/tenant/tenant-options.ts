import type { RecallEffects } from '../commands/reinforce.ts';
import type { Config } from '../config.ts';
import type { ControlDatabase } from '../control/control-database.ts';
import type { Metrics } from '../metrics.ts';
import type { Clock, JobDispatcher, LanguageModel, Logger, TextAnalyzer } from '../ports.ts';
import type { WebhookSender } from '../webhook-sender.ts';
import type { QueryEmbeddingSource } from '../providers/query-embedder.ts';
import type { Readers } from '../readers/readers.ts';
import type { RecallToKeep } from '../store/recalls.ts';
import type { OpenTenant, SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { Tracing } from '../tracing.ts';
import type { Writer } from '../writer/writer.ts';

/** The parts that a tenant's methods use. */
export interface TenantOptions {
  /** Id of the tenant in the control database. */
  readonly id: string;
  /** Absolute path of the tenant's file. */
  readonly path: string;
  readonly config: Config;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Tracing of queries and writes; null if nothing is traced. */
  readonly tracing: Tracing | null;
  /** Returns the part that embeds queries by a model; null if the settings do not say how to reach that model. */
  readonly querySourceOf: (model: SpaceIdentity) => QueryEmbeddingSource | null;
  /** The language model that queries may call, limited in time; null if `OM_LLM_MODEL` is not set. */
  readonly languageModel: LanguageModel | null;
  readonly control: ControlDatabase;
  /** Returns the part that finds personal data in a tenant's prose, by its id; null if `OM_PII_URL` is not set. */
  readonly analyzerOf: ((tenantId: string) => TextAnalyzer) | null;
  /** Returns the tenant's file, open for reading. Call it anew after each await: the pool may have closed the file. */
  readonly open: () => OpenTenant;
  /** Runs the reads that may take long. */
  readonly readers: Readers;
  readonly writer: Writer;
  readonly dispatcher: JobDispatcher;
  readonly recalls: RecallBuffer;
  readonly webhookSender: WebhookSender;
  /**
   * Ids of the tenants that have standing queries or webhooks, as far as this process has learned of them. Their
   * standing queries are compared, and their webhooks delivered, regularly.
   */
  readonly tended: Set<string>;
}

/** Buffers the effects of recalls and the entries of the recall log, so that a query never waits for a write. */
export interface RecallBuffer {
  /** Adds the effects of a recall on the tenant's file at `path`, which are written soon. It never throws. */
  add(path: string, effects: RecallEffects): void;
  /**
   * Adds a recall to those that wait for the recall log of the tenant's file at `path`. It never throws. A recall whose
   * promise rejects is not logged.
   */
  log(path: string, recall: Promise<RecallToKeep>): void;
  /** Writes everything that waits, and resolves once it is on disk or dropped. */
  flush(): Promise<void>;
}
