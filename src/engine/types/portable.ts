/**
 * The portable form of a tenant's data: lines of JSON that other servers and programs can read. The fields of these
 * types have the names of the file's fields. Times are ISO 8601 in UTC in a file, and Unix ms in these types.
 */
import type { DocumentFormat, DocumentReceipt, DocumentWarning } from './documents.ts';
import type { EvalItem } from './evals.ts';
import type { MemoryFilter } from './filter.ts';
import type { EdgeType } from './links.ts';
import type { Json, MemoryState, MemoryStatus, Metadata, Sector } from './memory.ts';

/** Version of the portable form that this code writes, and the latest that it reads. */
export const PORTABLE_VERSION = 1;

/**
 * The types of the lines of a file, without its first and last line; the type of `PortableLine` with this name says
 * what a line holds.
 */
export const PORTABLE_TYPES = [
  'setting',
  'eval_set',
  'standing_query',
  'document',
  'document_text',
  'memory',
  'revision',
  'link',
  'session_item',
] as const;
export type PortableType = (typeof PORTABLE_TYPES)[number];

/** Number of lines of each type. */
export type PortableCounts = Readonly<Record<PortableType, number>>;

/** A decaying value: `value` (0..1) is what it was at the time `at`, from which it decays. */
export interface PortableAnchor {
  readonly value: number;
  readonly at: number;
}

/** A vector of a memory in the form in which the file stores it. */
export interface PortableVector {
  readonly provider: string;
  readonly model: string;
  readonly dimensions: number;
  readonly encoding: 'int5' | 'float32';
  /** Index of the window of the text that the vector stands for, from 0; -1 for the mean of several windows. */
  readonly window: number;
  readonly role: 'whole' | 'window' | 'mean';
  /** Number format in which a provider's vector is stored; null for a vector in its model's own `encoding`. */
  readonly precision: 'float32' | 'float16' | 'int8' | null;
  /** Bytes of the vector, in base64. */
  readonly data: string;
}

/** Position of a memory in the document that it is a part of. */
export interface PortablePlace {
  /** Id of the document. */
  readonly id: string;
  /** Index of the chunk in the document, from 0; -1 for the root memory. */
  readonly index: number;
  readonly start_offset: number;
  readonly end_offset: number;
  readonly page_from: number | null;
  readonly page_to: number | null;
  readonly heading_path: readonly string[];
  readonly tokens: number;
}

/**
 * A memory. A line whose `state` is null was written by another program: an import stores it as a new memory, which
 * still has to be embedded and linked. With the state `ready`, links come in lines of their own, so that the memory
 * only has to be embedded, if the line has no vectors. For a null, an import takes: as `created_at` the time of the
 * import; as `updated_at` and `event_time` that of `created_at`; as `salience` and `strength` those of a new memory.
 * Fields without a comment are as in `Memory`.
 */
export interface PortableMemory {
  readonly type: 'memory';
  readonly id: string;
  readonly user_id: string;
  readonly session_id: string;
  readonly content: string;
  readonly title: string;
  readonly gist: string;
  readonly entities: readonly string[];
  readonly memory_type: string | null;
  readonly tags: readonly string[];
  readonly files: readonly string[];
  readonly metadata: Metadata;
  readonly importance: number | null;
  readonly confidence: number;
  /** Time of the event that the memory is about, as a caller stated it; null if none did. */
  readonly event_time: number | null;
  readonly valid_from: number | null;
  readonly valid_to: number | null;
  readonly expires_at: number | null;
  readonly external_id: string | null;
  /**
   * Namespace and key of an item (memory with a name), and its lifetime in ms, to which a read renews its expiry (null
   * if reads do not); null for a memory that is no item.
   */
  readonly item: { readonly namespace: string; readonly key: string; readonly ttl_ms: number | null } | null;
  readonly value: Json;
  readonly created_at: number | null;
  readonly updated_at: number | null;
  readonly version: number;
  readonly status: MemoryStatus;
  readonly state: MemoryState | null;
  /** All sectors, the primary one first; empty for a memory that was not classified yet. */
  readonly sectors: readonly Sector[];
  readonly salience: PortableAnchor | null;
  /** Rate of decay of the salience, per day; null for that of the primary sector. */
  readonly decay_lambda: number | null;
  readonly strength: PortableAnchor | null;
  readonly access_count: number;
  readonly last_seen_at: number | null;
  readonly document: PortablePlace | null;
  /**
   * Public id of the key that added the memory, null if it is not known. It is information only: after an import, the
   * key that imports counts as its author.
   */
  readonly written_by: string | null;
  /** Vectors of the memory; absent if the export leaves vectors out. */
  readonly vectors?: readonly PortableVector[] | undefined;
}

