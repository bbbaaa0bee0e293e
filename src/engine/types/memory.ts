import type { ScreenReport } from './privacy.ts';

/** The five kinds of memory by which text is classified; `Sector` says what they are. Files depend on their order. */
export const SECTORS = ['episodic', 'semantic', 'procedural', 'emotional', 'reflective'] as const;
/**
 * Names a kind of memory by which text is classified: `episodic` for events, `semantic` for facts, `procedural` for
 * how-to, `emotional` for feelings and `reflective` for insight about oneself. Decay and statistics differ by sector,
 * and vectors if each sector has a model of its own.
 */
export type Sector = (typeof SECTORS)[number];

/** The states of a memory; `MemoryState` says what they mean. */
export const MEMORY_STATES = ['queued', 'ready', 'failed'] as const;
/**
 * Says how far a memory is processed. `queued` waits for its vectors or its link, `ready` has them if the settings ask
 * for vectors, and `failed` has no vectors, because its job has given up or was cancelled. All are found by their
 * words.
 */
export type MemoryState = (typeof MEMORY_STATES)[number];

/** The statuses of a memory; `MemoryStatus` says what they mean. */
export const MEMORY_STATUSES = ['active', 'superseded', 'contradicted', 'archived'] as const;
/**
 * Says whether a memory still holds: `superseded` was replaced by a newer memory, `contradicted` lost against another
 * one, and `archived` was put away by a caller or by the decay job. Lists and queries show only `active` memories
 * unless they ask for others.
 */
export type MemoryStatus = (typeof MEMORY_STATUSES)[number];

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Largest metadata of a memory, in bytes of JSON. */
export const MAX_METADATA_BYTES = 16 * 1024;

/**
 * Most conditions on metadata in one filter; each operator of a key counts as one. Each condition reads a memory's
 * metadata again: 32 conditions over 30,000 memories take half a second.
 */
export const MAX_METADATA_CONDITIONS = 32;

/** A JSON object with the caller's own data about a memory. */
export type Metadata = { readonly [key: string]: Json };

/** A memory to add. `newMemory` makes one from its text and fills in the other fields. */
export interface NewMemory {
  /** The text, kept verbatim. */
  readonly content: string;
  /** Owner of the memory; '' for nobody in particular. */
  readonly userId: string;
  /** Conversation or task that the memory belongs to; '' for none. */
  readonly sessionId: string;
  /** Names to filter by; empty for none. Queries find their words, too. */
  readonly tags: readonly string[];
  /** Paths of files that the text mentions; empty for none. */
  readonly files: readonly string[];
  /** Any JSON object of at most `MAX_METADATA_BYTES`. Its `sector` forces the primary sector. */
  readonly metadata: Metadata;
  /** The caller's own kind of memory, for filters; null for none. */
  readonly type: string | null;
  /** Title, indexed and embedded together with the content; '' for none. */
  readonly title: string;
  /** One line about the text; with '' Cairn derives it from the text. */
  readonly gist: string;
  /** Names that the caller states; null or an empty list for none. Cairn adds those that it finds in the text. */
  readonly entities: readonly string[] | null;
  /** Time of what the memory tells, Unix ms; null for the time of the add. */
  readonly eventTime: number | null;
  /** First moment at which queries and lists show the memory, Unix ms; null for no bound. */
  readonly validFrom: number | null;
  /**
   * Moment from which queries and lists no longer show the memory, Unix ms; later than `validFrom`, or null for no
   * bound.
   */
  readonly validTo: number | null;
  /** Moment from which no read finds the memory, Unix ms; null for never. The memory is erased soon after. */
  readonly expiresAt: number | null;
  /** Initial salience, 0..1; with null it is 0.4 and 0.1 more for each additional sector. */
  readonly importance: number | null;
  /** How sure the caller is of the memory, 0..1; 1 for certain. */
  readonly confidence: number;
  /** Name of the memory in the caller's system, unique for each user; null for none. */
  readonly externalId: string | null;
  /**
   * What becomes of the memory if it is an exact duplicate: `merge`, the default, reinforces the one that is there;
   * `keep` stores it beside that one. An external id stays unique with both.
   */
  readonly onDuplicate?: (typeof DUPLICATE_WAYS)[number] | undefined;
  /**
   * Id of a memory of the same user that this one supersedes. Both happen in one commit: an item whose supersession is
   * refused is rejected. None by default.
   */
  readonly supersedes?: string | undefined;
}

