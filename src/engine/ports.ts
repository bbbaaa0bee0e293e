import type { CallPurpose, DocumentFormat, JobStep, DocumentWarning } from './types.ts';

/** The time in Unix milliseconds. Tests move it by hand. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** An event name plus fields. Never content, a query, a key or a file name. pino satisfies it as it is. */
export interface Logger {
  debug(fields: object, event: string): void;
  info(fields: object, event: string): void;
  warn(fields: object, event: string): void;
  error(fields: object, event: string): void;
}

export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** Stored form of a vector: int5 is five bits a dimension, scaled by the vector's largest component, which cosine does not notice. */
export type VectorEncoding = 'int5' | 'float32';

export interface EmbedOptions {
  /** Some models embed questions and documents differently; the offline one weighs a query's words by rarity. */
  readonly purpose: 'document' | 'query';
  readonly signal?: AbortSignal | undefined;
  /** Told of every reply that came, before `embed` returns or throws: what a provider says of its limits and of what it counted. */
  readonly onReply?: ((reply: ProviderReply) => void) | undefined;
}

/** What a provider's reply says beside its answer. */
export interface ProviderReply {
  readonly headers: Headers;
  /** Tokens that it was asked for, as it counted them; undefined where it does not say. */
  readonly tokens?: number | undefined;
}

/**
 * Turns texts into vectors. One embedder makes one vector space: (provider, model, dimensions, encoding) names it, and vectors of
 * different spaces are never compared.
 */
export interface Embedder {
  readonly provider: string;
  readonly model: string;
  readonly dimensions: number;
  readonly encoding: VectorEncoding;
  /** The least cosine at which the link step draws a waypoint. Measured per embedder. */
  readonly waypointThreshold: number;
  /** Default weight of vectors in rank fusion, 0..1. Words lead (< 0.5) where vectors are no more than hashed words. */
  readonly vectorWeight: number;
  /** True for vectors worth keeping by content hash because they cost money or a network call. */
  readonly cacheable: boolean;
  /** A call holds at most this many texts and, by estimate, this many tokens. */
  readonly maxBatchTexts: number;
  readonly maxBatchTokens: number;
  /** Loads the packages that the first call needs, which takes a while; a call that was not prepared for does the same. */
  prepare?(): Promise<void>;
  /**
   * One vector of `dimensions` float32 per text, in order, L2-normalised.
   * @throws EngineError `rate_limited` with `retryAfterMs`; `unavailable` when the provider is down, slow or replied with
   *         anything but one valid vector per text (the whole reply is refused); `invalid` when a text itself is refused.
   */
  embed(texts: readonly string[], options: EmbedOptions): Promise<Float32Array[]>;
}

