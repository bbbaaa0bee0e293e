import type { Metadata } from './memory.ts';

/** The states of a document; `DocumentState` says what they mean. */
export const DOCUMENT_STATES = ['queued', 'processing', 'ready', 'empty', 'failed', 'cancelled'] as const;

/**
 * Says how far the latest reading of a document is. A `queued` document waits for a worker. A `processing` one is being
 * read or its chunks are being embedded and linked; queries find its words as soon as it was read. A `ready` one has no
 * chunk left to process, though the jobs of some chunks may have failed. An `empty` one was read and holds no text. A
 * `failed` or `cancelled` document has no version that queries find; if queries find an earlier version, the document
 * stays `ready`.
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

/**
 * A warning that the extracted text of a document lacks something, or holds something that a reader of the document
 * does not see. It never quotes content.
 */
export interface DocumentWarning {
  /**
   * Kind of the warning. `hidden_text_found` and `base64_text` are about text that was kept, all other kinds about text
   * that is missing.
   */
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
  /** Number of the page that the warning is about, from 1; absent if it is about no single page. */
  readonly page?: number;
}

/** A document to add. */
export interface NewDocument {
  /** The uploaded file, or the URL from which it is fetched. */
  readonly source: UploadedFile | { readonly kind: 'url'; readonly url: string };
  /** User who owns the document; '' for no particular user. */
  readonly userId: string;
  /** Conversation or task that the document belongs to; '' for none. */
  readonly sessionId: string;
  /**
   * Name of the document in the caller's system, unique for each user; null for none. A document with the name of an
   * earlier one is a new version of it, and so is one without a name that has the URL, or in its session the bytes, of
   * an earlier one without a name. A new version of a file is read if the file or what is stated with it has changed,
   * or if the latest reading failed; otherwise nothing is written. A page is always fetched, unless its fetch is still
   * to come.
   */
  readonly externalId: string | null;
  /** Title of the document; with '' the title in the file is used, or else the name of the file. */
  readonly title: string;
  /** Type of the document by the caller's own scheme, which its memories get as well; null for none. */
  readonly type: string | null;
  /** Tags of the document, which its memories get as well; empty for none. */
  readonly tags: readonly string[];
  /**
   * Metadata of the document, which its memories get as well: a JSON object of at most 16 KiB (`MAX_METADATA_BYTES`). A
   * valid `sector` in it becomes the primary sector of each chunk.
   */
  readonly metadata: Metadata;
  /** Time of the event that the document is about, Unix ms; null for the time at which the document is added. */
  readonly eventTime: number | null;
  /** Time from which no read finds the document, Unix ms; null for never. It is erased soon after. */
  readonly expiresAt: number | null;
}

/** A file in the uploads folder that is completely written and synced to disk. */
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
  /**
   * Format by the first bytes and the caller's words (media type, file name); null for a zip archive whose format only
   * its directory shows, which the parser reads.
   */
  readonly declared: DocumentFormat | null;
  /** Character set that the caller named; null for none, and the parser then detects it. */
  readonly charset: string | null;
}

/**
 * A stored document as a caller sees it. Times are Unix ms. A document may be read several times. File, title, sizes,
 * tags and metadata are those of the version that queries find, even while a newer version is being read or after that
 * failed; while queries find none, those of the latest version. `state` and `error` describe the latest reading, and
 * `progress` the reading that is under way, if there is one. Fields of `NewDocument` without a comment
 * mean the same.
 */