/** What may become of an exact duplicate; `NewMemory.onDuplicate` says what the ways mean. */
export const DUPLICATE_WAYS = ['merge', 'keep'] as const;

/** A stored memory as a reader sees it. Times are Unix milliseconds. */
export interface Memory {
  readonly id: string;
  readonly userId: string;
  readonly sessionId: string;
  readonly content: string;
  readonly title: string;
  /** One line about the text, as it was stated; '' if nobody did. `shownGist` derives one from the text. */
  readonly gist: string;
  /** Names that were stated for the memory; empty if nobody did. `shownEntities` then finds names in the text. */
  readonly entities: readonly string[];
  readonly type: string | null;
  readonly tags: readonly string[];
  readonly files: readonly string[];
  readonly metadata: Metadata;
  readonly primarySector: Sector;
  /** All sectors of the memory: the primary one first, then the additional ones in the order of SECTORS. */
  readonly sectors: readonly Sector[];
  /** How far the primary sector stood out in the text, 0..1; 1 if it was forced, 0 until it was classified. */
  readonly sectorConfidence: number;
  readonly state: MemoryState;
  readonly status: MemoryStatus;
  /** How much the memory matters at the time of reading, 0..1; it decays by `decayLambda`. */
  readonly salience: number;
  /** How well the memory is remembered at the time of reading, 0..1; only reinforcement raises it. */
  readonly strength: number;
  /** Rate λ of the exponential decay of the salience, per day. */
  readonly decayLambda: number;
  /** How sure its author was of the memory, 0..1. */
  readonly confidence: number;
  /** Salience that was last stated, with the add or by an update, 0..1; null if nobody stated one. */
  readonly importance: number | null;
  /** Number of queries that returned the memory and reinforced it. */
  readonly accessCount: number;
  /** Time the memory was added, or last recalled, reinforced or added again. */
  readonly lastSeenAt: number;
  readonly createdAt: number;
  /** Time of the last change that raised `version`; `createdAt` if there was none. */
  readonly updatedAt: number;
  /** Time of what the memory tells; `createdAt` if nobody stated one. */
  readonly eventTime: number;
  readonly validFrom: number | null;
  readonly validTo: number | null;
  readonly expiresAt: number | null;
  readonly externalId: string | null;
  /** Path of the namespace that an item is in, labels joined by dots; '' for none. */
  readonly namespace: string;
  /** Value of an item, kept apart from the text that is searched; null for none. */
  readonly value: Json;
  /**
   * Public id of the key that added the memory; `environment` for OM_API_KEY, `anonymous` without a key, null if that
   * is not known or Cairn wrote the memory by itself.
   */
  readonly writtenBy: string | null;
  /** Number of the current version, from 1; each update raises it. */
  readonly version: number;
}

/**
 * The fields that an update changes. A field that is `undefined` keeps its value, and null removes the value of a field
 * that allows it. `metadata` is merged by its top-level keys, and a key that is null is removed. Lists are replaced
 * as a whole. A changed `content` empties `gist` and `entities` unless the update states them.
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
  /** Version that the update replaced. */
  readonly version: number;
  /** Time of the update, Unix ms. */
  readonly replacedAt: number;
  /** Public id of the key that made the update, as in `Memory`; null if that is not known or no key made it. */
  readonly writtenBy: string | null;
  /** Old values of the fields that the update changed, by their names in `Memory`. */
  readonly replaced: Metadata;
}

/**
 * What became of one item of an add. An `accepted` item was stored and has a job. A `duplicate` was there already and
 * was reinforced. A `rejected` item wrote nothing, because its `externalId` belongs to another text, because the memory
 * that it `supersedes` cannot give way to it, or because the tenant's privacy policy refuses it. `screened` says what
 * was done about sensitive values; it is absent where the policy looks for nothing.
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

/** An item of an add that was refused: nothing is written for it, and the other items are added all the same. */
export interface RejectedItem {
  readonly kind: 'rejected';
  readonly error: { readonly code: string; readonly message: string };
}

