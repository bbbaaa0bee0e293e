import type { Config } from './config.ts';
import type { QueuePlace } from './dispatch/dispatch-ports.ts';
import type { ControlChanges } from './control/control-changes.ts';
import type { ControlDatabase } from './control/control-database.ts';
import type { Lead } from './lead.ts';
import type { GuessLimit } from './control/guess-limit.ts';
import type { RateLimits } from './control/rate-limits.ts';
import type { StreamShares } from './control/stream-shares.ts';
import type { Metrics } from './metrics.ts';
import type { Clock, Embedder, Logger, QueueState } from './ports.ts';
import type { Tracing } from './tracing.ts';
import type {
  AuditDetail,
  AuditFilter,
  AuditRecord,
  AddDocumentOptions,
  AddItem,
  AddOptions,
  AddReply,
  BatchReceipts,
  Consolidations,
  Contradiction,
  NamedLink,
  NewLink,
  PatchOptions,
  Supersession,
  PairsWanted,
  Proposal,
  TimelineOptions,
  DocumentReply,
  BoundOptions,
  DefaultsChange,
  DocumentDeleteOptions,
  Differences,
  Document,
  DocumentChunk,
  DocumentFilter,
  EmbedLogEntry,
  EntityDetails,
  EntityList,
  ErasureFilter,
  ErasureReceipt,
  Erasures,
  Evals,
  EventFeed,
  Jobs,
  Learning,
  ModelChange,
  Link,
  Lists,
  Memory,
  MemoryExplanation,
  MemoryFilter,
  MemoryPatch,
  MemoryStream,
  Screened,
  MemoryQuery,
  NearDuplicates,
  NewDocument,
  Portable,
  ProviderCallFilter,
  PrivacySettings,
  ProviderUsage,
  Upload,
  QueryResult,
  RecallLog,
  Receipted,
  Reflections,
  RetrievalOptions,
  Revision,
  SectorStats,
  TenantStats,
  TextReceipt,
  Timeline,
  Page,
  RevisionPage,
  SessionLogs,
  Standing,
  Upkeep,
  TenantLooks,
} from './types.ts';

/** The whole service without HTTP and queues. The API, the command line, the tests and other programs call it. */
export interface Engine {
  readonly config: Config;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** The embedder that the settings name; null with `OM_EMBEDDINGS=none`. */
  readonly embedder: Embedder | null;
  /** The database of tenants, keys and settings: a file beside the tenants' files, or a schema of OM_DATABASE_URL. */
  readonly control: ControlDatabase;
  /** Calls a method of `control` that changes something. With PostgreSQL another thread does it: that may take long. */
  readonly changeControl: ControlChanges['change'];
  /** The rate limits of all keys, counted for all processes of the folder, or all nodes of the database, together. */
  readonly rates: RateLimits;
  /** Says for how long an address's keys are to be refused, after too many wrong ones. Its callers refuse them. */
  readonly guesses: GuessLimit;
  /** The open event streams of each tenant, counted for all processes of the folder, or nodes of the database. */
  readonly streams: StreamShares;
  /** The tracing that this engine was opened with; null if nothing is traced. */
  readonly tracing: Tracing | null;
  /** Where the queues are; null without `REDIS_URL` and `OM_DATABASE_URL`. */
  readonly queuesAt: QueuePlace | null;
  /** Commits and dispatches jobs on behalf of the machine's other API processes, which do not do so themselves. */
  readonly lead: Lead;
  /** Returns a tenant by its id, whose file its methods open. @throws EngineError `not_found` if there is none */
  tenant(tenantId: string): Promise<Tenant>;
  /** Finds the tenants that have something to do without opening all of them. */
  readonly looks: TenantLooks;
  /** Ids of the tenants that this process knows to have webhooks or standing queries. */
  readonly tended: Set<string>;
  /** Says whether workers take jobs from the tenants' files or from queues, and whether these can be reached. */
  queueState(): QueueState;
  /** `up` if reads go to the standby, `down` if the primary answers for it; null without OM_DATABASE_READ_URL. */
  standbyState(): 'up' | 'down' | null;
  /** Loads the models ahead of the first query. If one fails to load, only the call that needs it throws. */
  prepare(): Promise<void>;
  /** Writes what answered queries still have to change, and closes every file. The engine cannot be used afterwards. */
  close(): Promise<void>;
}

