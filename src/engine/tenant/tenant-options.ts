import type { RecallEffects } from '../commands/reinforce.ts';
import type { Config } from '../config.ts';
import type { ControlDatabase } from '../control/control-database.ts';
import type { Metrics } from '../metrics.ts';
import type { Clock, JobDispatcher, LanguageModel, Logger, TextAnalyzer } from '../ports.ts';
import type { WebhookSender } from '../webhook-sender.ts';
import type { Questioner } from '../providers/query-embedder.ts';
import type { Readers } from '../readers/readers.ts';
import type { RecallToKeep } from '../store/recalls.ts';
import type { OpenTenant, SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { Tracing } from '../tracing.ts';
import type { Writer } from '../writer/writer.ts';

/** What a tenant works with. */
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
  /** Finds what embeds queries for a model; returns null if the settings do not say how to reach the model. */
  readonly questionerOf: (model: SpaceIdentity) => Questioner | null;
  /** The language model that queries may ask, limited in time; null without one. */
  readonly languageModel: LanguageModel | null;
  readonly control: ControlDatabase;
  /** Finds personal data in prose; null where the settings name no analyzer. */
  readonly analyzer: TextAnalyzer | null;
  /** Returns the tenant's file, open for reading. Call it anew after each await: the pool may have closed the file. */
  readonly open: () => OpenTenant;
  /** Runs the reads that may take long. */
  readonly readers: Readers;
  readonly writer: Writer;
  readonly dispatcher: JobDispatcher;
  readonly recalls: RecallBuffer;
  readonly webhookSender: WebhookSender;
  /** Ids of the tenants that have standing queries or webhooks, as far as this process knows. */
  readonly tended: Set<string>;
}

/** Collects the effects of recalls and what is logged of them, so that a query never waits for a write. */
export interface RecallBuffer {
  /** Notes the effects of a recall on the tenant's file at `path`; they are written soon. It never throws. */
  add(path: string, effects: RecallEffects): void;
  /** Notes a recall for the log of the tenant's file at `path`. It never throws. If the promise rejects, it is lost. */
  log(path: string, recall: Promise<RecallToKeep>): void;
  /** Writes what waits, and resolves once it is on disk or dropped. */
  flush(): Promise<void>;
}
