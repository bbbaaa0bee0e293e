import type { ScreenReport } from './privacy.ts';

/**
 * The five sectors, the kinds of memory by which text is classified; `Sector` says what they are. Files store the index
 * of a sector in this list, so its order must not change.
 */
export const SECTORS = ['episodic', 'semantic', 'procedural', 'emotional', 'reflective'] as const;
/**
 * Names a sector, the kind of memory that a text is classified as: `episodic` for events, `semantic` for facts,
 * `procedural` for how-to, `emotional` for feelings and `reflective` for insight about oneself. The rate of decay
 * depends on the primary sector; so does the embedding model, if each sector has one of its own.
 */
export type Sector = (typeof SECTORS)[number];

/** The states of a memory; `MemoryState` says what they mean. */
export const MEMORY_STATES = ['queued', 'ready', 'failed'] as const;
/**
 * Says how far a memory is processed. `queued`: it waits for its vectors or its link. `ready`: it is processed, and has
 * vectors unless `OM_EMBEDDINGS=none`. `failed`: it has no vectors, because its job gave up or was cancelled. Queries
 * find memories of every state by their words.
 */
export type MemoryState = (typeof MEMORY_STATES)[number];

/** The statuses of a memory; `MemoryStatus` says what they mean. */
export const MEMORY_STATUSES = ['active', 'superseded', 'contradicted', 'archived'] as const;
/**
 * Says whether a memory is still in force. `superseded`: a newer memory replaced it. `contradicted`: a contradiction
 * was decided against it. `archived`: a caller or the decay job put it away. Lists and queries return only `active`
 * memories unless they ask for others.
 */
export type MemoryStatus = (typeof MEMORY_STATUSES)[number];

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Greatest size of a memory's metadata, in bytes of JSON as UTF-8. */
export const MAX_METADATA_BYTES = 16 * 1024;

/**
 * Greatest number of conditions on metadata in one filter; each operator on a key counts as one. The bound limits the
 * time of a query: 32 conditions over 30,000 memories take half a second.
 */
export const MAX_METADATA_CONDITIONS = 32;

/** The caller's own data about a memory or document, as a JSON object. */
export type Metadata = { readonly [key: string]: Json };

/** A memory to add. `newMemory` makes one from a text and fills in the other fields. */
export interface NewMemory {
  /** The text, kept verbatim. */
  readonly content: string;
  /** User who owns the memory; '' for no particular user. */
  readonly userId: string;
  /** Conversation or task that the memory belongs to; '' for none. */
  readonly sessionId: string;
  /** Names by which filters select the memory, and whose words queries find; empty for none. */
  readonly tags: readonly string[];
  /** Paths of files that the text is about, by which filters select the memory; empty for none. */
  readonly files: readonly string[];
  /**
   * The caller's own data. A `sector` in it that names one of the five sectors becomes the primary sector; the engine
   * ignores any other value of it. The HTTP API refuses such a value, more than 16 KiB (`MAX_METADATA_BYTES`) and deep
   * nesting.
   */
  readonly metadata: Metadata;
  /** Type of the memory by the caller's own scheme, for filters; null for none. */
  readonly type: string | null;
  /** Title, which is indexed and embedded together with the content; '' for none. */
  readonly title: string;
  /** One line about the text; '' for none, and readers then get one that is derived from the text. */
  readonly gist: string;
  /**
   * Names that the text mentions, as the caller states them; null or an empty list for none. Cairn also finds names in
   * the text by itself.
   */
  readonly entities: readonly string[] | null;
  /** Time of the event that the memory is about, Unix ms; null for the time at which the memory is added. */
  readonly eventTime: number | null;
  /**
   * Time from which the memory is valid, Unix ms. Before, lists and queries leave the memory out; null for no bound.
   */
  readonly validFrom: number | null;
  /**
   * Time from which the memory is no longer valid, Unix ms: lists and queries leave the memory out from then on. It
   * must be later than `validFrom`; null for no bound.
   */
  readonly validTo: number | null;
  /** Time from which no read finds the memory, Unix ms; null for never. It is erased soon after. */
  readonly expiresAt: number | null;
  /** Initial salience, 0..1; null for 0.4, to which 0.1 is added for each additional sector. */
  readonly importance: number | null;
  /** How sure the caller is that the memory is true, 0..1; 1 for certain. */
  readonly confidence: number;
  /**
   * Id of the memory in the caller's system, unique for each user; null for none. An add with the id of a stored memory
   * is a duplicate of it if the texts are equal, and is rejected if they differ.
   */
  readonly externalId: string | null;
  /**
   * What is done if the memory is an exact duplicate of a stored one: `merge`, the default, stores nothing and
   * reinforces the stored one; `keep` stores it as a further memory. An external id stays unique with both.
   */
  readonly onDuplicate?: (typeof DUPLICATE_WAYS)[number] | undefined;
  /**
   * Id of a memory of the same user that this one supersedes, in the same commit. If the supersession is refused, the
   * item is rejected. None by default.
   */
  readonly supersedes?: string | undefined;
}

