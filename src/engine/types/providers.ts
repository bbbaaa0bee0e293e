import type { Sector } from './memory.ts';

/** The purposes of provider calls; `CallPurpose` says what they are. */
export const CALL_PURPOSES = [
  'document',
  'query',
  'entities',
  'rerank',
  'contradictions',
  'reflection',
  'consolidation',
] as const;
/**
 * Names the purpose of a provider call. `document` (any stored text) and `query` ask an embedder for vectors; all
 * others ask a language model for an answer.
 */
export type CallPurpose = (typeof CALL_PURPOSES)[number];

/**
 * Log entry of one call of an embedding provider or language model, with its size, duration and cost and without any
 * text.
 */
export interface EmbedLogEntry {
  /** Time of the call, Unix ms. */
  readonly at: number;
  readonly provider: string;
  readonly model: string;
  /**
   * Index of the server that was called: 0 for the configured one, from 1 for those of `OM_EMBED_FALLBACK`, in their
   * order.
   */
  readonly server: number;
  /** Purpose of the call. */
  readonly purpose: CallPurpose;
  /** Number of texts in the call; 1 for a prompt. */
  readonly texts: number;
  /** Number of tokens that the provider read: as its reply reports them, or else estimated. */
  readonly tokens: number;
  /** Number of tokens that a language model wrote; 0 for a call that asks for vectors. */
  readonly outputTokens: number;
  /** Duration of the call, in ms. */
  readonly ms: number;
  /** Cost in US dollars by the price table; 0 if the call failed. */
  readonly costUsd: number;
  /** Why the call failed; null for a call that completed. */
  readonly error: { readonly code: string; readonly message: string } | null;
}

/**
 * Sums over the provider calls of one day, model and purpose. `texts`, `tokens`, `outputTokens` and `costUsd` count
 * only calls that completed.
 */
export interface ProviderUsage {
  /** Day in UTC, such as `2026-11-21`. */
  readonly day: string;
  readonly provider: string;
  readonly model: string;
  readonly purpose: CallPurpose;
  /** Number of calls, failed ones included. */
  readonly calls: number;
  /** Number of calls that failed. */
  readonly failed: number;
  /** Number of texts in the calls that completed. */
  readonly texts: number;
  /** Number of tokens that the provider read in the calls that completed. */
  readonly tokens: number;
  /** Number of tokens that a language model wrote in the calls that completed; 0 for vectors. */
  readonly outputTokens: number;
  /** Cost in US dollars by the price table. */
  readonly costUsd: number;
  /** Number of stored texts whose vectors were taken from the cache instead of a call. */
  readonly cachedTexts: number;
  /** Estimated number of tokens of the texts in `cachedTexts`. */
  readonly savedTokens: number;
}

/** An embedding model, as the settings and files identify it. */
export interface EmbeddingModel {
  readonly provider: string;
  readonly model: string;
  readonly dimensions: number;
  /**
   * Model of each sector, as `model@dimensions`; absent if one model embeds all sectors. If present, the other fields
   * are those of the model of the first sector.
   */
  readonly sectors?: Readonly<Record<Sector, string>>;
}

/** The embedding models of a tenant: the one in use and the configured one. */
export interface EmbeddingState {
  /** Model whose vectors queries and links use; null with `OM_EMBEDDINGS=none`. */
  readonly live: EmbeddingModel | null;
  /**
   * Model that the settings name; null if they name none. It differs from `live` until all memories have been embedded
   * by it.
   */
  readonly configured: EmbeddingModel | null;
  /** Why vectors of the model in use cannot be made with the present settings, as a sentence; null if they can. */
  readonly degraded: string | null;
}

/** The phases of a change of the embedding model, in their order; `ReembedPhase` says what each does. */
export const REEMBED_PHASES = ['embed', 'link', 'drop'] as const;

/**
 * Names a phase of a change of the embedding model. `embed`: the new model embeds all memories, beside the old vectors.
 * `link`: queries use the new vectors, and the automatic links between similar memories are made again by them. `drop`:
 * the old vectors are deleted.
 */