export interface Completion {
  readonly text: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** A chat model, for the optional parts that may use one: reranking, names, contradictions, reflection. */
export interface LanguageModel {
  readonly provider: string;
  readonly model: string;
  /** As an embedder's. */
  prepare?(): Promise<void>;
  /**
   * One answer to one prompt, at temperature 0. Bounded in time and size.
   * @param request `instructions` are ours; `input` is data, never to be obeyed; `purpose` is for the log of calls
   * @param onReply told of every reply that came, as of an embedder's
   * @throws EngineError `rate_limited` with `retryAfterMs`; `unavailable` when the provider is down, slow, refuses the call or replies
   *         with something else than a completion; `invalid` where it declines to answer this prompt, or not within `maxTokens`;
   *         `conflict` where the refusal taught how to ask, so that the same request goes otherwise the next time
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

/** What a vector in an index stands for: the mean of its memory (links), a window of it (ranking), or both. */
export type VectorRole = 'whole' | 'window' | 'mean';

export interface IndexedVector {
  readonly vectorNo: number;
  readonly memory: number;
  readonly userNo: number;
  readonly role: VectorRole;
  readonly embedding: Float32Array;
}

export interface IndexSearch {
  readonly embedding: Float32Array;
  /** undefined searches every user. */
  readonly userNo?: number | undefined;
  readonly purpose: 'rank' | 'link';
  /** Only vectors of memories up to this number. */
  readonly upTo?: number | undefined;
  /** 1..4096; the caller asks for more than it needs and rescores from the canonical vectors. */
  readonly k: number;
}

/**
 * Approximate nearest neighbours over one model's vectors of one tenant. Derived data: it can be made again from the canonical
 * vectors at any time. `add`, `remove` and `clear` run inside the caller's transaction, a search outside of writes. It answers for the
 * snapshot that the connection reads, whoever wrote it.
 */
export interface VectorIndex {
  /** @param vectors that are stored already, in ascending order of number; a number is never given twice */
  add(vectors: readonly IndexedVector[]): void;
  /** @param vectorNos of vectors that are stored no longer */
  remove(vectorNos: readonly number[]): void;
  /**
   * Takes over what was written since it was last asked, a few milliseconds at a time. Not needed: a search does the same at once, which
   * may take seconds the first time.
   */
  load(): Promise<void>;
  /** Vector numbers, nearest first by the index's own approximate measure. */
  search(search: IndexSearch): readonly number[];
  /** The same for several at once, which is faster than one by one. */
  searchAll(searches: readonly IndexSearch[]): readonly (readonly number[])[];
  /**
   * Numbers of the vectors of a user that it knows and that are ranked, ascending; undefined where they may be more than `most`. The file would have
   * to look each memory's up.
   */
  vectorsOf(userNo: number, most: number): readonly number[] | undefined;
  /** Forgets what it derived from the vectors, to be told of all of them again. */
  clear(): void;
  /** Gives its memory back. */
  close(): void;
}

/**
 * Tells workers that a tenant's ledger has work. Only a hint: the ledger is the truth, and a hint that is lost costs a delay until
 * the reconciler looks, never a job.
 */
export interface JobDispatcher {
  /** @param path the tenant's file */
  dispatch(path: string, step: JobStep): void;
  /** Left out where nothing is between the ledger and the workers. */
  state?(): QueueState;
  close(): Promise<void>;
}

/** What carries jobs to workers, and whether it is there just now. */
export type QueueState = { readonly mode: 'embedded' } | { readonly mode: 'redis'; readonly isUp: boolean };

export interface ParseRequest {
  /** The whole file. */
  readonly bytes: Uint8Array;
  /** null leaves it to the first bytes and, where these say nothing, to the extension. */
  readonly declared: DocumentFormat | null;
  readonly charset: string | null;
  /** The last part of the file's name, without the dot, in lower case; '' for none. */
  readonly extension: string;
  readonly sizeTokens: number;
  readonly overlapTokens: number;
}

/** A document read and cut: its text is in the chunks, whose offsets cover it without gaps. */
export interface ParseResult extends Omit<ParsedDocument, 'text' | 'pages'> {
  readonly format: DocumentFormat;
  /** null where the format has none. */
  readonly pages: number | null;
  readonly characters: number;
  readonly tokens: number;
  /** Its headings in order, at most 200, each with its level 1..6. */
  readonly outline: readonly { readonly level: number; readonly text: string }[];
  readonly chunks: readonly (Chunk & { readonly content: string })[];
}

/**
 * Reads files away from this process: what a hostile file does to its reader happens to a child that has no network, sees no file
 * and is killed when it takes too long or too much.
 */
export interface DocumentParser {
  /**
   * @param onPage told now and then how far a long file is
   * @returns no chunks where the file holds no text
   * @throws DocumentError with the file's own fault; EngineError `unavailable` when no child could be started, or on abort
   */
  parse(
    request: ParseRequest,
    options?: { readonly signal?: AbortSignal | undefined; readonly onPage?: (done: number, pages: number) => void },
  ): Promise<ParseResult>;
  close(): Promise<void>;
}

export interface FetchedFile {
  readonly bytes: Uint8Array;
  readonly sha256: Uint8Array;
  readonly declared: DocumentFormat | null;
  readonly charset: string | null;
  readonly extension: string;
  readonly etag: string | null;
  readonly lastModified: string | null;
}

/** Fetches a page that a caller named: nothing but public addresses, whatever names, redirects and resolvers say. */
export interface PageFetcher {
  /**
   * @param known what the last reply said about its version
   * @returns `unchanged` where the server says that nothing changed
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

/** What a format's parser makes of a file, before it is cut into chunks. */
export interface ParsedDocument {
  /** Markdown, its structure kept: headings, lists, tables, code. Well-formed Unicode without NUL; lines end in \n. */
  readonly text: string;
  /** Where each page, slide or sheet begins in `text` (UTF-16 units), ascending; empty where the format has none. */
  readonly pages: readonly PageStart[];
  /** '' where the file names none. */
  readonly title: string;
  readonly authors: readonly string[];
  /** BCP 47, such as en or pt-BR, as the file says; null where it does not. */
  readonly language: string | null;
  /** Unix ms */
  readonly publishedAt: number | null;
  readonly modifiedAt: number | null;
  /** What was left out, and why. */
  readonly warnings: readonly DocumentWarning[];
}

export interface PageStart {
  /** From 1. */
  readonly page: number;
  readonly start: number;
}

/** A piece of a document's text: `text.slice(startOffset, endOffset)`. Offsets are UTF-16 units. */
export interface Chunk {
  readonly startOffset: number;
  readonly endOffset: number;
  /** The headings above its first own character, outermost first. */
  readonly headingPath: readonly string[];
  /** null where the format has no pages. */
  readonly pageFrom: number | null;
  readonly pageTo: number | null;
  readonly tokens: number;
}