/** The values that an update of a memory replaced. */
export interface PortableRevision {
  readonly type: 'revision';
  /** Id of the memory. */
  readonly memory: string;
  /** Number of the version that the update replaced. */
  readonly version: number;
  readonly replaced_at: number;
  /** Whether a link that was made or removed caused the update. */
  readonly by_link: boolean;
  readonly status: MemoryStatus;
  readonly event_time: number;
  readonly valid_from: number | null;
  readonly valid_to: number | null;
  /** Former values of the fields that changed, by their names in `Memory`; times in it are Unix ms, in a file too. */
  readonly replaced: Metadata;
  readonly written_by: string | null;
}

/** A link from the memory `src` to the memory `dst`, by their ids. */
export interface PortableLink {
  readonly type: 'link';
  readonly src: string;
  readonly dst: string;
  readonly link_type: EdgeType;
  readonly similarity: number | null;
  /** Weight of the link, 0..1; null for the default weight of its type. */
  readonly weight: number | null;
  readonly automatic: boolean;
  /** Id of the memory in whose favour a contradiction was decided; null if it is undecided, or for another type. */
  readonly winner: string | null;
  readonly created_at: number | null;
  readonly updated_at: number | null;
  readonly written_by: string | null;
}

/**
 * A document without its text, which its memories hold. After an import, queries find it once all of its memories are
 * stored.
 */
export interface PortableDocument {
  readonly type: 'document';
  readonly id: string;
  readonly user_id: string;
  readonly session_id: string;
  readonly external_id: string | null;
  readonly source: 'upload' | 'url';
  readonly url: string;
  readonly file_name: string;
  readonly charset: string | null;
  /** Format that the caller declared; null if none was. */
  readonly declared: DocumentFormat | null;
  readonly format: DocumentFormat | null;
  /** SHA-256 of the file's bytes, hexadecimal; null if it is not known. */
  readonly sha256: string | null;
  readonly bytes: number | null;
  readonly given_title: string;
  readonly title: string;
  readonly authors: readonly string[];
  readonly language: string | null;
  readonly published_at: number | null;
  readonly modified_at: number | null;
  readonly etag: string | null;
  readonly last_modified: string | null;
  readonly document_type: string | null;
  readonly tags: readonly string[];
  readonly metadata: Metadata;
  readonly event_time: number | null;
  readonly expires_at: number | null;
  readonly pages: number | null;
  readonly characters: number;
  readonly tokens: number;
  /** Number of chunks of the document; the root memory is not counted. */
  readonly chunks: number;
  readonly warnings: readonly DocumentWarning[];
  readonly receipt: DocumentReceipt | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly read_at: number;
  readonly shown_at: number | null;
  readonly ready_at: number | null;
  readonly written_by: string | null;
}

/**
 * A part of a document's text, as Markdown, for readers of the file. An import ignores it, since the memories hold the
 * text.
 */
export interface PortableText {
  readonly type: 'document_text';
  /** Id of the document. */
  readonly document: string;
  readonly text: string;
}

/** A setting of the tenant. */
export interface PortableSetting {
  readonly type: 'setting';
  /** Name of the setting: `retrieval` holds the tenant's defaults of queries, in the form of the HTTP API. */
  readonly name: 'retrieval';
  readonly value: Metadata;
}

/** An evaluation set without its runs. The items have the field names of the HTTP API. */
export interface PortableEvalSet {
  readonly type: 'eval_set';
  readonly name: string;
  readonly guard?: boolean | undefined;
  readonly items: readonly (Omit<EvalItem, 'userId'> & { readonly user_id?: string | undefined })[];
}