/** The ways to treat an exact duplicate; `NewMemory.onDuplicate` says what they mean. */
export const DUPLICATE_WAYS = ['merge', 'keep'] as const;

/** A stored memory as a caller sees it. Times are Unix ms. Fields of `NewMemory` without a comment mean the same. */
export interface Memory {
  readonly id: string;
  readonly userId: string;
  readonly sessionId: string;
  readonly content: string;
  readonly title: string;
  /** One line about the text, as a caller stated it; '' if none did. `shownGist` then derives one from the text. */
  readonly gist: string;
  /** Names that a caller stated for the memory; empty if none did. `shownEntities` then finds names in the text. */
  readonly entities: readonly string[];
  readonly type: string | null;
  readonly tags: readonly string[];
  readonly files: readonly string[];
  readonly metadata: Metadata;
  readonly primarySector: Sector;
  /**
   * All sectors of the memory: the primary one, then the additional ones in the order of SECTORS. Just the primary one
   * until the text was classified.
   */
  readonly sectors: readonly Sector[];
  /**
   * How clearly the text belongs to the primary sector, 0..1; 1 if the caller set the sector, 0 until the text was
   * classified.
   */
  readonly sectorConfidence: number;
  readonly state: MemoryState;
  readonly status: MemoryStatus;
  /** How present the memory is when read, 0..1; it decays by `decayLambda`. Recalls and reinforcements raise it. */
  readonly salience: number;
  /** How well established the memory is when read, 0..1; it decays slowly. A query does not raise it. */
  readonly strength: number;
  /** Rate λ of the exponential decay of the salience, per day. */
  readonly decayLambda: number;
  /** How sure its author was that the memory is true, 0..1. */
  readonly confidence: number;
  /** Salience that a caller stated last, when the memory was added or updated, 0..1; null if no caller did. */
  readonly importance: number | null;
  /** Number of queries that returned the memory and reinforced it. */
  readonly accessCount: number;
  /**
   * Time at which the memory was added, or was last returned by a reinforcing query, reinforced or added again (Unix
   * ms). A consolidated memory begins with the latest of its sources, an imported one with what the import says.
   */
  readonly lastSeenAt: number;
  readonly createdAt: number;
  /** Time of the last change that raised `version`; `createdAt` if there was none. */
  readonly updatedAt: number;
  /** Time of the event that the memory is about; `createdAt` if no caller stated one. */
  readonly eventTime: number;
  readonly validFrom: number | null;
  readonly validTo: number | null;
  readonly expiresAt: number | null;
  readonly externalId: string | null;
  /** Path of the namespace of an item (memory with a name), labels joined by dots; '' for a memory that is in none. */
  readonly namespace: string;
  /** Any JSON value of an item (memory with a name), stored beside the text; null for none. */
  readonly value: Json;
  /**
   * Public id of the key that added the memory, `environment` for the key `OM_API_KEY`, `anonymous` if it was added
   * without a key; null if it is not known, or if Cairn made the memory by itself.
   */
  readonly writtenBy: string | null;
  /** Number of the current version: 1 when the memory is added, and one more after each update. */
  readonly version: number;
}

