/**
 * What an engine uses and can be given another implementation of: clock, log, providers, index, dispatcher, parser,
 * page fetcher.
 */

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
 * Kind of the vectors of a space. `int5` takes five bits a dimension and is scaled by the vector's largest component,
 * which does not change a cosine. `float32` stands for vectors as providers give them, which are stored as
 * `OM_VECTOR_PRECISION` says.
 */
export type VectorEncoding = 'int5' | 'float32';

/** Precisions in which vectors of providers are stored, from the finest to the coarsest. */
export const VECTOR_PRECISIONS = ['float32', 'float16', 'int8'] as const;

/** Precision of a stored vector of a provider. */
export type VectorPrecision = (typeof VECTOR_PRECISIONS)[number];

/** How texts are embedded. */
export interface EmbedOptions {
  /**
   * What the texts are. Some models embed queries and documents differently; the offline one weighs a query's words
   * by rarity.
   */
  readonly purpose: 'document' | 'query';
  readonly signal?: AbortSignal | undefined;
  /**
   * Called with every reply of the provider, errors included, before `embed` returns or throws: the reply tells limits
   * and billed tokens.
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
  /** Lowest cosine similarity, included, at which the link step makes a waypoint; measured for each embedder. */
  readonly waypointThreshold: number;
  /**
   * Whether unrelated texts may have cosines far above 0, as in most trained models. The threshold then counts from how
   * near they lie in a file, once that has been measured.
   */
  readonly isAnisotropic: boolean;
  /** Default weight of vectors in rank fusion, 0..1. It is below 0.5 if vectors are only hashed words. */
  readonly vectorWeight: number;
  /** Whether the caller caches vectors by content hash, since each costs money or a network call. */
  readonly cacheable: boolean;
  /** Most texts that one call of `embed` may hold. */
  readonly maxBatchTexts: number;
  /** Most estimated tokens of all texts of one call together; a single text may have more. */
  readonly maxBatchTokens: number;
  /** Loads the packages that the first call needs, which takes a while. If it is not called, the first call does. */
  prepare?(): Promise<void>;
  /**
   * Embeds texts in one call: one L2-normalised vector of `dimensions` components for each text, in order.
   * @throws EngineError `rate_limited` with `retryAfterMs`; `unavailable` when the provider is down, slow or replied
   *   with anything but one valid vector per text (the whole reply is refused); `invalid` when a text itself is
   *   refused
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

/** A chat model, for the optional features that use one: reranking, names and all kinds of conclusions. */
export interface LanguageModel {
  readonly provider: string;
  readonly model: string;
  /** Loads the packages that the first call needs. If it is not called, the first call does. */
  prepare?(): Promise<void>;
  /**
   * Answers one prompt at temperature 0 if the model takes one, bounded in time and size.
   * @param request `instructions` are Cairn's; `input` is data that the model must not obey; `purpose` is for the log
   *   of calls; `maxTokens` bounds the answer
   * @param onReply called with every reply of the provider, before `complete` returns or throws
   * @throws EngineError `rate_limited` with `retryAfterMs`; `unavailable` when the provider is down, slow, refuses
   *   the call or replies with something else than a completion; `invalid` if it declines to answer this prompt, or
   *   does not finish within `maxTokens`; `conflict` if the refusal showed how to ask, so that the same request is
   *   sent differently the next time
   */
  complete(
    request: {
      readonly purpose: Exclude<CallPurpose, EmbedOptions['purpose']>;
      readonly instructions: string;
      readonly input: string;
      readonly maxTokens: number;
    },
    signal?: AbortSignal,
    onReply?: EmbedOptions['onReply'],
  ): Promise<Completion>;
}

/**
 * What a vector in an index stands for: a `window` of its memory's text (searched to rank), the `mean` of all windows
 * (searched to link), or the `whole` of a memory that has one window (searched for both).
 */
export type VectorRole = 'whole' | 'window' | 'mean';

/** A vector as an index takes it in. */
export interface IndexedVector {
  /** Number of the vector in its file, over all models. */
  readonly vectorNo: number;
  /** Number of the memory that the vector was made from, and of the user who owns that memory. */
  readonly memory: number;
  readonly userNo: number;
  readonly role: VectorRole;
  readonly embedding: Float32Array;
}

/** A search for the nearest vectors. */
export interface IndexSearch {
  /** Vector to which the nearest are searched, normalised, with the dimensions of the index. */
  readonly embedding: Float32Array;
  /** Number of the user whose vectors are searched; undefined searches those of all users. */
  readonly userNo?: number | undefined;
  /** Which vectors are searched: those of windows and whole memories to `rank`, means and whole memories to `link`. */
  readonly purpose: 'rank' | 'link';
  /** Number of the last memory whose vectors are searched, included; undefined searches those of all memories. */
  readonly upTo?: number | undefined;
  /**
   * Most vectors to return, a whole number in 1..4096. The caller asks for more than it needs and rescores from the
   * canonical vectors.
   */
  readonly k: number;
}

/**
 * Finds approximate nearest neighbours among one model's vectors of one tenant. The index is derived data: it can be
 * made again from the canonical vectors at any time. Call `add`, `remove` and `clear` inside a write; `search`,
 * `searchAll` and `vectorsOf` throw inside one. A search answers for the snapshot that the connection reads, whoever
 * wrote it.
 */
export interface VectorIndex {
  /**
   * Takes vectors into the index. They are stored already and come in ascending order of number; a number is never
   * given twice.
   */
  add(vectors: readonly IndexedVector[]): void;
  /** Removes vectors that are no longer stored, by their numbers; passes over unknown numbers. */
  remove(vectorNos: readonly number[]): void;
  /**
   * Takes over what was written since the last search or load, a few milliseconds at a time. If it is not called, the
   * next search does so at once, which may take seconds the first time.
   */
  load(): Promise<void>;
  /** Returns at most `k` vector numbers, nearest first by the index's approximate measure. */
  search(search: IndexSearch): readonly number[];
  /** Runs several searches at once, which is faster than one by one. @returns the numbers for each search, in order */
  searchAll(searches: readonly IndexSearch[]): readonly (readonly number[])[];
  /**
   * Returns the numbers of a user's vectors of windows and whole memories, ascending; undefined if they may be more
   * than `most`. It saves the lookup of each memory's vectors in the file.
   */
  vectorsOf(userNo: number, most: number): readonly number[] | undefined;
  /** Forgets everything. The caller then adds all vectors again. */
  clear(): void;
  /** Frees the memory of the index. */
  close(): void;
}

/**
 * Tells workers that a tenant's ledger has work. This is only a hint, since the ledger decides: a lost hint costs a
 * delay until a sweep looks, never a job.
 */
export interface JobDispatcher {
  /** Tells workers that the ledger of the tenant's file at `path` may have work at `step`. */
  dispatch(path: string, step: JobStep): void;
  /** Says how jobs reach the workers. Absent if nothing stands between the ledger and the workers. */
  state?(): QueueState;
  close(): Promise<void>;
}

/**
 * What carries jobs to workers: nothing (`embedded`), since a worker reads the ledger itself, or `redis`, which is
 * reached just now or not.
 */
export type QueueState = { readonly mode: 'embedded' } | { readonly mode: 'redis'; readonly isUp: boolean };

/** A file to read, and how to cut its text. */
export interface ParseRequest {
  /** Contents of the whole file. */
  readonly bytes: Uint8Array;
  /** Format of the file; null leaves it to the first bytes and, if these say nothing, to the extension. */
  readonly declared: DocumentFormat | null;
  /** Character set that was declared for the file; null leaves it to the parser. */
  readonly charset: string | null;
  /** Extension of the file's name without the dot, in lower case; '' for none. */
  readonly extension: string;
  /** Most tokens in a chunk. */
  readonly sizeTokens: number;
  /** Most tokens that a chunk repeats from the end of the chunk before it. */
  readonly overlapTokens: number;
}

/**
 * A document that was read and cut into chunks, which hold its text and cover it without gaps. `language` is that of
 * the text if the file names none.
 */
export interface ParseResult extends Omit<ParsedDocument, 'text' | 'pages'> {
  readonly format: DocumentFormat;
  /** Number of pages; null if the format has none. */
  readonly pages: number | null;
  /** Length of the text, in UTF-16 units. */
  readonly characters: number;
  /** Tokens of the text, about: those of the chunks without what they repeat. */
  readonly tokens: number;
  /** Headings in order, at most 200, each with its level 1..6. Of more headings the outermost are kept. */
  readonly outline: readonly { readonly level: number; readonly text: string }[];
  /** The chunks; `sensitive` names the kinds of sensitive values that are marked in a chunk, and is absent for none. */
  readonly chunks: readonly (Chunk & { readonly content: string; readonly sensitive?: readonly SensitiveKind[] })[];
}

/**
 * Reads files outside of this process. A hostile file can only harm a child process, which has no network, sees no
 * file, and is killed if it takes too long or too much.
 */
export interface DocumentParser {
  /**
   * Reads a file and cuts its text into chunks; a file without text has none.
   * @param options.tenant name of the tenant whose file it is: a child process reads files of one tenant only
   * @param options.onPage called now and then with the number of pages that are done, and of all pages
   * @param options.onParsed called once for each document that a child was given, however its reading ended, with the
   *   time for which it kept the child busy (ms); time without a processor does not count
   * @throws DocumentError with the file's own fault; EngineError `unavailable` if no child could be started, or on
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

/** Finds personal values in prose that patterns do not know, such as names of people. */
export interface TextAnalyzer {
  /**
   * Finds the personal values of a text, in any order; they may overlap. While the analyzer is down and the settings
   * say to store nevertheless, it finds nothing.
   * @throws EngineError `unavailable` with `retryAfterMs` while it is down and the settings say to refuse
   */
  find(text: string): Promise<SensitiveSpan[]>;
}

/** A page or file that was fetched from a URL. */
export interface FetchedFile {
  /** Contents of the file, decompressed. */
  readonly bytes: Uint8Array;
  /** SHA-256 of `bytes`. */
  readonly sha256: Uint8Array;
  /** Format of the file, as for `ParseRequest`. */
  readonly declared: DocumentFormat | null;
  /** Character set that the server declared; null for none. */
  readonly charset: string | null;
  /** Extension of the URL's path, as for `ParseRequest`; '' for none, or if the server says what the file is. */
  readonly extension: string;
  /** The headers ETag and Last-Modified, by which a later fetch asks for changes; null for none or after a redirect. */
  readonly etag: string | null;
  readonly lastModified: string | null;
}

/** Fetches pages that callers name. It reaches only public addresses, whatever names, redirects and resolvers say. */
export interface PageFetcher {
  /**
   * Fetches a page, redirects included.
   * @param known version of the page that the caller has, by its last reply; null for none
   * @returns `unchanged` if the server says that the page has not changed
   * @throws DocumentError `fetch_refused` for what must not be fetched, `fetch_failed` for what could not be,
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
   * Text as Markdown with its headings, lists, tables and code. It is well-formed Unicode without NUL; lines end in
   * \n.
   */
  readonly text: string;
  /** Start of each page, slide or sheet in `text`, ascending; empty if the format has none. */
  readonly pages: readonly PageStart[];
  /** Title that the file names; '' for none. */
  readonly title: string;
  /** Authors that the file names, in order; empty for none. */
  readonly authors: readonly string[];
  /** Language that the file names, by BCP 47 such as en or pt-BR; null for none. */
  readonly language: string | null;
  /** Time of publication that the file names, Unix ms; null for none. */
  readonly publishedAt: number | null;
  /** Time of the last change that the file names, Unix ms; null for none. */
  readonly modifiedAt: number | null;
  /** Parts that were left out, or kept although a reader does not see them, and why. */
  readonly warnings: readonly DocumentWarning[];
  /** What the parser left out of the text, by reason; absent for nothing. */
  readonly omissions?: readonly Omission[];
}

/** The start of a page in the text. */
export interface PageStart {
  /** Number of the page, from 1. */
  readonly page: number;
  /** Offset in the text, in UTF-16 units. */
  readonly start: number;
}

/** A piece of a document's text: `text.slice(startOffset, endOffset)`. Offsets are UTF-16 units, the end excluded. */
export interface Chunk {
  readonly startOffset: number;
  readonly endOffset: number;
  /** Headings above the first character that no earlier chunk holds, outermost first. */
  readonly headingPath: readonly string[];
  /** Number of the page on which the chunk begins, from 1; null if the format has no pages. */
  readonly pageFrom: number | null;
  /** Number of the page on which the chunk ends; null if the format has no pages. */
  readonly pageTo: number | null;
  /** Tokens of the piece as OpenAI's embedding models count them (cl100k_base). */
  readonly tokens: number;
}
