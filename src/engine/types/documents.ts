import type { Metadata } from './memory.ts';

/** The states of a document; `DocumentState` says what they mean. */
export const DOCUMENT_STATES = ['queued', 'processing', 'ready', 'empty', 'failed', 'cancelled'] as const;

/**
 * Says how far a document is. It is `queued` until a worker takes it, then `processing` until every chunk is embedded
 * and linked or its job has given up; its words are found earlier. An `empty` document was read and holds no text.
 * `failed` and `cancelled` have nothing to show: if an earlier reading is shown, the document stays `ready`.
 */
export type DocumentState = (typeof DOCUMENT_STATES)[number];

/** The formats of files that Cairn reads. */
export const DOCUMENT_FORMATS = [
  'pdf',
  'docx',
  'pptx',
  'xlsx',
  'epub',
  'html',
  'markdown',
  'text',
  'csv',
  'json',
  'ndjson',
  'email',
  'code',
] as const;
export type DocumentFormat = (typeof DOCUMENT_FORMATS)[number];

/** A part that is missing in a document's text, or is in it although a reader does not see it. Never holds content. */
export interface DocumentWarning {
  /** Kind of the warning. `hidden_text_found` and `base64_text` are about text that was kept, others about losses. */
  readonly code:
    | 'page_unreadable'
    | 'hidden_text_dropped'
    | 'hidden_text_found'
    | 'base64_text'
    | 'attachment_ignored'
    | 'external_reference_ignored'
    | 'script_ignored'
    | 'undecodable_bytes'
    | 'part_unreadable';
  readonly message: string;
  /** Page that the warning is about, from 1; absent if it is about no certain page. */
  readonly page?: number;
}

/** A document to add. */
export interface NewDocument {
  /** The uploaded file, or the URL from which it is fetched. */
  readonly source: UploadedFile | { readonly kind: 'url'; readonly url: string };
  /** Owner of the document; '' for nobody in particular. */
  readonly userId: string;
  /** Conversation or task that the document belongs to; '' for none. */
  readonly sessionId: string;
  /**
   * Name of the document in the caller's system, unique for each user; null for none. Adding a document with the name
   * of an earlier one replaces the earlier document if anything changed.
   */
  readonly externalId: string | null;
  /** Title of the document; with '' it is taken from the file, or else from the file's name. */
  readonly title: string;
  /** The caller's own kind of document, which its memories get as well; null for none. */
  readonly type: string | null;
  /** Tags of the document, which its memories get as well. */
  readonly tags: readonly string[];
  /**
   * Metadata of the document, which its memories get as well: a JSON object of at most `MAX_METADATA_BYTES`. Its
   * `sector` forces the primary sector of each chunk.
   */
  readonly metadata: Metadata;
  /** Time of what the document tells, Unix ms; null for the time of the add. */
  readonly eventTime: number | null;
  /** Time from which the document is no longer found and is erased, Unix ms; null for never. */
  readonly expiresAt: number | null;
}

/** A file in the uploads folder, completely on disk. */
export interface UploadedFile {
  readonly kind: 'upload';
  /** Name of the file in the uploads folder, as `Upload.name` gave it. */
  readonly name: string;
  /** Size of the file in bytes. */
  readonly bytes: number;
  /** SHA-256 of the file's bytes. */
  readonly sha256: Uint8Array;
  /** Name that the caller gave the file; '' for none. It is never used as a path. */
  readonly fileName: string;
  /** Format on which the caller's words and the first bytes agree; null leaves it to the parser. */
  readonly declared: DocumentFormat | null;
  /** Character set that the caller named; null for none. */
  readonly charset: string | null;
}

/**
 * A stored document as a reader sees it. Times are Unix milliseconds. File, title, text and metadata are those of the
 * reading that queries find, even while another one is under way or has failed. `state` and `error` tell of the latest
 * reading, and `progress` of the one under way, if there is one.
 */
export interface Document {
  readonly id: string;
  readonly userId: string;
  readonly sessionId: string;
  readonly externalId: string | null;
  readonly state: DocumentState;
  /** Why the latest reading failed, or why the document is empty; null otherwise. */
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly source: 'upload' | 'url';
  /** URL from which the document was fetched; null for an upload. */
  readonly url: string | null;
  /** Name that the caller gave the uploaded file; null for none, and for a document from a URL. */
  readonly fileName: string | null;
  /** Format of the file; null until it is declared or read. */
  readonly format: DocumentFormat | null;
  /** Size of the file in bytes; null until the file is there. */
  readonly bytes: number | null;
  /** SHA-256 of the file's bytes, hexadecimal; null until the file is there. */
  readonly sha256: string | null;
  /** Title that was given, or else the one in the file, or else the file's name without extension; '' for none. */
  readonly title: string;
  /** Authors that the file names. */
  readonly authors: readonly string[];
  /** Language that the file names, or else that of its text, by BCP 47 such as en; null if not known. */
  readonly language: string | null;
  /** Time of publication that the file names, Unix ms; null for none. */
  readonly publishedAt: number | null;
  /** Time of the last change that the file names, Unix ms; null for none. */
  readonly modifiedAt: number | null;
  readonly type: string | null;
  readonly tags: readonly string[];
  readonly metadata: Metadata;
  readonly eventTime: number | null;
  readonly expiresAt: number | null;
  /** Public id of the key that handed in what is shown; null if that is not known. */
  readonly writtenBy: string | null;
  /**
   * Id of the memory that stands for the whole document, with title, gist and outline; null until the document is
   * shown.
   */
  readonly rootMemoryId: string | null;
  /** Number of chunks; 0 until the document is read. */
  readonly chunks: number;
  /** Number of pages; null if the format has none, or until the document is read. */
  readonly pages: number | null;
  /** Length of the extracted text in UTF-16 units. */
  readonly characters: number;
  /** Tokens of the extracted text as OpenAI's embedding models count them, about; 0 until the document is read. */
  readonly tokens: number;
  readonly progress: DocumentProgress;
  /** What the reading that is shown did to the chunks; null until the document is shown. */
  readonly receipt: DocumentReceipt | null;
  readonly warnings: readonly DocumentWarning[];
  /** Id of the latest job that reads the document; null once the ledger no longer has it. */
  readonly jobId: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Time from which the words of this reading are found, Unix ms; null until then. */
  readonly shownAt: number | null;
  /** Time at which the last chunk was embedded and linked, or given up, Unix ms; null until then. */
  readonly readyAt: number | null;
}

