import type { Config } from './config.ts';
import type { ControlDatabase } from './control/control-database.ts';
import type { Metrics } from './metrics.ts';
import type { Clock, Embedder, Logger, QueueState } from './ports.ts';
import type { Tracing } from './tracing.ts';
import type {
  AddOptions,
  AddReply,
  NewLink,
  TimelineOptions,
  DocumentReply,
  DeleteReceipt,
  Document,
  DocumentChunk,
  EmbeddingState,
  DocumentFilter,
  EmbedLogEntry,
  EntityDetails,
  EntitySummary,
  ErasureFilter,
  Job,
  JobCounts,
  JobKind,
  JobState,
  JobSummary,
  Link,
  Memory,
  MemoryExplanation,
  MemoryFilter,
  MemoryPatch,
  MemoryQuery,
  NewDocument,
  NewMemory,
  ProviderUsage,
  QueryResult,
  ReembedStatus,
  RetrievalOptions,
  Revision,
  SectorStats,
  TenantStats,
  Timeline,
} from './types.ts';

/** What Cairn does, without a word about HTTP or queues. The API, the command line and the tests talk to this. */
export interface Engine {
  readonly config: Config;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** null when `OM_EMBEDDINGS=none`. */
  readonly embedder: Embedder | null;
  readonly control: ControlDatabase;
  /** null where nothing is traced. */
  readonly tracing: Tracing | null;
  /** The Redis of the queues, and what their names begin with there; null without one. */
  readonly queuesAt: { readonly redisUrl: string; readonly prefix: string } | null;
  /** Opens the tenant's file if need be. Throws `not_found`. */
  tenant(tenantId: string): Promise<Tenant>;
  queueState(): QueueState;
  /** Loads what asks the providers, so that the first query does not wait for it. What cannot be loaded fails when it is needed. */
  prepare(): Promise<void>;
  /** Applies what recall owes, checkpoints and closes every file. */
  close(): Promise<void>;
}

export interface ProviderCallFilter {
  /** Only calls that failed, or only those that completed. */
  readonly state?: 'failed' | 'completed' | undefined;
}

export interface JobFilter {
  readonly state?: JobState | undefined;
  readonly kind?: JobKind | undefined;
  readonly limit: number;
  readonly offset: number;
}

/** A file on its way to the disk. */
export interface Upload {
  /** Its name in the uploads folder, ours and not the caller's. */
  readonly name: string;
  readonly path: string;
  /** Removes the file, unless it was handed in. */
  discard(): void;
}

/** One tenant's memories. Reads resolve with what the latest commit left; writes resolve once they are on disk. */
export interface Tenant {
  readonly id: string;

  /**
   * Stores memories with their words and their ledger rows in one fsynced transaction. An item that is refused (a conflicting
   * `externalId`) spares the rest.
   * @throws EngineError `unprocessable` for a known Idempotency-Key with another body; `conflict` for one whose memory was deleted;
   *         `unavailable` with `retryAfterMs` over the backlog cap or while the file is locked; `storage_full`
   */
  addMemories(items: readonly NewMemory[], options?: AddOptions): Promise<AddReply>;
  /** Merges; keeps what it replaced; bumps `version`. Throws `not_found`, and `conflict` if `ifVersion` is not the current one. */
  patchMemory(id: string, patch: MemoryPatch, options?: { readonly ifVersion?: number | undefined }): Promise<Memory>;
  /** Erases a memory and all that was derived from it. Throws `not_found`. */
  deleteMemory(id: string): Promise<DeleteReceipt>;
  /** Erases all that match, documents in whatever state included, in slices, and says how many. Throws `invalid` for a filter that names nothing. */
  deleteMemories(filter: ErasureFilter): Promise<DeleteReceipt>;
  /** Adds `boost` (0..1) to salience and 0.1 to strength, each at most 1, and moves their anchors. Throws `not_found`. */
  reinforceMemory(id: string, boost: number): Promise<Memory>;