/**
 * A standing query without its answers and its webhook. An import compares the memories that come after it with the
 * query.
 */
export interface PortableStandingQuery {
  readonly type: 'standing_query';
  readonly id: string;
  readonly query: string;
  /** User whose memories can answer; null for all users. */
  readonly user_id: string | null;
  /** Conditions of the query's filter, in the form of the HTTP API. */
  readonly filters: Metadata;
  readonly min_score: number | null;
  readonly created_at: number | null;
  readonly written_by: string | null;
}

/** An item of a session log. The items of a log come in the order of their positions. */
export interface PortableLogItem {
  readonly type: 'session_item';
  readonly user_id: string;
  readonly session_id: string;
  /** Position in the log, from 0. */
  readonly position: number;
  readonly item: Json;
  readonly created_at: number | null;
  readonly written_by: string | null;
}

/**
 * Lines that come first in a file: settings, evaluation sets and standing queries. The engine passes them on; its
 * caller reads and stores them.
 */
export type PortableConfiguration = PortableSetting | PortableEvalSet | PortableStandingQuery;

/** A line of a file that is neither the first nor the last. */
export type PortableLine =
  | PortableConfiguration
  | PortableMemory
  | PortableRevision
  | PortableLink
  | PortableDocument
  | PortableText
  | PortableLogItem;

/** Options of an export. */
export interface ExportOptions {
  /**
   * Selects memories, whatever their status; all if left out. A chunk of a document is selected if the document's root
   * memory is.
   */
  readonly filter?: MemoryFilter | undefined;
  /** Whether memories are exported with their vectors; false by default. */
  readonly vectors?: boolean | undefined;
  /** Lines that are written before all others; none by default. */
  readonly configuration?: AsyncIterable<{ readonly type: PortableConfiguration['type'] }> | undefined;
  /** The caller's request in its own words, which the first line of the file repeats; absent by default. */
  readonly asked?: Metadata | undefined;
}

/**
 * Result of importing a line. `stored`: it was stored. `known`: it is stored already. `kept`: what is stored here in
 * its place is later or differs, and stays: a changed memory, a document that is complete here, another item at the
 * position of a log, another automatic waypoint. `read`: the engine stores nothing of a line of this type. `refused`:
 * it was not stored, for the reason in `error`.
 */
export type ImportOutcome =
  | { readonly kind: 'stored' | 'known' | 'kept' | 'read' }
  | { readonly kind: 'refused'; readonly error: { readonly code: string; readonly message: string } };

/** The methods of a tenant that export and import its data. */
export interface Portable {
  /**
   * Exports the tenant as lines of JSON, in texts of one or more whole lines; a long line of `configuration` comes in
   * several texts. Memories are as they were when the export began, without those that were erased since; salience,
   * strength and counts are those at the time when each memory is read. Keys, jobs and logs of requests are not
   * exported. Before it reads, it writes the ends of validity that still wait to be written.
   * @throws EngineError `invalid` for a malformed condition of the filter, when the iteration comes to it
   */
  exportLines(options: ExportOptions): AsyncIterable<string>;
  /**
   * Imports lines of a portable file, in as many commits as they need. A line that is stored already is `known`; if
   * the stored version is later than that of the line, it is `kept`; if it has other content, the line is refused with
   * `conflict`. What is stored stays as it is in all three cases.
   * @returns one outcome for each line, in their order
   * @throws EngineError `unavailable` while too many jobs wait; `storage_full` over the tenant's quota. Lines of
   *   earlier commits are stored then, and are `known` when the call is repeated
   */
  importLines(lines: readonly PortableLine[]): Promise<ImportOutcome[]>;
  /**
   * Begins a dry run. Its `importLines` returns the outcomes that an import would have and stores nothing; lines of
   * earlier calls count as stored. It checks neither the quota nor how many jobs wait. It throws EngineError
   * `too_large` once it would have to remember over 2,000,000 ids and names, and `unavailable` once all dry runs of the
   * process would. `end` forgets them, and must be called.
   */
  rehearseImport(): Pick<Portable, 'importLines'> & { end(): void };
}