export type ReembedPhase = (typeof REEMBED_PHASES)[number];

/** Progress of a change of the embedding model, or whether one is needed. */
export interface ReembedStatus {
  /**
   * State of the change. If none is under way: `current` if nothing is to be done; `needed` if the settings name
   * another model than the live one, or if memories lack its vectors. Else `running`, `paused` by a caller, or
   * `failed`: it stopped by itself, and `error` says why.
   */
  readonly state: 'current' | 'needed' | 'running' | 'paused' | 'failed';
  /** Phase of the change; null if none is under way. */
  readonly phase: ReembedPhase | null;
  /** Model whose vectors queries and links use; null with `OM_EMBEDDINGS=none`. */
  readonly live: EmbeddingModel | null;
  /** Model that the settings name; null with `OM_EMBEDDINGS=none`. */
  readonly configured: EmbeddingModel | null;
  /**
   * Number of memories that the present phase of the change has processed, in the phase `embed` without those whose
   * jobs gave up; all memories in the phase `drop`. If no change is under way, number of memories that have all vectors
   * of the configured model.
   */
  readonly done: number;
  /** Number of all memories. */
  readonly total: number;
  /**
   * Number of memories whose embedding jobs gave up, mostly because the model refused them. Once the new model is live,
   * queries find them by words alone.
   */
  readonly failed: number;
  /**
   * Number of memories that the present phase of the change processes per second; null unless the change is running and
   * has progressed.
   */
  readonly ratePerSecond: number | null;
  /**
   * Estimated time until the present phase of the change ends, in ms; null where `ratePerSecond` is null, and in the
   * phase `drop`.
   */
  readonly remainingMs: number | null;
  /**
   * Number of memories still to be embedded, which may be 0, and an estimate of their tokens from a sample. Null in the
   * state `current`, in the phases `link` and `drop`, and if the change under way is to another model than the settings
   * name.
   */
  readonly estimate: { readonly memories: number; readonly tokens: number } | null;
  /** Why the change failed; null in any other state. */
  readonly error: string | null;
}

/** Selects provider calls for `Tenant.listProviderCalls`. */
export interface ProviderCallFilter {
  /** Lists only calls with this outcome; all calls if left out. */
  readonly state?: 'failed' | 'completed' | undefined;
}

/** The methods of a tenant that report and change its embedding model. */
export interface ModelChange {
  /** Returns the live and the configured embedding model. */
  embedding(): Promise<EmbeddingState>;
  /** Returns the progress of a change of the embedding model, or how much work a change would be. */
  reembedStatus(): Promise<ReembedStatus>;
  /**
   * Begins to embed all memories by the configured model, or continues a change that was paused or has failed. If that
   * model is live already, only memories without its vectors are embedded. If a change to another model is under way,
   * it is cancelled. If the model refuses more than one memory in a hundred, and more than one in all, the change fails
   * and the model does not go live.
   * @param options.withoutRefused lets the model go live although it refused that many memories, which queries then
   *   find by words alone
   * @param options.force lets the model go live although the measures of a guarded evaluation set fall; otherwise the
   *   change fails
   * @throws EngineError `invalid` with `OM_EMBEDDINGS=none`; `conflict` while an earlier change, whose model is live
   *   already, has not ended
   */
  startReembed(options?: { readonly withoutRefused?: boolean; readonly force?: boolean }): Promise<ReembedStatus>;
  /**
   * Pauses the change of the embedding model that is under way; `startReembed` continues it.
   * @throws EngineError `conflict` if none is under way
   */
  pauseReembed(): Promise<ReembedStatus>;
  /**
   * Gives up a change of the embedding model, even a paused one. The vectors of the new model stay; the list of
   * memories that it refused is deleted.
   * @throws EngineError `conflict` if there is no change, or if the new model is live already
   */
  cancelReembed(): Promise<ReembedStatus>;
}
