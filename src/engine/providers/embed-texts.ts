import { createHash } from 'node:crypto';
import type { Embedder } from '../ports.ts';
import { findEmbeddings } from '../store/embeddings.ts';
import type { Store } from '../store/open-store.ts';
import { estimateTokens } from '../text/tokens.ts';
import type { EmbeddingGatherer } from './embedding-gatherer.ts';

/**
 * What `embedTexts` uses: the tenant's file as the cache of vectors, and the embedder with the gatherer of its calls.
 */
export interface EmbedTextsContext {
  /** Connection to the tenant's file, in which vectors of equal texts are looked up. */
  readonly store: Store;
  /** `modelNo` of the embedder's model in the tenant's file. */
  readonly modelNo: number;
  readonly embedder: Embedder;
  readonly gatherer: EmbeddingGatherer;
}

/** The vectors of the texts of one memory, and how many of them came from the file. */
export interface EmbeddedTexts {
  /** One vector per text, in order. Other callers may have the same ones: treat them as read-only. */
  readonly embeddings: Float32Array[];
  /**
   * Hashes of the texts, in order, by which their vectors can be found again in the file; null if `Embedder.cacheable`
   * is false.
   */
  readonly textHashes: Buffer[] | null;
  /**
   * Number of different texts that were embedded because the file had no vectors of them; 0 if `Embedder.cacheable` is
   * false, since then no vectors are looked up.
   */
  readonly misses: number;
  /** Number of texts whose vectors were found in the file; a text that is given twice counts twice. */
  readonly hits: number;
  /**
   * Estimated number of tokens of the texts whose vectors were found in the file, so that no provider was paid for
   * them.
   */
  readonly savedTokens: number;
}

/**
 * Embeds the texts of one memory. If the embedder is cacheable, a text whose vector by this model is already in the
 * file is not embedded again. Concurrent calls for several memories share provider calls, and each fails separately.
 * The file is read before anything is awaited.
 * @throws EngineError `invalid` if the provider refuses one of the texts; `rate_limited` or `unavailable` if it cannot
 *   be called now, or when `signal` aborts; the abort reason of `signal` from the offline embedder
 */
export async function embedTexts(
  { store, modelNo, embedder, gatherer }: EmbedTextsContext,
  texts: readonly string[],
  signal?: AbortSignal,
): Promise<EmbeddedTexts> {
  if (!embedder.cacheable) {
    const embeddings = await embedder.embed(texts, { purpose: 'document', signal });
    return { embeddings, textHashes: null, misses: 0, hits: 0, savedTokens: 0 };
  }
  const textHashes = texts.map(hashText);
  const cached = findEmbeddings(store, modelNo, textHashes);
  const missing = [...cached.keys()].filter((i) => cached[i] === undefined);
  const fresh = await gatherer.embedAll(
    missing.map((i) => texts[i]!),
    'document',
    signal,
  );
  const made = new Map(missing.map((i, j) => [texts[i]!, fresh[j]!]));
  const embeddings = texts.map((text, i) => cached[i] ?? made.get(text)!);
  const cachedTexts = texts.filter((_, i) => cached[i] !== undefined);
  const savedTokens = cachedTexts.reduce((sum, text) => sum + estimateTokens(text), 0);
  return { embeddings, textHashes, misses: made.size, hits: cachedTexts.length, savedTokens };
}

/** Returns the first 16 bytes of the SHA-256 of the exact text: unlike in `contentHash`, white space counts. */
function hashText(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest().subarray(0, 16);
}
