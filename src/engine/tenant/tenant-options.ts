import type { RecallEffects } from '../commands/reinforce.ts';
import type { Config } from '../config.ts';
import type { ControlChanges } from '../control/control-changes.ts';
import type { ControlDatabase } from '../control/control-database.ts';
import type { ArrivingSpace } from '../documents/arriving-space.ts';
import type { Metrics } from '../metrics.ts';
import type { Clock, JobDispatcher, LanguageModel, Logger, TextAnalyzer } from '../ports.ts';
import type { WebhookSender } from '../webhook-sender.ts';
import type { QueryEmbeddingSource } from '../providers/query-embedder.ts';
import type { Readers } from '../readers/readers.ts';
import type { RecallToKeep } from '../store/recalls.ts';
import type { OpenTenant, SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { Tracing } from '../tracing.ts';
import type { Writer } from '../writer/writer.ts';

/** What a tenant's methods need: its id and file, settings, and the services of the engine. */
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
  /** Returns what embeds queries by a model; null if the settings do not say how to reach that model. */
  readonly querySourceOf: (model: SpaceIdentity) => QueryEmbeddingSource | null;
  /**
   * The language model of `OM_LLM_MODEL`; null if none is set. A tenant only asks whether there is one; queries call it
   * on the readers.
   */
  readonly languageModel: LanguageModel | null;
  readonly control: ControlDatabase;
  readonly changeControl: ControlChanges['change'];
  /** Returns what finds personal data in a tenant's prose, by the tenant's id; null if `OM_PII_URL` is not set. */
  readonly analyzerOf: ((tenantId: string) => TextAnalyzer) | null;
  /** Returns the tenant's file, open for reading. Call it anew after each await: the pool may have closed the file. */
  readonly open: () => OpenTenant;
  /**
   * Runs reads, on reader threads where there are any. Short ones (`readFew`) run on this thread, unless the tenants
   * are in PostgreSQL and there are reader threads.
   */
  readonly readers: Readers;
  readonly writer: Writer;
  readonly dispatcher: JobDispatcher;
  readonly recalls: RecallBuffer;
  readonly webhookSender: WebhookSender;
  /**
   * Ids of the tenants that this process knows to have standing queries or webhooks. Their standing queries are
   * compared with new memories, and their webhooks delivered, regularly.
   */
  readonly tended: Set<string>;
  /** Counts the bytes that arriving files of all tenants of this process have still to write to the disk. */
  readonly arrivingSpace: ArrivingSpace;
}

/** Buffers what answered queries change and the entries of the recall log, so that a query never waits for a write. */
export interface RecallBuffer {
  /**
   * Adds what a recall (answered query) changes in the tenant's file at `path`, which is written soon. It never throws.
   */
  add(path: string, effects: RecallEffects): void;
  /**
   * Adds a recall (answered query) to those that wait to be logged in the tenant's file at `path`. It never throws. A
   * recall whose promise rejects is not logged.
   */
  log(path: string, recall: Promise<RecallToKeep>): void;
  /**
   * Writes what waits now for the tenant's file at `path`, or for all files if left out, and resolves once that is
   * on disk or dropped.
   */
  flush(path?: string): Promise<void>;
}
