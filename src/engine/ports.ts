/** The interfaces that an engine can be given other implementations for: clock, log, providers, index and others. */

import type {
  CallPurpose,
  DocumentFormat,
  DocumentWarning,
  JobStep,
  Omission,
  SensitiveKind,
  SensitiveSpan,
} from './types.ts';

/** Tells the time, in Unix milliseconds. Tests move it by hand. */
export interface Clock {
  now(): number;
}

/** The clock of the operating system. */
export const systemClock: Clock = { now: () => Date.now() };

/**
 * Takes log entries, each an event name such as `jobs_recovered`, with fields that never hold content, a query, a key
 * or a caller's file name. A pino logger is one.
 */
export interface Logger {
  debug(fields: object, event: string): void;
  info(fields: object, event: string): void;
  warn(fields: object, event: string): void;
  error(fields: object, event: string): void;
}

/** A logger that writes nothing. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * Encoding of the vectors of a space. `int5` takes five bits for each dimension and is scaled by the vector's largest
 * component, which does not change a cosine. `float32` stands for vectors as providers give them; `OM_VECTOR_PRECISION`
 * says how those are stored.
 */
export type VectorEncoding = 'int5' | 'float32';

/** Precisions in which vectors of providers are stored, from the finest to the coarsest. */
export const VECTOR_PRECISIONS = ['float32', 'float16', 'int8'] as const;

/** Precision in which a vector of a provider is stored. */
export type VectorPrecision = (typeof VECTOR_PRECISIONS)[number];

/** Options of a call that embeds texts. */
export interface EmbedOptions {
  /**
   * Whether the texts are stored or searched with. Some models embed queries and documents differently; the offline one
   * weighs a query's words by rarity.
   */
  readonly purpose: 'document' | 'query';
  readonly signal?: AbortSignal | undefined;
  /**
   * Called with every reply of the provider, errors included, before `embed` returns or throws: its headers and billed
   * tokens are needed for the limits.
   */
  readonly onReply?: ((reply: ProviderReply) => void) | undefined;
}

/** What a provider's reply holds beside its answer. */
export interface ProviderReply {
  /** HTTP headers of the reply. */
  readonly headers: Headers;
  /** Tokens of the call as the provider counted them; undefined if it does not say. */
  readonly tokens?: number | undefined;
}

/**
 * Turns texts into vectors. One embedder makes one vector space: (provider, model, dimensions, encoding) names it,
 * and vectors of different spaces are never compared.
 */
export interface Embedder {
  readonly provider: string;
  readonly model: string;
  readonly dimensions: number;
  readonly encoding: VectorEncoding;
  /** Lowest cosine similarity, included, at which two memories get a waypoint (automatic link). Differs by embedder. */
  readonly waypointThreshold: number;
  /**
   * Whether unrelated texts may have cosines far above 0, as with most trained models. If so, the cosine c of
   * unrelated memories is measured in each file (0 until then), and the waypoint threshold t becomes c + (1 − c) · t.
   */
  readonly isAnisotropic: boolean;
  /** Default weight of vectors against words in rank fusion and scores, 0..1; below 0.5 for hashed words. */
  readonly vectorWeight: number;
  /** Whether the caller should cache vectors by content hash: each costs money, a network call or much computing. */
  readonly cacheable: boolean;
  /** Greatest number of texts in one call of `embed`. */
  readonly maxBatchTexts: number;
  /** Greatest number of estimated tokens of all texts of one call together; a single text may have more. */
  readonly maxBatchTokens: number;
  /** Loads the packages and models that embedding needs; otherwise the first `embed` does so and takes longer. */
  prepare?(): Promise<void>;
  /** Ends what embedding has started, such as the thread of a local model, and with it the calls under way. */
  close?(): void;
  /**
   * Embeds texts in one call: one L2-normalised vector of `dimensions` components for each text, in order.
   * @throws EngineError `rate_limited` with `retryAfterMs`; `unavailable` on abort, or when the provider is down, slow
   *   or replied with anything but one valid vector per text (the whole reply is refused); `invalid` when a text itself
   *   is refused
   */
  embed(texts: readonly string[], options: EmbedOptions): Promise<Float32Array[]>;
}