  getMemory(id: string): Promise<Memory>;
  /** Newest first. */
  listMemories(filter: MemoryFilter, page: { readonly limit: number; readonly offset: number }): Promise<Memory[]>;
  /** Newest first. Throws `not_found`. */
  listRevisions(id: string): Promise<Revision[]>;
  /** Strongest first. Throws `not_found`. */
  listLinks(id: string): Promise<Link[]>;
  /**
   * States a link, or changes the weight of one that is there. Throws `not_found`; `invalid` for a memory linked to itself or a type that
   * another call makes (`supersedes`, `contradicts`).
   */
  linkMemories(link: NewLink): Promise<Link>;
  /** Removes a stated link or a waypoint, and puts back the status that a `supersedes` or `contradicts` had changed. Throws `not_found`. */
  unlinkMemories(link: Pick<NewLink, 'src' | 'dst' | 'type'>): Promise<void>;
  /**
   * The old memory gives way to the new: its status is `superseded` and its validity ends where the new one's begins. Queries follow it
   * to the live end of its chain. Throws `not_found`; `conflict` where that would close a circle or the old one has a successor.
   */
  supersedeMemory(supersession: { readonly oldId: string; readonly newId: string }): Promise<Memory>;
  /**
   * The two say opposite things. With a winner the other's status is `contradicted`; without, a query that finds both lowers the weaker.
   * Throws `not_found`, `invalid`.
   */
  contradictMemories(contradiction: {
    readonly a: string;
    readonly b: string;
    readonly winner?: string | undefined;
  }): Promise<Link>;
  /** What stood around a memory in time, for its user, or only in its session. Throws `not_found`. */
  timeline(id: string, around: TimelineOptions): Promise<Timeline>;
  query(query: MemoryQuery, signal?: AbortSignal): Promise<QueryResult>;
  /** Why a memory did or did not come back for a query. Reinforces nothing. Throws `not_found` for the memory. */
  explain(query: MemoryQuery, memoryId: string, signal?: AbortSignal): Promise<MemoryExplanation>;
  /** What queries of this tenant take where they say nothing themselves. */
  retrievalDefaults(): Promise<RetrievalOptions>;
  /** Throws `invalid` for a reranker that this server has not got. */
  putRetrievalDefaults(options: RetrievalOptions): Promise<void>;
  sectorStats(): Promise<SectorStats[]>;
  /** Names that memories mention and that begin with `prefix`; '' lists all. Most mentioned first, ties by name. */
  listEntities(
    filter: { readonly prefix: string; readonly userId: string | undefined },
    page: { readonly limit: number; readonly offset: number },
  ): Promise<EntitySummary[]>;
  /** Whatever its spelling, if a memory that can be found mentions it. @throws EngineError `not_found` */
  getEntity(name: string, userId: string | undefined): Promise<EntityDetails>;
  stats(): Promise<TenantStats>;
  /** Calls of providers that are still kept (`OM_JOB_RETENTION_HOURS`), newest first. Calls for several tenants stand with one of them. */
  listProviderCalls(
    filter: ProviderCallFilter,
    page: { readonly limit: number; readonly offset: number },
  ): Promise<{ readonly items: EmbedLogEntry[]; readonly total: number }>;
  /** What was asked of providers from a time on, by day, newest first. */
  listProviderUsage(since: number): Promise<ProviderUsage[]>;

  /**
   * A place for a file that is about to arrive, beside the tenant's own. Whoever asked writes the file there, makes sure that it is on
   * disk for good, and hands it to `addDocument`, or discards it; what nobody owns is removed after twenty minutes.
   * @param bytes the most that will be written to it
   * @throws EngineError `unavailable` with `retryAfterMs` while there is no room for it beside the files that arrive or wait to be read
   *   (`OM_UPLOADS_MAX_MB`); `storage_full` where it would take what the disk needs for everything else
   */
  createUpload(bytes: number): Promise<Upload>;
  /**
   * Puts a document into the ledger. The same file again of the same user, or an external id or URL that is known, finds the document
   * that is there: it is read again if anything changed. Owns the upload from here on, whatever the outcome.
   * @throws EngineError `unavailable` over the backlog cap; `storage_full`
   */
  addDocument(document: NewDocument): Promise<DocumentReply>;
  /** Reads a document anew from another file or page; queries find the old one until the new one is complete. Throws `not_found`. */
  replaceDocument(id: string, document: NewDocument): Promise<DocumentReply>;
  /** Throws `not_found`. */
  getDocument(id: string): Promise<Document>;
  /** Newest first. */
  listDocuments(
    filter: DocumentFilter,
    page: { readonly limit: number; readonly offset: number },
  ): Promise<{ readonly items: Document[]; readonly total: number }>;
  /** The extracted Markdown in pieces that follow each other. Throws `not_found`; `conflict` while there is none. */
  documentContent(id: string): Promise<AsyncIterable<string>>;
  /** In the order of the text. Throws `not_found`. */
  listDocumentChunks(id: string, page: { readonly limit: number; readonly offset: number }): Promise<DocumentChunk[]>;
  /** Hides a document at once and erases it with all its chunks. Throws `not_found`. */
  deleteDocument(id: string): Promise<DeleteReceipt>;
  /** Ends the reading of a document; what was found of it before stays. Throws `not_found`; `conflict` where none is under way. */
  cancelDocument(id: string): Promise<Document>;