/** How far the reading of a document is: the reading under way, or else the one that is shown. */
export interface DocumentProgress {
  /** Number of pages that were read; 0 if the format has none. */
  readonly pagesDone: number;
  /** Chunks of the whole document; 0 until it is read. */
  readonly chunks: number;
  /** Chunks that have their vectors. */
  readonly embedded: number;
  /** Chunks that are linked: they have a waypoint if another memory is near enough. */
  readonly linked: number;
  /** Chunks whose job has given up or was cancelled; they are found by words alone. */
  readonly failed: number;
  /** Duration in ms of each stage that ended, by its name: `queued`, `fetch`, `parse`, `store`, `encode`. */
  readonly stages: Readonly<Record<string, number>>;
}

/** Number of chunks that a reading stored anew, kept from the reading before it, and removed. */
export interface DocumentReceipt {
  readonly stored: number;
  readonly kept: number;
  readonly removed: number;
}

/**
 * Selects documents. Fields are joined by AND, and the values of one list by OR. A field that is left out asks for
 * nothing, and an empty list matches nothing.
 */
export interface DocumentFilter {
  readonly userIds?: readonly string[] | undefined;
  readonly sessionIds?: readonly string[] | undefined;
  readonly states?: readonly DocumentState[] | undefined;
  readonly externalIds?: readonly string[] | undefined;
  readonly ids?: readonly string[] | undefined;
  /** Selects documents, shown or about to be read, that these keys handed in. */
  readonly writtenBy?: readonly string[] | undefined;
  /** Selects documents whose file, shown or about to be read, has this SHA-256, hexadecimal. */
  readonly sha256?: string | undefined;
}

/** The position of a memory in the document that it belongs to. */
export interface Provenance {
  readonly documentId: string;
  readonly title: string;
  readonly fileName: string | null;
  readonly url: string | null;
  readonly format: DocumentFormat | null;
  readonly sha256: string | null;
  /** Number of the chunk, from 0; null for the root memory, which stands for the whole document. */
  readonly chunk: number | null;
  /** Number of chunks of the whole document. */
  readonly chunks: number;
  /** Start of the chunk in the extracted text, in UTF-16 units; null for the root memory. */
  readonly startOffset: number | null;
  /** End of the chunk in the extracted text, excluded, in UTF-16 units; null for the root memory. */
  readonly endOffset: number | null;
  /** Number of the page, slide or sheet on which the chunk begins, from 1; null if the format has none. */
  readonly pageFrom: number | null;
  /** Number of the page, slide or sheet on which the chunk ends; null if the format has none. */
  readonly pageTo: number | null;
  /** Headings above the chunk's first own character, outermost first; empty for none. */
  readonly headingPath: readonly string[];
  /** Time at which this reading of the document was accepted, Unix ms. */
  readonly ingestedAt: number;
}

/** A chunk of a document. */
export interface DocumentChunk {
  readonly memoryId: string;
  readonly provenance: Provenance;
  /** Tokens of the chunk's text as OpenAI's embedding models count them. */
  readonly tokens: number;
}

/** The reply to adding or replacing a document. */
export interface DocumentReply {
  readonly document: Document;
  /**
   * What happened: with `accepted` the document will be read and nothing of it is shown yet, with `replaced` it will be
   * read again while an earlier reading is shown, and with `unchanged` nothing was written.
   */
  readonly outcome: 'accepted' | 'replaced' | 'unchanged';
  /** Id of the job that reads the document, even if an unchanged one is still being read; null if there is none. */
  readonly jobId: string | null;
  /**
   * The write receipt, with which `waitFor` or a query waits for the document; null if there is nothing to wait for.
   */
  readonly token: string | null;
}

/** Turns the bytes of a file into what is stored of them. */
export interface Encoder {
  /** Returns what the file holds for the next bytes, which may be nothing yet. */
  update(bytes: Uint8Array): Uint8Array;
  /** Returns the end of the file. Call it once, after all bytes. */
  end(): Uint8Array;
}

/** A place for a file that a caller is about to write, before it becomes a document. The file is there and empty. */
export interface Upload {
  /** Name of the file in the uploads folder, for `UploadedFile.name`. Cairn chooses it, not the caller. */
  readonly name: string;
  /** Absolute path to which the caller writes the file. */
  readonly path: string;
  /** Makes what turns the document's bytes into those that the caller writes to the file. */
  createEncoder(): Encoder;
  /** Reads bytes of the file back, in clear and in pieces, from the offset `start` to before `end`. */
  readPart(part: { readonly start: number; readonly end: number }): AsyncIterable<Buffer>;
  /** Removes the file. Call it if the file is not passed to `addDocument` or `replaceDocument` after all. */
  discard(): void;
}
