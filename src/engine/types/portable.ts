/**
 * The portable form of a tenant's data: lines of JSON that other servers, and other programs, can read. Field names are
 * those of the file. In a file times are ISO 8601 in UTC; here they are Unix milliseconds.
 */
import type { DocumentFormat, DocumentReceipt, DocumentWarning } from './documents.ts';
import type { EvalItem } from './evals.ts';
import type { MemoryFilter } from './filter.ts';
import type { EdgeType } from './links.ts';
import type { Json, MemoryState, MemoryStatus, Metadata, Sector } from './memory.ts';

/** Version of the portable form that this code writes, and the latest that it reads. */
export const PORTABLE_VERSION = 1;

/** The types of the lines between the first and the last; `PortableLine` says what they hold. */
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

/** A value that decays, as it was at a time. */
export interface PortableAnchor {
  /** Value at the time `at`, 0..1. */
  readonly value: number;
  readonly at: number;
}

/** A vector of a memory, as it is stored. */
export interface PortableVector {
  readonly provider: string;
  readonly model: string;
  readonly dimensions: number;
  readonly encoding: 'int5' | 'float32';
  /** Index of the window of the text, from 0; -1 for the mean of several. */
  readonly window: number;
  readonly role: 'whole' | 'window' | 'mean';
  /** Precision of a provider's vector, null for one in the encoding of its model. */
  readonly precision: 'float32' | 'float16' | 'int8' | null;
  /** Bytes of the vector in base64. */
  readonly data: string;
}

/** Where a memory stands in the document that it is a part of. */
export interface PortablePlace {
  /** Id of the document. */
  readonly id: string;
  /** Index of the chunk in the order of the text, from 0; -1 for the root memory. */
  readonly index: number;
  readonly start_offset: number;
  readonly end_offset: number;
  readonly page_from: number | null;
  readonly page_to: number | null;
  readonly heading_path: readonly string[];
  readonly tokens: number;
}

/**
 * A memory. One without `state` comes from elsewhere: it is stored as a new memory that owes its vectors and its link.
 * One whose state is `ready` brings its links in lines of their own, and owes its vectors alone.
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
  /** Time of the event as its author gave it; null if nobody did. */
  readonly event_time: number | null;
  readonly valid_from: number | null;
  readonly valid_to: number | null;
  readonly expires_at: number | null;
  readonly external_id: string | null;
  /** Name of an item; null for a memory that is none. */
  readonly item: { readonly namespace: string; readonly key: string } | null;
  readonly value: Json;
  readonly created_at: number | null;
  readonly updated_at: number | null;
  readonly version: number;
  readonly status: MemoryStatus;
  readonly state: MemoryState | null;
  /** All sectors, the primary one first; empty for a memory that was not classified yet. */
  readonly sectors: readonly Sector[];
  readonly salience: PortableAnchor | null;
  /** Decay of the salience, per day; null for that of the sector. */
  readonly decay_lambda: number | null;
  readonly strength: PortableAnchor | null;
  readonly access_count: number;
  readonly last_seen_at: number | null;
  readonly document: PortablePlace | null;
  /** Public id of the key that wrote it, for readers of the file: an import is written by the key that imports. */
  readonly written_by: string | null;
  readonly vectors?: readonly PortableVector[] | undefined;
}

/** What an update of a memory replaced. */
export interface PortableRevision {
  readonly type: 'revision';
  /** Id of the memory. */
  readonly memory: string;
  /** Version that was replaced. */
  readonly version: number;
  readonly replaced_at: number;
  /** Whether a link that came or went made the change. */
  readonly by_link: boolean;
  readonly status: MemoryStatus;
  readonly event_time: number;
  readonly valid_from: number | null;
  readonly valid_to: number | null;
  /** Former values of the fields that changed, by their names in `Memory`; times in it are Unix milliseconds. */
  readonly replaced: Metadata;
  readonly written_by: string | null;
}

/** A link between two memories, by their ids. */
export interface PortableLink {
  readonly type: 'link';
  readonly src: string;
  readonly dst: string;
  readonly link_type: EdgeType;
  readonly similarity: number | null;
  /** Weight of the link; null for that of its type. */
  readonly weight: number | null;
  readonly automatic: boolean;
  /** Memory for which a contradiction was decided; null for none. */
  readonly winner: string | null;
  readonly created_at: number | null;
  readonly updated_at: number | null;
  readonly written_by: string | null;
}

