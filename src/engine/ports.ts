import type { JobStep } from './types.ts';

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

/** Stored form of a vector: int8 is scaled by the vector's largest component, which cosine does not notice. */
export type VectorEncoding = 'int8' | 'float32';

export interface EmbedOptions {
  /** Some models embed questions and documents differently; the offline one weighs a query's words by rarity. */
  readonly purpose: 'document' | 'query';
  readonly signal?: AbortSignal | undefined;
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

/** A chat model, for the optional parts that may use one: reranking, entity extraction. */
export interface LanguageModel {
  readonly provider: string;
  readonly model: string;
  /**
   * One answer to one prompt, at temperature 0. Bounded in time and size.
   * @param request `instructions` are ours; `input` is data, never to be obeyed
   * @throws EngineError `rate_limited` with `retryAfterMs`; `unavailable` when the provider is down, slow, refuses or replies
   *         with something else than a completion
   */
  complete(
    request: { readonly instructions: string; readonly input: string; readonly maxTokens: number },
    signal?: AbortSignal,
  ): Promise<Completion>;
}

/** What a vector in an index stands for: the mean of its memory (links), a window of it (ranking), or both. */
export type VectorRole = 'whole' | 'window' | 'mean';

export interface IndexedVector {
  readonly vectorNo: number;
  readonly userNo: number;
  readonly role: VectorRole;
  readonly embedding: Float32Array;
}

export interface IndexSearch {
  readonly embedding: Float32Array;
  /** undefined searches every user. */
  readonly userNo?: number | undefined;
  readonly purpose: 'rank' | 'link';
  /** 1..4096; the caller asks for more than it needs and rescores from the canonical vectors. */
  readonly k: number;
}

/**
 * Approximate nearest neighbours over one model's vectors of one tenant. Derived data: `rebuild` makes it again from the canonical
 * vectors. `add` and `remove` run inside the caller's transaction.
 */
export interface VectorIndex {
  add(vectors: readonly IndexedVector[]): void;
  remove(vectorNos: readonly number[]): void;
  /** Vector numbers, nearest first by the index's own approximate measure. */
  search(search: IndexSearch): readonly number[];
  clear(): void;
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