/** The answer of a language model, with the tokens that it read and wrote, estimated if its server does not count. */
export interface Completion {
  /** The whole answer; never blank, cut off or a refusal. */
  readonly text: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** A chat model, for what needs one: reranking, names and relations, contradictions, reflections, consolidations. */
export interface LanguageModel {
  readonly provider: string;
  readonly model: string;
  /** Loads the packages that a call needs. If nobody calls it, the first `complete` does so and takes longer. */
  prepare?(): Promise<void>;
  /**
   * Answers one prompt, at temperature 0 if the model takes a temperature, bounded in time and size.
   * @param request `instructions` are Cairn's; `input` is data that the model must not obey; `purpose` is for the log
   *   of calls; `maxTokens` bounds the answer; `tenant` is the path of the file of the tenant that asks, which is not
   *   sent: only this tenant's earlier answers may be given again
   * @param onReply called with every reply of the provider, before `complete` returns or throws
   * @throws EngineError `rate_limited` with `retryAfterMs`; `unavailable` on abort, or when the provider is down, slow,
   *   refuses the call or does not reply with a completion; `invalid` if it declines to answer this prompt, or does
   *   not finish within `maxTokens`; `conflict` if the refusal told which form of the request it accepts: the next call
   *   of the same request takes that form
   */
  complete(
    request: {
      readonly purpose: Exclude<CallPurpose, EmbedOptions['purpose']>;
      readonly instructions: string;
      readonly input: string;
      readonly maxTokens: number;
      readonly tenant?: string;
    },
    signal?: AbortSignal,
    onReply?: EmbedOptions['onReply'],
  ): Promise<Completion>;
}

/**
 * What a vector of an index represents: a `window` (part of a memory's text, searched to rank results), the `mean` of
 * all windows of a memory (searched to link memories), or the `whole` of a memory with one window (searched for both).
 */
export type VectorRole = 'whole' | 'window' | 'mean';

/** A vector as it is added to an index. */
export interface IndexedVector {
  /** Number of the vector in its file, over all models. */
  readonly vectorNo: number;
  /** `memoryNo` (number in the file) of the memory whose text the vector represents. */
  readonly memory: number;
  /** `userNo` (number in the file) of the user of the memory. */
  readonly userNo: number;
  readonly role: VectorRole;
  readonly embedding: Float32Array;
}

/** A search for the nearest vectors. */
export interface IndexSearch {
  /** Vector whose nearest neighbours are searched: normalised, with the dimensions of the index. */
  readonly embedding: Float32Array;
  /** `userNo` of the user whose vectors are searched; undefined searches those of all users. */
  readonly userNo?: number | undefined;
  /**
   * Which vectors are searched: `rank` searches those of windows and whole memories, `link` means and whole memories.
   */
  readonly purpose: 'rank' | 'link';
  /** Greatest `memoryNo` (number of a memory) whose vectors are searched, included; undefined sets no bound. */
  readonly upTo?: number | undefined;
  /**
   * Greatest number of vectors to return, a whole number in 1..4096. The caller asks for more than it needs and
   * rescores from the stored vectors.
   */
  readonly k: number;
}

/**
 * Finds approximate nearest neighbours among one model's vectors of one tenant. The index is derived data: it can be
 * made again from the stored vectors at any time. Call `add`, `remove` and `clear` inside a write transaction;
 * `search`, `searchAll` and `vectorsOf` throw inside one. With threads that share vectors, these three may also throw
 * `SnapshotIsBehind` and `SharedMemoryLost`. A search sees what its connection's read snapshot holds,
 * whichever connection wrote it.
 */
export interface VectorIndex {
  /**
   * Adds vectors to the index. They are stored already and come in ascending order of `vectorNo`; no number is ever
   * given twice.
   */
  add(vectors: readonly IndexedVector[]): void;
  /** Removes vectors that are no longer stored, by their `vectorNo`; ignores unknown numbers. */
  remove(vectorNos: readonly number[]): void;
  /**
   * Reads what was written to the index since the last search or load, a few milliseconds at a time. If nobody calls
   * it, the next search does so in one go, which may take seconds the first time.
   */
  load(): Promise<void>;
  /** Returns at most `k` values of `vectorNo`, nearest first by the index's approximate measure. */
  search(search: IndexSearch): readonly number[];
  /**
   * Runs several searches together, which is faster than one by one.
   * @returns for each search, in order, what `search` would return
   */
  searchAll(searches: readonly IndexSearch[]): readonly (readonly number[])[];
  /**
   * Returns the `vectorNo` of a user's vectors of windows and whole memories, in ascending order; undefined if there
   * may be more than `most` vectors. It saves looking up each memory's vectors in the file.
   */
  vectorsOf(userNo: number, most: number): readonly number[] | undefined;
  /** Removes all vectors. The caller then adds them all again. */
  clear(): void;
  /** Frees the memory of the index. It cannot be used afterwards. */
  close(): void;
}

/**
 * Notifies workers that a tenant's ledger (table of jobs) has work. This is only a hint: if it is lost, the next
 * regular check of the ledger finds the job, only later.
 */
export interface JobDispatcher {
  /** Notifies workers that the ledger of the tenant's file at `path` may have work at `step`. */
  dispatch(path: string, step: JobStep): void;
  /** Says how jobs reach the workers. Absent if workers read the ledger themselves. */
  state?(): QueueState;
  close(): Promise<void>;
}

/**
 * How jobs reach workers: `embedded` means that a worker in this process reads the ledger itself; with `redis` or
 * `postgres` queues in that server carry them, and `isUp` says whether they can be reached now.
 */
export type QueueState =
  { readonly mode: 'embedded' } | { readonly mode: 'redis' | 'postgres'; readonly isUp: boolean };

/** A file to read, and how to cut its text. */
export interface ParseRequest {
  /** Contents of the whole file. */
  readonly bytes: Uint8Array;
  /**
   * Format of the file as the caller knows it, with which the content of a zip archive must agree. If it is null, the
   * parser tells the format by the first bytes and, if these are not clear, by the extension.
   */
  readonly declared: DocumentFormat | null;
  /** Character set that was declared for the file; if it is null, the parser detects it. */
  readonly charset: string | null;
  /** Extension of the file's name without the dot, in lower case; '' if it has none. */
  readonly extension: string;
  /** Greatest number of tokens in a chunk. */
  readonly sizeTokens: number;
  /** Greatest number of tokens that a chunk repeats from the end of the chunk before it. */
  readonly overlapTokens: number;
}

/** A document in chunks, which cover its text without gaps. `language`: the one that the file names, else detected. */
export interface ParseResult extends Omit<ParsedDocument, 'text' | 'pages'> {
  readonly format: DocumentFormat;
  /** Number of pages that were read, hidden ones left out; null for a file without any. */
  readonly pages: number | null;
  /** Length of the text, in UTF-16 code units. */
  readonly characters: number;
  /** Estimated number of tokens of the text: those of all chunks, minus the text that chunks repeat from each other. */
  readonly tokens: number;
  /** Headings in order, at most 200, each with its level 1..6. If there are more, the outermost are kept. */
  readonly outline: readonly { readonly level: number; readonly text: string }[];
  /** The chunks; `sensitive`: kinds marked in a chunk, its headings and the title; absent if none were sought. */
  readonly chunks: readonly (Chunk & { readonly content: string; readonly sensitive?: readonly SensitiveKind[] })[];
  /** Kinds that are marked in title, authors and outline; absent if none were sought. */
  readonly sensitive?: readonly SensitiveKind[];
}

/**
 * Reads files outside of this process. A hostile file can only harm a child process, which has no network, cannot open
 * files, and is killed if it takes too much time or memory.
 */
export interface DocumentParser {
  /**
   * Reads a file and cuts its text into chunks; a file without text has no chunks.
   * @param options.tenant name of the tenant whose file it is: a child process reads files of one tenant only
   * @param options.onPage called from time to time with the number of pages that are done, and of all pages
   * @param options.onParsed called once for each document that a child was given, however its reading ended, with the
   *   time for which it kept the child busy (ms); time without a processor does not count
   * @throws DocumentError for a fault of the file itself; EngineError `unavailable` if no child could be started, or on
   *   abort
   */
  parse(
    request: ParseRequest,
    options?: {
      readonly tenant?: string;
      readonly signal?: AbortSignal | undefined;
      readonly onPage?: (done: number, pages: number) => void;
      readonly onParsed?: (ms: number) => void;
    },
  ): Promise<ParseResult>;
  close(): Promise<void>;
}

/** Finds personal values in prose that patterns do not recognise, such as names of people. */
export interface TextAnalyzer {
  /**
   * Finds the personal values of a text, in any order; the spans may overlap. While the analyzer cannot be reached and
   * `OM_PII_FAIL` is `store`, it returns none.
   * @throws EngineError `unavailable` with `retryAfterMs` while it cannot be reached and `OM_PII_FAIL` is `refuse`
   */
  find(text: string): Promise<SensitiveSpan[]>;
}

/** A page or file that was fetched from a URL. */
export interface FetchedFile {
  /** Contents of the file, decompressed. */
  readonly bytes: Uint8Array;
  /** SHA-256 of `bytes`. */
  readonly sha256: Uint8Array;
  /** Format by the bytes, media type and extension; null for a zip archive that only its directory can tell. */
  readonly declared: DocumentFormat | null;
  /** Character set that the server declared; null if it declared none. */
  readonly charset: string | null;
  /** Extension of the URL's path in lower case, without dot; '' for none, or a media type other than text/plain. */
  readonly extension: string;
  /** Value of the header ETag, by which a later fetch asks for changes; null if there is none, or after a redirect. */
  readonly etag: string | null;
  /** Value of the header Last-Modified, by which a later fetch asks, too; null as for `etag`. */
  readonly lastModified: string | null;
}

/**
 * Fetches pages that callers name. It reaches only public addresses, whatever host names, redirects and DNS replies
 * say.
 */
export interface PageFetcher {
  /**
   * Fetches a page and follows its redirects.
   * @param known `etag` and `lastModified` of the caller's last reply for this URL; null if there is none
   * @returns `unchanged` if the server says that the page has not changed
   * @throws DocumentError `fetch_refused` for a URL that must not be fetched, `fetch_failed` for one that could not be,
   *   `document_too_large`, `unsupported_document`; EngineError `unavailable` on abort and after `close`
   */
  fetch(
    url: string,
    known: { readonly etag: string | null; readonly lastModified: string | null } | null,
    signal?: AbortSignal,
  ): Promise<FetchedFile | 'unchanged'>;
  close(): Promise<void>;
}

/** The text and data that a format's parser takes from a file, before the text is cut into chunks. */
export interface ParsedDocument {
  /**
   * Text with line ends \n: Markdown with headings, lists, tables and code, or of the kind that `textKindOf` names.
   * `parseDocument` then replaces NUL and other characters that a store cannot hold; offsets stay right.
   */
  readonly text: string;
  /** Start of each page, slide or sheet in `text`, ascending; empty for a format without pages. */
  readonly pages: readonly PageStart[];
  /** Title that the file states; '' if it states none. */
  readonly title: string;
  /** Authors that the file states, in order; empty if it states none. */
  readonly authors: readonly string[];
  /** Language that the file states, by BCP 47 such as en or pt-BR; null if it states none. */
  readonly language: string | null;
  /** Time of publication that the file states, Unix ms; null if it states none. */
  readonly publishedAt: number | null;
  /** Time of the last change that the file states, Unix ms; null if it states none. */
  readonly modifiedAt: number | null;
  /** Warnings: content that was left out, or kept although a reader does not see it, and why. */
  readonly warnings: readonly DocumentWarning[];
  /** What the parser left out of the text, by reason; absent if it left out nothing. */
  readonly omissions?: readonly Omission[];
}

/** The start of a page in the text. */
export interface PageStart {
  /** Number of the page, from 1. */
  readonly page: number;
  /** Offset in the text, in UTF-16 units. */
  readonly start: number;
}

/** A part of a document's text: `text.slice(startOffset, endOffset)`. Offsets are UTF-16 units, the end excluded. */
export interface Chunk {
  readonly startOffset: number;
  readonly endOffset: number;
  /**
   * Headings that stand above the chunk's first new character, that is, one that no earlier chunk holds; outermost
   * first.
   */
  readonly headingPath: readonly string[];
  /** Number of the page on which the chunk begins, from 1; null if the format has no pages. */
  readonly pageFrom: number | null;
  /** Number of the page on which the chunk ends, from 1; null if the format has no pages. */
  readonly pageTo: number | null;
  /** Number of tokens of this text as OpenAI's embedding models count them (cl100k_base). */
  readonly tokens: number;
}
