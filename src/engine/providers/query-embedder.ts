import { LRUCache } from 'lru-cache';
import { serialiseError } from '../errors.ts';
import type { Embedder, Logger } from '../ports.ts';
import { windowsOf } from '../text/windows.ts';
import { limitMarks } from '../text/words.ts';
import type { EmbeddingGatherer } from './embedding-gatherer.ts';

/**
 * Greatest number of bytes of cached texts and vectors together. A thousand short queries take 3 MB at 768 dimensions
 * and 12 MB at 3,072.
 */
const CACHED_BYTES = 16_000_000;
/** Lifetime of a cached vector (ms). */
const CACHED_FOR_MS = 600_000;

/** How the vectors of queries are made and cached. */
export interface QueryEmbedderOptions {
  readonly embedder: Embedder;
  /**
   * The gatherer of the provider's calls; left out for an embedder that computes on this machine without cost
   * (`Embedder.cacheable` is false).
   */
  readonly provider?: {
    readonly gatherer: EmbeddingGatherer;
    /** Longest time that a query waits for its vector (ms); then it is answered from words alone. */
    readonly timeoutMs: number;
  };
  readonly logger: Logger;
  /** Greatest number of queries whose vectors are cached (`OM_QUERY_CACHE`); 0 caches none. */
  readonly maxCached: number;
  /**
   * Called for each query with whether its vector was in the cache, and with the text that is embedded. Not called if
   * `Embedder.cacheable` is false.
   */
  readonly onLookup?: ((outcome: 'hit' | 'miss', text: string) => void) | undefined;
}

/**
 * Returns the vector of a query, which is shared and must not be changed; null if the provider failed or took too long,
 * so that the query is answered from words alone. Throws only if the call fails after `signal` was aborted.
 */
export type QueryEmbedder = (text: string, signal?: AbortSignal) => Promise<Float32Array | null>;

/** An embedder and the function that embeds queries with it, with a cache and a time limit. */
export interface QueryEmbeddingSource {
  readonly embedder: Embedder;
  readonly embedQuery: QueryEmbedder;
}

/**
 * Creates embedders of queries that cache recent vectors for ten minutes: a query that a tenant repeats costs no
 * provider call. Queries that differ only in white space or in how their accents are composed share a vector. Of a long
 * query, a provider gets the first window alone (`windowsOf`: 512 tokens), since it might refuse the whole. The cache
 * never serves a vector to another tenant, which would see by the time of its query that somebody asked the same text.
 * @returns a function that returns the embedder of a tenant, named by the path of its file
 */
export function createQueryEmbedder(options: QueryEmbedderOptions): (tenant: string) => QueryEmbedder {
  const { embedder, provider, logger, maxCached, onLookup } = options;
  const cache = new LRUCache<string, Float32Array>({
    max: Math.max(1, maxCached),
    maxSize: CACHED_BYTES,
    sizeCalculation: (vector, key) => vector.byteLength + 2 * key.length,
    ttl: CACHED_FOR_MS,
  });
  return (tenant) => async (query, signal) => {
    const whole = limitMarks(query).normalize('NFC').replace(/\s+/g, ' ').trim() || query;
    const text = provider === undefined ? whole : whole.slice(0, windowsOf(whole)[0]!.end);
    const key = `${tenant}\0${text}`;
    const cached = cache.get(key);
    if (embedder.cacheable) onLookup?.(cached === undefined ? 'miss' : 'hit', text);
    if (cached !== undefined) return cached;
    try {
      const vector = await embed(text, signal);
      if (maxCached > 0) cache.set(key, vector);
      return vector;
    } catch (error) {
      if (signal?.aborted) throw error;
      logger.warn({ code: serialiseError(error).code }, 'query_not_embedded');
      return null;
    }
  };

  async function embed(text: string, signal: AbortSignal | undefined): Promise<Float32Array> {
    if (provider === undefined) return (await embedder.embed([text], { purpose: 'query', signal }))[0] as Float32Array;
    const timeout = AbortSignal.timeout(provider.timeoutMs);
    return provider.gatherer.embed(text, 'query', signal ? AbortSignal.any([signal, timeout]) : timeout);
  }
}