  /** Which model answers queries, and which one the settings ask for. */
  embedding(): Promise<EmbeddingState>;
  /**
   * How far a change of the model is, or what it would take. Counts memories, which takes some 50 ms for a million while one is under way; else
   * it looks which of them lack vectors, which takes 0.3 s.
   */
  reembedStatus(): Promise<ReembedStatus>;
  /**
   * Begins to embed all memories by the configured model, or goes on with what was paused or failed; where that model is live, fills gaps. A
   * change to another model is given up for it. A model that refuses more than one memory in a hundred (or a single one) fails and does not go
   * live, unless `withoutRefused` says so. Throws `invalid` with `OM_EMBEDDINGS=none`; `conflict` once another model has gone live and its
   * change is not finished.
   */
  startReembed(options?: { readonly withoutRefused?: boolean }): Promise<ReembedStatus>;
  /** Throws `conflict` where none is under way. */
  pauseReembed(): Promise<ReembedStatus>;
  /** Gives it up; what was embedded stays for a later start. Throws `conflict` where none is under way, or the new model is live. */
  cancelReembed(): Promise<ReembedStatus>;

  /**
   * Owes a reflecting on the latest memories of a user, or of one session of it: a language model writes down what follows from several of
   * them, each insight a memory of the type `reflection` that points to those it rests on. One that is owed already is that one.
   * Throws `invalid` without a language model; `not_found` for a user without memories.
   */
  reflect(scope: {
    readonly userId: string;
    readonly sessionId: string | null;
  }): Promise<{ readonly jobId: string; readonly token: string }>;
  /** What was concluded from a user's memories, newest first; the job that wrote it stands in its metadata as `reflection_job`. */
  listReflections(userId: string, limit: number): Promise<Memory[]>;

  getJob(id: string): Promise<Job>;
  /** Newest first, with what the ledger holds as a whole. */
  listJobs(filter: JobFilter): Promise<JobSummary & { readonly items: Job[]; readonly total: number }>;
  countJobs(): Promise<JobCounts>;
  /** Jobs that wait for a worker or for another attempt. Costs nothing for those that ended, unlike `countJobs`. */
  countWaitingJobs(): Promise<number>;
  /** Jobs that a worker holds, or held when it died and that nobody has taken back yet. */
  countActiveJobs(): Promise<number>;
  /** When the oldest unfinished job was made; null when none waits. */
  oldestWaitingJobAt(): Promise<number | null>;
  /** A dead, failed or cancelled job goes back to its step with a clean count. Throws `not_found`, `conflict`. */
  retryJob(id: string): Promise<Job>;
  /** An unfinished job ends as cancelled; its memory stays, found by words only. Throws `not_found`, `conflict`. */
  cancelJob(id: string): Promise<Job>;
  /** Removes a dead or cancelled job from the list. Throws `not_found`, `conflict`. */
  discardJob(id: string): Promise<void>;

  /**
   * Waits until the writes behind `token` are finished (or have failed for good), at most `timeoutMs`.
   * @returns false when time ran out. @throws EngineError `invalid` for a token this tenant did not give out
   */
  waitFor(token: string, timeoutMs: number, signal?: AbortSignal): Promise<boolean>;
}
