import type { LanguageModel, Logger } from '../ports.ts';
import type { Questioner } from '../providers/query-embedder.ts';
import type { SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { SharedFiles } from '../tenant-file/shared-files.ts';
import type { Span, Tracing } from '../tracing.ts';
import type { ReadCommandName } from './commands.ts';
import type { QueuedRead } from './fair-queue.ts';

/** A read that waits for a thread or runs on one. */
export interface Read extends QueuedRead {
  readonly name: ReadCommandName;
  readonly input: unknown;
  readonly signal: AbortSignal | undefined;
  /** The span that was active when the read was asked for; undefined if it is not traced. */
  readonly span: Span | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** Number of threads that ended while they had this read. */
  lost: number;
  /** Time at which a thread was given the read, as `performance.now()`. */
  sentAt: number;
}

/** What a thread does for its process besides reads: it logs, traces, and has it call providers. */
export interface ThreadServices {
  readonly logger: Logger;
  readonly tracing: Tracing | null;
  /** Finds what embeds queries for a model, for providers that are asked within limits. */
  readonly questionerOf: (model: SpaceIdentity) => Questioner | null;
  /** The language model that queries may ask, limited in time; null without one. */
  readonly languageModel: LanguageModel | null;
  /** Called when a thread has ended that was not told to. */
  readonly onThreadEnd: () => void;
  /** The memory that the threads share. */
  readonly sharedFiles: SharedFiles;
  /** Called when the thread finds a word index whose format only SQLite reads, with the file's path. */
  readonly onUnknownWordFormat: (path: string) => void;
}