/**
 * An item of an add: the memory to store, or the refusal of one that its caller may not add. A refusal that is handed
 * in is its own outcome, so that the reply under an Idempotency-Key is stored with an outcome for each item.
 */
export type AddItem = NewMemory | RejectedItem;

/**
 * Number of things that a delete erased, by kind. `memories` includes chunks, and reflections that rested on an erased
 * memory. `jobs` counts jobs that lost their memory or document: they are cancelled if unfinished, and stay listed.
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

/** What a delete by filter erased; after a delete by `writtenBy` alone also what it took back of others' memories. */
export interface ErasureReceipt extends DeleteReceipt {
  /** Number of items of session logs. */
  readonly logItems?: number;
  /** Number of memories that have the values again that the key had changed. */
  readonly restored?: number;
  /** Number of memories that keep the key's changes, since somebody else has changed them since. */
  readonly unrestored?: number;
}

/** A memory (`anchor`) with visible memories before and after it by event time. Both lists begin with the earliest. */
export interface Timeline {
  readonly before: readonly Memory[];
  readonly anchor: Memory;
  readonly after: readonly Memory[];
  /** Whether memories were left out, because the texts of a side have more than 3 MiB; those farthest away are. */
  readonly isCut: boolean;
}

/** How memories are added. */
export interface AddOptions {
  /** The Idempotency-Key of the request; left out, it has none. An add with a key takes at most 1,000 items. */
  readonly idempotency?: IdempotencyClaim | undefined;
  /** Whether the jobs of these memories wait behind those of interactive adds; false by default. */
  readonly bulk?: boolean | undefined;
  /**
   * Tags that an existing memory must carry to be recognised as a duplicate; an item that equals one without them is
   * rejected with `conflict`. None by default.
   */
  readonly withinTags?: readonly string[] | undefined;
  /** What items of the add repeat or sum up, in the same commit; nothing by default, and no client can state it. */
  readonly derived?: readonly DerivedItem[] | undefined;
}

/**
 * An item of an add that repeats or sums up others, of which it is `derived_from`: it counts as a reflection, and is
 * erased together with each of them.
 */
export interface DerivedItem {
  /** Place of the item in the add. */
  readonly item: number;
  /** What it rests on: ids of memories, and places of other items of the add. */
  readonly from: readonly (string | number)[];
}

/** How a document is added. */
export interface AddDocumentOptions {
  /** Tags that a known document must carry to be recognised; without them it is a `conflict`. None by default. */
  readonly withinTags?: readonly string[] | undefined;
  /** Whether a known document that changed is a `conflict`, and not read again; false by default. */
  readonly onlyNew?: boolean | undefined;
}

/** What a delete may reach. */
export interface DeleteOptions {
  /** Tags that a document must carry, too, to be deleted with one of its memories. None by default. */
  readonly withinTags?: readonly string[] | undefined;
}

/** One use of an Idempotency-Key: the reply to the first use is stored and returned again. */
export interface IdempotencyClaim {
  readonly key: string;
  /** Route of the request. The same key on another route is another key. */
  readonly route: string;
  /** SHA-256 of the request body's bytes. */
  readonly bodyHash: Uint8Array;
}

/** The reply to an add. */
export interface AddReply {
  /** One outcome for each item, in the order of the items. */
  readonly outcomes: readonly AddOutcome[];
  /** The write receipt, with which `waitFor` or a query waits for these memories; null if no job was made. */
  readonly token: string | null;
  /** Whether this is the stored reply of an earlier add with the same Idempotency-Key; nothing was written then. */
  readonly replayed: boolean;
}

/** How much of a timeline is returned. */
export interface TimelineOptions {
  /** Most memories before the anchor, 0..100. */
  readonly before: number;
  /** Most memories after the anchor, 0..100. */
  readonly after: number;
  /** Whether only memories of the anchor's session are listed, instead of all of its user. */
  readonly sameSession: boolean;
  /** Tags that the memories around the anchor must all carry; none by default. */
  readonly tags?: readonly string[] | undefined;
}