/**
 * The fields that an update changes. A field that is `undefined` keeps its value; null removes the value of a field
 * that allows null. `metadata` is merged by its top-level keys, and a key whose value is null is removed. Lists are
 * replaced as a whole. A changed `content` empties `gist` and `entities` unless the update states them. In the value of
 * an item, a string that equals the whole old text becomes the new one. After a change
 * of `content` or `title` the memory has no vectors until it is embedded and linked again; links that Cairn concluded
 * from the old text are removed, and reflections drawn from it are archived. A change of text, tags, metadata or times
 * also erases memories that were consolidated from it. A number as `importance` also becomes the present salience. A
 * change of `expiresAt` also removes the `ttlMs` of an item.
 */
export interface MemoryPatch {
  readonly content?: string | undefined;
  readonly title?: string | undefined;
  readonly gist?: string | undefined;
  readonly entities?: readonly string[] | undefined;
  readonly type?: string | null | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly files?: readonly string[] | undefined;
  readonly metadata?: Metadata | undefined;
  readonly eventTime?: number | undefined;
  readonly validFrom?: number | null | undefined;
  readonly validTo?: number | null | undefined;
  readonly expiresAt?: number | null | undefined;
  readonly importance?: number | null | undefined;
  readonly confidence?: number | undefined;
  readonly status?: Extract<MemoryStatus, 'active' | 'archived'> | undefined;
}

/** The values that one update of a memory replaced. */
export interface Revision {
  /** Number of the version that the update replaced. */
  readonly version: number;
  /** Time of the update, Unix ms. */
  readonly replacedAt: number;
  /** Public id of the key that made the update, as in `Memory.writtenBy`; null if it is not known or no key made it. */
  readonly writtenBy: string | null;
  /** Former values of the fields that the update changed, by their names in `Memory`. */
  readonly replaced: Metadata;
}

/**
 * Result of one item of an add request. `accepted`: the memory was stored and has a job. `duplicate`: an equal memory
 * was stored already; it was reinforced, and is active again if it was archived. `rejected`: nothing was written, for
 * example because its `externalId` belongs to another text, because it cannot supersede the memory that `supersedes`
 * names, because a source in `AddOptions.derived` is missing, because the equal memory lacks one of `withinTags`,
 * because the privacy policy refuses it, or because the add did not take it (`AddReply.taken`). `screened` says what
 * was done about sensitive values; it is absent if the policy looks for none.
 */
export type AddOutcome =
  | {
      readonly kind: 'accepted';
      readonly id: string;
      readonly jobId: string;
      readonly jobNo: number;
      readonly screened?: ScreenReport;
    }
  | {
      readonly kind: 'duplicate';
      readonly id: string;
      readonly primarySector: Sector;
      readonly sectors: readonly Sector[];
      readonly state: MemoryState;
      readonly screened?: ScreenReport;
    }
  | RejectedItem;

/**
 * An item of an add request that was refused. Nothing is written for it; the other items are added unless
 * `AddOptions.allOrNothing` is set.
 */
export interface RejectedItem {
  readonly kind: 'rejected';
  readonly error: { readonly code: string; readonly message: string };
}

/**
 * An item of an add request: a memory to store, or the refusal of a memory that its caller may not add. Such a refusal
 * is returned as the outcome of its item, so that a reply has an outcome for each item of the request.
 */
export type AddItem = NewMemory | RejectedItem;

/**
 * Numbers of the things that a delete erased. `memories` includes chunks of documents, and reflections and consolidated
 * memories that were made from an erased memory. `jobs` counts the jobs of erased memories and documents, ended ones
 * included: unfinished ones are cancelled, and all stay in the ledger.
 */
export interface DeleteReceipt {
  readonly memories: number;
  readonly documents: number;
  readonly vectors: number;
  readonly edges: number;
  readonly revisions: number;
  readonly jobs: number;
  readonly cachedEmbeddings: number;
  readonly storedReplies: number;
}

/** Numbers of the things that a delete by filter erased. The optional fields are absent where they do not apply. */
export interface ErasureReceipt extends DeleteReceipt {
  /** Number of erased items of session logs. */
  readonly logItems?: number;
  /** Number of erased standing queries, after a delete by users, by writers, or by both and nothing else. */
  readonly standingQueries?: number;
  /** Number of erased webhooks, those of standing queries included, after such a delete. */
  readonly webhooks?: number;
  /**
   * After a delete by `writtenBy` alone: number of memories of other keys whose former values were restored, because
   * the key had changed them.
   */
  readonly restored?: number;
  /**
   * After a delete by `writtenBy` alone: number of memories that keep the key's changes, because another key changed
   * them afterwards, or because they supersede over 200 others, whose validity would end anew.
   */
  readonly unrestored?: number;
}