export interface Document {
  readonly id: string;
  readonly userId: string;
  readonly sessionId: string;
  readonly externalId: string | null;
  readonly state: DocumentState;
  /** Why the latest reading failed or found no text; null if it did neither. */
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly source: 'upload' | 'url';
  /** URL from which the document was fetched; null for an upload. */
  readonly url: string | null;
  /** Name that the caller gave the uploaded file; null if the caller gave none, or if the document is from a URL. */
  readonly fileName: string | null;
  /**
   * Format of the file: the one that was found when it was read, or else the one that was declared; null before both.
   */
  readonly format: DocumentFormat | null;
  /** Size of the file in bytes; null until a file from a URL was fetched. */
  readonly bytes: number | null;
  /** SHA-256 of the file's bytes, hexadecimal; null until a file from a URL was fetched. */
  readonly sha256: string | null;
  /**
   * Title that the caller gave, or else the one in the file, or else the file's name without extension; '' if there is
   * none of them.
   */
  readonly title: string;
  /** Authors that the file names; empty if it names none or was not read yet. */
  readonly authors: readonly string[];
  /**
   * Language that the file names, or else the one detected in its text, as a BCP 47 tag such as `en`; null if neither
   * is known.
   */
  readonly language: string | null;
  /** Time of publication that the file names, Unix ms; null if it names none. */
  readonly publishedAt: number | null;
  /** Time of the last change that the file names, Unix ms; null if it names none. */
  readonly modifiedAt: number | null;
  readonly type: string | null;
  readonly tags: readonly string[];
  readonly metadata: Metadata;
  readonly eventTime: number | null;
  readonly expiresAt: number | null;
  /** Public id of the API key that added this version of the document; null if that is not known. */
  readonly writtenBy: string | null;
  /**
   * Id of the memory that stands for the whole document and holds its title, gist and outline; null until queries find
   * the document, and for a document without text.
   */
  readonly rootMemoryId: string | null;
  /** Number of chunks, without the root memory; 0 until the document was read. */
  readonly chunks: number;
  /**
   * Number of pages, slides, sheets or chapters that were read, without hidden ones; null until the document was read,
   * and for a file without any.
   */
  readonly pages: number | null;
  /** Length of the extracted text in UTF-16 code units; 0 until the document was read. */
  readonly characters: number;
  /** Estimated number of tokens of the extracted text, as OpenAI's embedding models count them; 0 until it was read. */
  readonly tokens: number;
  readonly progress: DocumentProgress;
  /**
   * Numbers of chunks that were stored, kept and removed when the version that queries find was read; null until
   * queries find the document.
   */
  readonly receipt: DocumentReceipt | null;
  /** Warnings of the version; empty if there are none or it was not read yet. */
  readonly warnings: readonly DocumentWarning[];
  /** Id of the latest job that reads the document; null once that job was removed from the ledger. */
  readonly jobId: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Time from which queries find the words of this version of the document, Unix ms; null before that. */
  readonly shownAt: number | null;
  /**
   * Time at which the last chunk of this version of the document was embedded and linked, or its job gave up, Unix ms;
   * null before that.
   */
  readonly readyAt: number | null;
}

/** Progress of reading a document: of the reading that is under way, or else of the one whose text queries find. */
export interface DocumentProgress {
  /** Number of pages that were read so far; 0 for a format without pages. */
  readonly pagesDone: number;
  /** Number of chunks of the whole document; 0 until it was read. */
  readonly chunks: number;
  /** Number of chunks that have their vectors. */
  readonly embedded: number;
  /**
   * Number of chunks for which the step `link` has run. A chunk then has a waypoint (automatic link) only if another
   * memory is near enough.
   */
  readonly linked: number;
  /** Number of chunks whose job gave up or was cancelled; queries find them by words alone. */
  readonly failed: number;
  /** Duration in ms of each stage that has ended, by its name: `queued`, `fetch`, `parse`, `store`, `encode`. */
  readonly stages: Readonly<Record<string, number>>;
}

/**
 * Numbers of chunks that reading a document stored anew, kept from the reading before because they are equal, and
 * removed.
 */
export interface DocumentReceipt {
  readonly stored: number;
  readonly kept: number;
  readonly removed: number;
}

/**
 * Selects documents. A document must meet every field that is given, and a field with a list is met by one of its
 * values. A field that is left out excludes nothing; an empty list matches no document.
 */
