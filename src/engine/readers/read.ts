import type { LanguageModel, Logger } from '../ports.ts';
import type { QueryEmbeddingSource } from '../providers/query-embedder.ts';
import type { SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { SharedFiles } from '../tenant-file/shared-files.ts';
import type { Span, Tracing } from '../tracing.ts';
import type { ReadCommandName } from './commands.ts';
import type { QueuedRead } from './fair-queue.ts';
import type { StandbyState } from './standby-state.ts';

/** A read that waits for a thread or runs on one. */
export interface Read extends QueuedRead {
  readonly name: ReadCommandName;
  /** Input of the command, as `packInput` returns it. */
  readonly input: unknown;
  readonly signal: AbortSignal | undefined;
  /** Span that was active when the read was requested; undefined if it is not traced. */
  readonly span: Span | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** Number of threads that ended while they had this read. */
  lost: number;
  /** Time at which a thread was given the read, by `performance.now()`; 0 before. */
  sentAt: number;
}

/** The services of a process for its reader threads: logging, tracing, provider calls, shared memory. */
export interface ThreadServices {
  readonly logger: Logger;
  readonly tracing: Tracing | null;
  /**
   * Returns the embedder of queries for a model, with the limits of its provider; null if the settings do not say how
   * to reach the model. `tenant` is the path of the file of the tenant that asks.
   */
  readonly querySourceOf: (model: SpaceIdentity, tenant: string) => QueryEmbeddingSource | null;
  /** The language model that queries may ask, with limits; null if none is configured. */
  readonly languageModel: LanguageModel | null;
  /** Called when a thread ended although it was not asked to. */
  readonly onThreadEnd: () => void;
  /** What is known of the standby from which threads may read; null without OM_DATABASE_READ_URL. */
  readonly standby: StandbyState | null;
  /** The memory that the threads share. */
  readonly sharedFiles: SharedFiles;
  /** Called with the path of a file whose word index has a format that only SQLite can read. */
  readonly onUnknownWordFormat: (path: string) => void;
}