/**
 * A memory, the `anchor`, and the memories before and after it by event time that queries can find. Both lists are in
 * the order of event times, earliest first.
 */
export interface Timeline {
  readonly before: readonly Memory[];
  readonly anchor: Memory;
  readonly after: readonly Memory[];
  /** Whether a side may lack memories: its texts exceed 3 MiB, or of those that were examined too few are shown. */
  readonly isCut: boolean;
}

/** Options of a request that adds memories. */
export interface AddOptions {
  /** The Idempotency-Key of the request; none if left out. An add with a key has at most 1,000 items. */
  readonly idempotency?: IdempotencyClaim | undefined;
  /** Whether the jobs of these memories run after those of interactive adds; false by default. */
  readonly bulk?: boolean | undefined;
  /**
   * Tags, to which the caller's key is bound, that a stored memory must have to be recognised as a duplicate, to be
   * superseded and to be a source. An item that equals a memory without them is rejected with `conflict`, and one that
   * supersedes or is derived from such a memory with `not_found`. None by default.
   */
  readonly withinTags?: readonly string[] | undefined;
  /**
   * Items of the request that repeat or sum up other memories, stored as derived in the same commit; none by default.
   * Only Cairn's own callers set it.
   */
  readonly derived?: readonly DerivedItem[] | undefined;
  /** Whether an item may be a duplicate of a derived memory, which is erased with its sources; false by default. */
  readonly matchesDerived?: boolean | undefined;
  /**
   * Whether the whole request fails, with the error of the item, as soon as one item is refused; false by default, so
   * that only that item is rejected.
   */
  readonly allOrNothing?: boolean | undefined;
}

/**
 * An item of an add request that is derived from other memories: it gets `derived_from` links to them, counts as a
 * reflection, and is erased together with any of them.
 */
export interface DerivedItem {
  /** Index of the derived item in the add request. */
  readonly item: number;
  /** Ids of stored memories, and indexes of earlier items of the same request, from which the item is derived. */
  readonly from: readonly (string | number)[];
}

/** Options of a request that adds a document. */
export interface AddDocumentOptions {
  /**
   * Tags, to which the caller's key is bound, that a stored document must have to be replaced by this one; without them
   * the request is a `conflict`. None by default.
   */
  readonly withinTags?: readonly string[] | undefined;
  /**
   * Whether it is a `conflict` to add a new version of a stored document, so that the version is not read, or to add a
   * document with the external id or URL of another key's. A file that only other keys handed in counts as new. False
   * by default.
   */
  readonly onlyNew?: boolean | undefined;
}

/**
 * Use of an Idempotency-Key by a request: the reply to the first use is stored, and returned again for later uses by
 * the same API key.
 */
export interface IdempotencyClaim {
  readonly key: string;
  /** Route of the request. One key on two routes counts as two keys. */
  readonly route: string;
  /** SHA-256 of the bytes of the request body; a later use with another body is refused. */
  readonly bodyHash: Uint8Array;
}

/** Reply to a request that adds memories. */
export interface AddReply {
  /** One outcome for each item, in the order of the items. */
  readonly outcomes: readonly AddOutcome[];
  /** Write receipt with which `waitFor` or a query waits for the memories; null if no memory was accepted. */
  readonly token: string | null;
  /**
   * Whether this is the stored reply to an earlier request with the same Idempotency-Key, and nothing was written now.
   */
  readonly replayed: boolean;
  /** Number of the first items that were taken; the others were rejected and can be added again. Absent if all were. */
  readonly taken?: number | undefined;
}

/** Extent of a timeline. */
export interface TimelineOptions {
  /** Greatest number of memories before the anchor, 0..100. */
  readonly before: number;
  /** Greatest number of memories after the anchor, 0..100. */
  readonly after: number;
  /** Whether only memories of the anchor's session are listed; otherwise all memories of its user are. */
  readonly sameSession: boolean;
  /** Tags that each memory around the anchor must have; none by default. */
  readonly tags?: readonly string[] | undefined;
}