export interface DocumentFilter {
  readonly userIds?: readonly string[] | undefined;
  readonly sessionIds?: readonly string[] | undefined;
  readonly states?: readonly DocumentState[] | undefined;
  readonly externalIds?: readonly string[] | undefined;
  readonly ids?: readonly string[] | undefined;
  /**
   * Keeps documents that were added by one of these keys (public ids). The version that queries find counts, and one
   * that is being read.
   */
  readonly writtenBy?: readonly string[] | undefined;
  /**
   * Keeps documents whose file has this SHA-256, hexadecimal. The file of the version that queries find counts, and
   * that of one that is being read.
   */
  readonly sha256?: string | undefined;
}

/**
 * Position of a memory in the document that it is a part of, with what identifies the document. Title, file name, URL,
 * format and hash are as in `Document`.
 */
export interface Provenance {
  readonly documentId: string;
  readonly title: string;
  readonly fileName: string | null;
  readonly url: string | null;
  readonly format: DocumentFormat | null;
  readonly sha256: string | null;
  /** Index of the chunk in the document, from 0; null for the root memory, which stands for the whole document. */
  readonly chunk: number | null;
  /** Number of chunks of the whole document. */
  readonly chunks: number;
  /** Offset of the chunk's first character in the extracted text, in UTF-16 code units; null for the root memory. */
  readonly startOffset: number | null;
  /** Offset after the chunk's last character in the extracted text, in UTF-16 code units; null for the root memory. */
  readonly endOffset: number | null;
  /** Number of the page, slide or sheet on which the chunk begins, from 1; null for a format without them. */
  readonly pageFrom: number | null;
  /** Number of the page, slide or sheet on which the chunk ends, from 1; null for a format without them. */
  readonly pageTo: number | null;
  /**
   * Headings of the sections around the start of the chunk's text (after its overlap with the chunk before), outermost
   * first; empty if there are none.
   */
  readonly headingPath: readonly string[];
  /** Time at which this version of the document was added, Unix ms. */
  readonly ingestedAt: number;
}

/** A chunk of a document: the memory that holds it, and its position. */
export interface DocumentChunk {
  readonly memoryId: string;
  readonly provenance: Provenance;
  /** Estimated number of tokens of the chunk's text, as OpenAI's embedding models count them. */
  readonly tokens: number;
}

/** Reply to adding or replacing a document. */
export interface DocumentReply {
  readonly document: Document;
  /**
   * Result of the request. `accepted`: the document will be read, and queries find nothing of it yet. `replaced`: it
   * will be read again, and queries find the earlier version until then. `unchanged`: it is stored already, and nothing
   * was written.
   */
  readonly outcome: 'accepted' | 'replaced' | 'unchanged';
  /**
   * Id of the job that reads the document, also if an `unchanged` document is still being read; null if no job does.
   */
  readonly jobId: string | null;
  /** Write receipt with which `waitFor` or a query waits for the document; null if no job is left to wait for. */
  readonly token: string | null;
}

/**
 * Turns the bytes of a file into the bytes that are stored on disk: encrypted with the file key if one is set, else the
 * same bytes.
 */
export interface Encoder {
  /**
   * Returns the stored bytes that follow from the next bytes of the file; may be empty while bytes are buffered.
   * @throws EngineError `storage_full` if the disk no longer has space for the files that are arriving; the caller then
   *   discards the file
   */
  update(bytes: Uint8Array): Uint8Array;
  /** Returns the last stored bytes. Call it exactly once, after all bytes were passed to `update`. */
  end(): Uint8Array;
}

/** An empty file in the uploads folder that a caller is about to write, before a document is made of it. */
export interface Upload {
  /** Name of the file in the uploads folder, which Cairn chooses; to be passed on as `UploadedFile.name`. */
  readonly name: string;
  /** Absolute path to which the caller writes the file. */
  readonly path: string;
  /** Makes an encoder: what it returns for the document's bytes is what the caller must write to `path`. */
  createEncoder(): Encoder;
  /**
   * Reads bytes of the written file back, decoded and in several buffers, from the offset `start` to before the offset
   * `end`.
   */
  readPart(part: { readonly start: number; readonly end: number }): AsyncIterable<Buffer>;
  /** Removes the file. Call it if the file is not passed to `addDocument` or `replaceDocument`. */
  discard(): Promise<void>;
}