/** A document without its text, which its memories hold. Queries find it once all of its memories are there. */
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
  /** Format that its caller declared; null if nobody did. */
  readonly declared: DocumentFormat | null;
  readonly format: DocumentFormat | null;
  /** SHA-256 of the file's bytes, in hex. */
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
  /** Number of its chunks; a document with chunks has a root memory beside them. */
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

/** A piece of a document's text, as Markdown, for readers of the file. An import makes the text of the memories. */
export interface PortableText {
  readonly type: 'document_text';
  /** Id of the document. */
  readonly document: string;
  readonly text: string;
}

/** A setting of the tenant. */
export interface PortableSetting {
  readonly type: 'setting';
  /** `retrieval` holds the defaults of queries, as the HTTP API shows them. */
  readonly name: 'retrieval';
  readonly value: Metadata;
}

/** An evaluation set without its runs. Field names of the items are those of the HTTP API. */
export interface PortableEvalSet {
  readonly type: 'eval_set';
  readonly name: string;
  readonly guard?: boolean | undefined;
  readonly items: readonly (Omit<EvalItem, 'userId'> & { readonly user_id?: string | undefined })[];
}

/** A standing query without its answers and its webhook. An import finds answers among what it brings. */
export interface PortableStandingQuery {
  readonly type: 'standing_query';
  readonly id: string;
  readonly query: string;
  /** The only user whose memories answer; null for all users. */
  readonly user_id: string | null;
  /** Conditions, as the HTTP API takes them. */
  readonly filters: Metadata;
  readonly min_score: number | null;
  readonly created_at: number | null;
}

/** An item of a session log. The items of a log stand in their order. */
export interface PortableLogItem {
  readonly type: 'session_item';
  readonly user_id: string;
  readonly session_id: string;
  /** Place in the log, from 0. */
  readonly position: number;
  readonly item: Json;
  readonly created_at: number | null;
  readonly written_by: string | null;
}

/** Lines that come first in a file, as whoever exports and imports reads and stores them; the engine passes them on. */
export type PortableConfiguration = PortableSetting | PortableEvalSet | PortableStandingQuery;

/** A line between the first and the last of a file. */
export type PortableLine =
  | PortableConfiguration
  | PortableMemory
  | PortableRevision
  | PortableLink
  | PortableDocument
  | PortableText
  | PortableLogItem;

/** What is exported. */
export interface ExportOptions {
  /** Selects memories, whatever their status; a part of a document is selected with its root memory. */
  readonly filter?: MemoryFilter | undefined;
  /** Whether memories bring their vectors; false by default. */
  readonly vectors?: boolean | undefined;
  /** Lines to write first; none by default. */
  readonly configuration?: AsyncIterable<{ readonly type: PortableConfiguration['type'] }> | undefined;
  /** What was asked for, in the caller's words, which the first line repeats. */
  readonly asked?: Metadata | undefined;
}

/**
 * What became of a line: `stored`; `known` because it is there already; `kept` because it is there and was changed here
 * since, which stays; `read` because there is nothing to store of it; or `refused`, with the reason.
 */
export type ImportOutcome =
  | { readonly kind: 'stored' | 'known' | 'kept' | 'read' }
  | { readonly kind: 'refused'; readonly error: { readonly code: string; readonly message: string } };

/** Methods of a tenant for its data as a whole. */
export interface Portable {
  /**
   * Exports the tenant as lines of JSON, in pieces of whole lines. Memories are as they were when the export began,
   * except for those that were erased since, which are left out; how they are remembered (salience, strength, counts)
   * is that of the moment at which each was read. Keys, jobs and logs of requests are never exported.
   * @throws EngineError `invalid` for a malformed condition of the filter
   */
  exportLines(options: ExportOptions): AsyncIterable<string>;
  /**
   * Stores lines of a portable file in one commit, each exactly or not at all. A line that is there already is `known`,
   * and `kept` if it was changed here after the version of the line. One that is there with other content is refused
   * with `conflict`. What is there stays in all three cases.
   * @returns outcomes in the order of the lines
   * @throws EngineError `unavailable` and `storage_full` as `addMemories`
   */
  importLines(lines: readonly PortableLine[]): Promise<ImportOutcome[]>;
  /**
   * Begins a dry run: its `importLines` returns what an import would, line by line, and stores nothing. What earlier
   * lines of the dry run would have stored counts as stored.
   */
  rehearseImport(): Pick<Portable, 'importLines'>;
}
