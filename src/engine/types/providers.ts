import type { Sector } from './memory.ts';

/** The purposes of provider calls; `CallPurpose` says what they ask for. */
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
 * Names the purpose of a provider call. `document` (any stored text) and `query` ask for vectors, the others for
 * answers of a language model.
 */
export type CallPurpose = (typeof CALL_PURPOSES)[number];

/** One call of a provider, with its size, time and cost, and without any text. */
export interface EmbedLogEntry {
  /** Time of the call, Unix ms. */
  readonly at: number;
  readonly provider: string;
  readonly model: string;
  /** Server that was called: 0 is the configured one, 1 and up are those of `OM_EMBED_FALLBACK` in order. */
  readonly server: number;
  /** What the call was for. */
  readonly purpose: CallPurpose;
  /** Number of texts in the call; 1 for a prompt. */
  readonly texts: number;
  /** Tokens read, as billed if the reply says so, else estimated. */
  readonly tokens: number;
  /** Tokens that a language model wrote; 0 for a call that asks for vectors. */
  readonly outputTokens: number;
  /** Duration of the call, in ms. */
  readonly ms: number;
  /** Cost in US dollars by the price table; 0 for a failed call. */
  readonly costUsd: number;
  /** Why the call failed; null for a call that completed. */
  readonly error: { readonly code: string; readonly message: string } | null;
}

/**
 * Sums over the provider calls of one day, model and purpose. Texts, tokens and cost count only calls that completed.
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
  /** Texts in calls that completed. */
  readonly texts: number;
  /** Tokens read in calls that completed. */
  readonly tokens: number;
  /** Tokens that a language model wrote in calls that completed; 0 for vectors. */
  readonly outputTokens: number;
  /** Cost in US dollars by the price table. */
  readonly costUsd: number;
  /** Texts of memories that took their vector from the cache, without a call. */
  readonly cachedTexts: number;
  /** Estimated tokens of the texts that `cachedTexts` counts. */
  readonly savedTokens: number;
}

/** An embedding model as the settings and files name it. */
export interface EmbeddingModel {
  readonly provider: string;
  readonly model: string;
  readonly dimensions: number;
  /**
   * The model of each sector, as `model@dimensions`; absent if one model embeds all. The other fields then describe the
   * model of the first of SECTORS.
   */
  readonly sectors?: Readonly<Record<Sector, string>>;
}

/** The embedding models of a tenant: the one in use, and the one that the settings name. */
export interface EmbeddingState {
  /** The model whose vectors queries and links use; null with `OM_EMBEDDINGS=none`. */
  readonly live: EmbeddingModel | null;
  /** The model that the settings name; null for none. It differs from `live` until all memories are embedded by it. */
  readonly configured: EmbeddingModel | null;
  /** Why the settings do not reach a model whose vectors are live, as a sentence; null if they reach all of them. */
  readonly degraded: string | null;
}

/** The phases of a change of the embedding model, in order; `ReembedPhase` says what each does. */
export const REEMBED_PHASES = ['embed', 'link', 'drop'] as const;

/**
 * Names a phase of a change of the embedding model: `embed` makes new vectors beside the old ones, `link` makes the
 * waypoints again by the new vectors, which are live by then, and `drop` deletes the old vectors.
 */
export type ReembedPhase = (typeof REEMBED_PHASES)[number];

/** How far a change of the embedding model is. */
export interface ReembedStatus {
  /**
   * State of the change. Without one, `current` needs nothing, and `needed` means that the settings name another model
   * than the live one, or that memories lack vectors of it. A `failed` change stopped by itself; `error` says why.
   */
  readonly state: 'current' | 'needed' | 'running' | 'paused' | 'failed';
  /** Phase of the change; null if none is under way. */
  readonly phase: ReembedPhase | null;
  /** Model whose vectors queries and links use; null with `OM_EMBEDDINGS=none`. */
  readonly live: EmbeddingModel | null;
  /** Model that the settings name; null with `OM_EMBEDDINGS=none`. */
  readonly configured: EmbeddingModel | null;
  /**
   * Memories that this phase has done; those that were given up do not count. Without a change, memories that have all
   * vectors of the configured model.
   */
  readonly done: number;
  /** Number of all memories. */
  readonly total: number;
  /**
   * Memories whose embedding was given up. Their jobs are dead, and they are found by words alone once the new model
   * is live.
   */
  readonly failed: number;
  /** Memories done per second in this phase; null if not known. */
  readonly ratePerSecond: number | null;
  /** Estimated time until this phase ends, in ms; null if not known, as in the phase `drop`. */
  readonly remainingMs: number | null;
  /**
   * Memories still to be embedded, and their tokens by a sample; null if nothing needs embedding, or if the change is
   * to another model than the settings name.
   */
  readonly estimate: { readonly memories: number; readonly tokens: number } | null;
  /** Why the change failed; null if it did not. */
  readonly error: string | null;
}

/** Which provider calls `Tenant.listProviderCalls` lists. */
export interface ProviderCallFilter {
  /** Lists only calls that failed, or only calls that completed; all calls if left out. */
  readonly state?: 'failed' | 'completed' | undefined;
}

/** How a tenant shows and changes its embedding model. */
export interface ModelChange {
  /** Says which embedding model answers queries, and which one the settings ask for. */
  embedding(): Promise<EmbeddingState>;
  /** Says how far a change of the embedding model is, or what a change would take. */
  reembedStatus(): Promise<ReembedStatus>;
  /**
   * Begins to embed all memories by the configured model, or continues a change that was paused or has failed. If
   * that model is live already, only memories without vectors are embedded. A change to a third model is given up for
   * it. A model that refuses more than one memory in a hundred (and more than a single one) fails and does not go
   * live.
   * @param options.withoutRefused lets the model go live although it refused that many; these memories are found by
   *   words alone
   * @param options.force lets the model go live although a guarded evaluation set falls, which ends a change otherwise
   * @throws EngineError `invalid` with `OM_EMBEDDINGS=none`; `conflict` while an earlier change whose model is live
   *   is not finished
   */
  startReembed(options?: { readonly withoutRefused?: boolean; readonly force?: boolean }): Promise<ReembedStatus>;
  /**
   * Pauses a change of the embedding model; `startReembed` continues it.
   * @throws EngineError `conflict` if none is under way
   */
  pauseReembed(): Promise<ReembedStatus>;
  /**
   * Gives up a change of the embedding model, even a paused one. Its vectors stay; refusals are forgotten.
   * @throws EngineError `conflict` if there is none, or if the new model is live already
   */
  cancelReembed(): Promise<ReembedStatus>;
}
