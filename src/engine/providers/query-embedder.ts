import { LRUCache } from 'lru-cache';
import { serialiseError } from '../errors.ts';
import type { Embedder, Logger } from '../ports.ts';
import { limitMarks } from '../text/words.ts';
import type { EmbeddingGatherer } from './embedding-gatherer.ts';

const CACHED_QUERIES = 1_000;
/** Texts and vectors together; a thousand short questions take 3 MB at 768 dimensions, 12 MB at 3,072. */
const CACHED_BYTES = 16_000_000;
const CACHED_FOR_MS = 600_000;

export interface QueryEmbedderOptions {
  readonly embedder: Embedder;
  /** Not used for an embedder that computes at once. */
  readonly gatherer: EmbeddingGatherer;
  /** How long a query waits before it is answered from words alone. */
  readonly timeoutMs: number;
  readonly logger: Logger;
  /** Told whether a query's vector was known. */
  readonly onLookup?: ((outcome: 'hit' | 'miss', text: string) => void) | undefined;
}

/** The vector of a query; null when the provider failed or took too long, which makes the answer a degraded one. */
export type QueryEmbedder = (text: string, signal?: AbortSignal) => Promise<Float32Array | null>;

/**
 * Keeps the vectors of recent queries: a question that is asked again costs no provider call. Questions that differ only in white
 * space or in how their accents are composed are one.
 */
export function createQueryEmbedder(options: QueryEmbedderOptions): QueryEmbedder {
  const { embedder, gatherer, timeoutMs, logger, onLookup } = options;
  const cache = new LRUCache<string, Float32Array>({
    max: CACHED_QUERIES,
    maxSize: CACHED_BYTES,
    sizeCalculation: (vector, text) => vector.byteLength + 2 * text.length,
    ttl: CACHED_FOR_MS,
  });
  return async (query, signal) => {
    const text = limitMarks(query).normalize('NFC').replace(/\s+/g, ' ').trim() || query;
    const known = cache.get(text);
    if (embedder.cacheable) onLookup?.(known === undefined ? 'miss' : 'hit', text);
    if (known !== undefined) return known;
    try {
      const vector = await embed(text, signal);
      cache.set(text, vector);
      return vector;
    } catch (error) {
      if (signal?.aborted) throw error;
      logger.warn({ code: serialiseError(error).code }, 'query_not_embedded');
      return null;
    }
  };

  async function embed(text: string, signal: AbortSignal | undefined): Promise<Float32Array> {
    if (!embedder.cacheable) return (await embedder.embed([text], { purpose: 'query', signal }))[0] as Float32Array;
    const timeout = AbortSignal.timeout(timeoutMs);
    return gatherer.embed(text, 'query', signal ? AbortSignal.any([signal, timeout]) : timeout);
  }
}