/**
 * One tenant's memories, documents and jobs. A read sees everything that was committed before it began (from a
 * standby: through this process). A write resolves once its commit is on disk. All times are Unix milliseconds. Every
 * write can also throw EngineError `unavailable`, with `retryAfterMs`, while another connection holds the file;
 * `storage_full` if the disk or the tenant's quota is full; `unprocessable` if the privacy policy refuses a text.
 */
export interface Tenant
  extends
    PrivacySettings,
    Lists,
    SessionLogs,
    EventFeed,
    Differences,
    RecallLog,
    Jobs,
    ModelChange,
    Portable,
    Upkeep,
    Evals,
    Standing,
    Erasures,
    BatchReceipts,
    Learning,
    Reflections,
    Consolidations {
  readonly id: string;
  /**
   * Returns this tenant for one caller: what is written through it is marked as written by the key.
   * @param keyId public id of the key; `environment`, `anonymous`, `cli` and `oidc:…` are callers without a stored key
   */
  as(keyId: string): Tenant;
  /**
   * Returns this tenant for one caller that may be refused meanwhile, such as one whose key is revoked during a delete
   * of many commits. What a method has written by then stays written, as after any failure.
   * @param check is called before each write, which fails with what it throws
   */
  whileAdmitted(check: () => void): Tenant;
  /** Lists records of the audit log, the newest first. Rejects with the reason of `signal` once it is aborted. */
  listAudit(filter: AuditFilter, signal?: AbortSignal): Promise<AuditRecord[]>;
  /** Appends a record to the audit log for an action that does not write to this tenant's file, such as a read. */
  recordAction(action: string, detail: AuditDetail): Promise<void>;

  /**
   * Stores memories with their words and jobs, and resolves once they are on disk. They are then found by their words;
   * a worker adds vectors and links later. The reply has one outcome for each item, in order: stored, `duplicate` for a
   * memory that is there already and is reinforced, or rejected alone. The items may take several transactions, unless
   * they are derived or `allOrNothing` is set.
   * @throws EngineError, and stores nothing: `unavailable` with `retryAfterMs` over `OM_MAX_BACKLOG`; `storage_full`
   *   over the quota or on a full disk; `unprocessable` for an Idempotency-Key of another body, `conflict` if a memory
   *   that it made was deleted; with `allOrNothing` the error of the first rejected item. A large add with an
   *   Idempotency-Key may have stored some items; sent again, it stores the others
   */
  addMemories(items: readonly AddItem[], options?: AddOptions): Promise<AddReply>;
  /**
   * Changes the fields that `patch` names, with the effects that `MemoryPatch` describes, and returns the memory. The
   * old values are kept as a revision and `version` is raised by 1. If nothing changes, nothing is written.
   * @throws EngineError `not_found`; `conflict` if `ifVersion` is not the current version, for the status of a
   *   superseded or contradicted memory, the content, title or expiry of a part of a document, or an item's content
   *   that several strings of its value make; `invalid` for merged metadata over 16 KiB, a `validTo` not later than
   *   `validFrom`, or an item's value that would exceed 256 KiB
   */
  patchMemory(id: string, patch: MemoryPatch, options?: PatchOptions): Promise<Memory & Screened>;
  /**
   * Erases a memory with its vectors, links and revisions, and the reflections and consolidated memories made from it.
   * The root memory of a document takes the whole document with it.
   * @throws EngineError `not_found`, also for a document that lacks a tag of `withinTags`; `conflict` for a chunk
   */
  deleteMemory(id: string, options?: BoundOptions): Promise<Receipted>;
  /**
   * Erases all memories and documents that match a filter, whatever their status, in several commits, and counts what
   * was erased. A document is erased as a whole if any chunk of it matches; one that has not been read yet matches by
   * its own user, session, tags and writer. A filter of nothing but users and sessions also erases their session logs
   * and recalls (answered queries); one of nothing but users, their standing queries, webhooks and evaluation items.
   * A filter with writers also erases the log items that they wrote and, with nothing else but users, the standing
   * queries and webhooks that they stored. A filter that names only writers undoes all that they did: their links are
   * removed as well, and memories of others that they changed get their former values back.
   * @throws EngineError `invalid` without any condition; `unavailable` if another delete erases the same for 25 s
   */
  deleteMemories(filter: ErasureFilter): Promise<Receipted<ErasureReceipt>>;
  /**
   * Raises a memory's salience by `boost`, within one hour by at most `OM_REINFORCE_PER_HOUR`, and its strength by 0.1,
   * each to at most 1. With a `boost` of 0 or once the hour's limit is reached, only `lastSeenAt` changes.
   * @param boost 0..1
   * @returns the memory with its new values
   * @throws EngineError `not_found`; `storage_full` over the quota of disk, as an audit record is written
   */
  reinforceMemory(id: string, boost: number, options?: BoundOptions): Promise<Memory>;

  /**
   * Returns a memory by its id, whatever its status.
   * @throws EngineError `not_found`, also for a memory that has expired, or a chunk of a reading of a document that is
   *   not complete yet or has been replaced
   */
  getMemory(id: string): Promise<Memory>;
  /**
   * Lists the memories that match a filter, last added first. Only memories whose validity holds now are listed and,
   * unless the filter names statuses, only active ones.
   * @throws EngineError `invalid` for a malformed condition on metadata
   */
  listMemories(filter: MemoryFilter, page: Page): Promise<Memory[]>;
  /**
   * Lists what `listMemories` lists, in slices; the iteration throws the same errors. Each slice has at most half a
   * megabyte of text or one memory, or none. A memory that is erased before its slice is read is left out.
   */
  streamMemories(filter: MemoryFilter, page: Page): MemoryStream;
  /** Lists what each update of a memory replaced, newest update first. Throws EngineError `not_found`. */
  listRevisions(id: string, page?: RevisionPage): Promise<Revision[]>;
  /** Lists what `listRevisions` lists, in slices read when asked for. The iteration throws EngineError `not_found`. */
  streamRevisions(id: string, page: RevisionPage): AsyncIterable<readonly Revision[]>;
  /** Lists at most 1,000 links of a memory in both directions, strongest first. Throws EngineError `not_found`. */
  listLinks(id: string): Promise<Link[]>;
  /**
   * Lists contradictions of active memories that Cairn or a language model proposes and nobody has confirmed or
   * decided, latest first. The list ends early once its texts reach 4 MiB.
   */
  listProposals(wanted: PairsWanted): Promise<Proposal[]>;
  /**
   * Lists pairs of active memories of one user that say nearly the same, the most similar first.
   * @param asked.leastSimilarity cosine similarity from which a pair is listed, 0..1
   */
  listNearDuplicates(asked: PairsWanted & { readonly leastSimilarity: number }): Promise<NearDuplicates>;
  /**
   * Adds a link between two memories, or changes the weight of the link that exists.
   * @returns the link as seen from `src`
   * @throws EngineError `not_found` for a memory; `invalid` for a memory linked to itself, or for the types
   *   `supersedes` and `contradicts`, which have methods of their own; `conflict` for the `derived_from` link from a
   *   consolidated memory to a source
   */
  linkMemories(link: NewLink, options?: BoundOptions): Promise<Link>;
  /**
   * Removes a link, stated or made by Cairn; the two memories of a contradiction may be given in either order. If a
   * `supersedes` or `contradicts` link had changed a memory's status, that status is restored.
   * @throws EngineError `not_found` for a memory, or if there is no such link; `conflict` for the `derived_from` link
   *   from a consolidated memory to a source, or a link of a chain with over 500 memories on both sides of it
   */
  unlinkMemories(link: NamedLink, options?: BoundOptions): Promise<void>;
  /**
   * Replaces an old memory by a newer one: the old one becomes `superseded`, and its validity ends where that of the
   * new one begins. Queries that match the old memory return the live end of its chain of successors.
   * @returns the old memory as it is now
   * @throws EngineError `not_found`; `invalid` for one memory given twice or memories of two users; `conflict` if the
   *   chain would close a circle or join two of over 500 memories, or if the old memory has another successor
   */
  supersedeMemory(supersession: Supersession, options?: BoundOptions): Promise<Memory>;
  /**
   * States that two memories contradict each other. With a `winner` the other memory becomes `contradicted`, unless it
   * is superseded. Without one no status changes, and a query that finds both lowers the score of the weaker.
   * @returns the link as seen from `a`
   * @throws EngineError `not_found`; `invalid` for one memory given twice, memories of two users, or a winner that is
   *   neither of them
   */
  contradictMemories(contradiction: Contradiction, options?: BoundOptions): Promise<Link>;
  /**
   * Lists the active, valid memories just before and after a memory by event time, those of its user or only those of
   * its session. The memory itself may have any status. At most 5,000 memories are examined on each side.
   * @throws EngineError `not_found`
   */
  timeline(id: string, around: TimelineOptions): Promise<Timeline>;
  /**
   * Searches the memories by words, vectors and links. If the query's vector cannot be made in time, it searches by
   * words alone and sets `degraded`. Unless the query or the settings say otherwise, the memories that are returned are
   * reinforced soon afterwards, and the answer is stored in the recall log.
   * @throws EngineError `invalid` for a malformed metadata condition, sectors with `asOf.recorded`, a weight that the
   *   profile does not read, or a reranker that this server does not have; on abort, the reason of `signal`
   */
  query(query: MemoryQuery, signal?: AbortSignal): Promise<QueryResult>;
  /**
   * Explains why a memory is or is not among the hits of a query, and what would change that. It reinforces nothing.
   * @throws EngineError `not_found` for the memory, also if `filter.userIds` does not name its user; else the errors
   *   of `query`
   */
  explain(query: MemoryQuery, memoryId: string, signal?: AbortSignal): Promise<MemoryExplanation>;
  /** Returns this tenant's own defaults for its queries; options that it has not set are absent. */
  retrievalDefaults(): Promise<RetrievalOptions>;
  /**
   * Replaces all of this tenant's defaults for its queries. Guarded evaluation sets are first run under the present and
   * under the new defaults.
   * @throws EngineError `invalid` for `rerank: 'llm'` if the server has no language model; `conflict`, with the
   *   numbers, if a guarded set falls in recall or in items that are rightly empty, or has more with a forbidden hit;
   *   `unauthenticated` if the caller is no longer admitted; else the errors of `ControlChanges.change`
   */
  putRetrievalDefaults(options: RetrievalOptions, how?: DefaultsChange): Promise<void>;
  /** Counts the memories of each sector, whatever their status, and averages their salience: one entry a sector. */
  sectorStats(): Promise<SectorStats[]>;
  /**
   * Lists the entities named in memories that a query could find, most often mentioned first, ties by name.
   * @param filter.prefix lists only names that begin with it, regardless of case and accents; '' lists all
   * @param filter.userId counts only memories of this user, with all `tags`; undefined counts those of all users
   */
  listEntities(
    filter: { readonly prefix: string; readonly userId: string | undefined } & Pick<MemoryFilter, 'tags'>,
    page: Page,
  ): Promise<EntityList>;
  /**
   * Returns what memories say about an entity, whose name may be in any case, with or without accents, or an alias.
   * @param userId reads only memories of this user, with all `tags`; undefined reads those of all users
   * @throws EngineError `not_found` if no memory that a query could find is found to mention the name
   */
  getEntity(name: string, userId: string | undefined, tags?: readonly string[]): Promise<EntityDetails>;
  /** Counts memories, vectors, waypoints and jobs of all states, and measures the file. */
  stats(): Promise<TenantStats>;
  /** Lists provider calls of the last `OM_JOB_RETENTION_HOURS`, newest first; a shared one counts for one tenant. */
  listProviderCalls(
    filter: ProviderCallFilter,
    page: Page,
  ): Promise<{ readonly items: EmbedLogEntry[]; readonly total: number }>;
  /**
   * Sums up the provider calls by day (UTC), model and purpose, newest day first. The sums are kept forever.
   * @param since Unix ms; the first listed day contains this time
   */
  listProviderUsage(since: number): Promise<ProviderUsage[]>;

  /**
   * Reserves disk space and a path, beside the tenant's own file, for a file that is about to arrive. The caller writes
   * the file there, syncs it to disk, and then passes it to `addDocument` or `replaceDocument`, or discards it. A file
   * that no document owns is removed after twenty minutes.
   * @param bytes greatest size of the file that will be written; nobody checks that later
   * @param madeFrom an upload from which the file is made, and which the caller then discards: it is not counted here
   * @throws EngineError `unavailable` with `retryAfterMs` if the files that arrive or wait to be read fill
   *   `OM_UPLOADS_MAX_MB`; `storage_full` if it and all files that arrive would take the disk space that the rest
   *   needs, which the file's encoder may throw after each MiB, too
   */
  createUpload(bytes: number, madeFrom?: Upload): Promise<Upload>;
  /**
   * Stores a document and the job that reads it, or finds one of the user's: that with its external id; without an id,
   * of those without id the one with its URL, or its file in its session. This is read again only if anything changed.
   * The upload belongs to Cairn from this call on.
   * @throws EngineError `unavailable` with `retryAfterMs` if `OM_MAX_BACKLOG` jobs of the tenant wait; `conflict` for a
   *   known document that lacks one of the tags of `withinTags`, or with `onlyNew` for one that changed or is
   *   another key's
   */
  addDocument(document: NewDocument, options?: AddDocumentOptions): Promise<DocumentReply>;
  /**
   * Reads a document again from a file or page, even if nothing has changed. It keeps its user, and its external id
   * unless `document` names another. Queries find the old text until the new one is complete. From this call on the
   * upload belongs to Cairn.
   * @throws EngineError `not_found`; `conflict` for an `externalId` of another document; `unavailable` with
   *   `retryAfterMs` if `OM_MAX_BACKLOG` jobs of the tenant wait
   */
  replaceDocument(id: string, document: NewDocument, options?: BoundOptions): Promise<DocumentReply>;
  /** Returns a document by its id, with the progress of its reading. Throws EngineError `not_found`. */
  getDocument(id: string): Promise<Document>;
  /** Lists the documents that match a filter, last added first; `total` counts all that match. */
  listDocuments(filter: DocumentFilter, page: Page): Promise<{ readonly items: Document[]; readonly total: number }>;
  /** Lists what `listDocuments` lists: `listed` documents in slices, which leave out those erased meanwhile. */
  streamDocuments(
    filter: DocumentFilter,
    page: Page,
  ): Promise<{ readonly slices: AsyncIterable<readonly Document[]>; readonly listed: number; readonly total: number }>;
  /**
   * Returns the Markdown that was extracted from a document, in consecutive strings of one version, even if a newer one
   * is shown meanwhile. The iteration throws `conflict` once its chunks are erased, `not_found` at one out of bounds.
   * @throws EngineError `not_found`; `conflict` before the first reading is complete
   */
  documentContent(id: string, options?: BoundOptions): Promise<AsyncIterable<string>>;
  /**
   * Lists the chunks of a document in slices, in the order of its text, without its root memory; none until its first
   * reading is complete. Throws `not_found`, also at a chunk out of bounds, and `conflict` if it is replaced meanwhile.
   */
  streamDocumentChunks(id: string, page: Page & BoundOptions): AsyncIterable<readonly DocumentChunk[]>;
  /** Accounts for each character of a document's text, with a page of spans. Throws what `documentContent` throws. */
  documentReceipt(id: string, page: Page & BoundOptions): Promise<TextReceipt>;
  /** Hides a document at once and erases it with its chunks. Throws `not_found`; `unavailable` as `deleteMemories`. */
  deleteDocument(id: string, options?: DocumentDeleteOptions): Promise<Receipted>;
  /**
   * Stops the reading of a document that waits, runs or has failed. Text of an earlier reading stays in force.
   * @throws EngineError `not_found`; `conflict` if there is no such reading
   */
  cancelDocument(id: string, options?: BoundOptions): Promise<Document>;
  /**
   * Waits until all jobs that a write receipt names have ended: done, dead or cancelled.
   * @param token a write receipt from `addMemories`, `addDocument`, `replaceDocument`, `reflect` or `consolidate`
   * @param timeoutMs longest time to wait (0: it checks once, and says false for over 1,000 jobs, even ended ones)
   * @returns false if the time ran out or the signal was aborted first
   * @throws EngineError `invalid` for a receipt that this tenant did not give out
   */
  waitFor(token: string, timeoutMs: number, signal?: AbortSignal): Promise<boolean>;
}
