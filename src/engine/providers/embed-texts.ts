import { createHash } from 'node:crypto';
import type { Embedder } from '../ports.ts';
import { findCachedEmbeddings, type CachedEmbedding } from '../store/embeddings.ts';
import type { Store } from '../store/open-store.ts';
import { estimateTokens } from '../text/tokens.ts';
import type { EmbeddingGatherer } from './embedding-gatherer.ts';

export interface EmbedTextsContext {
  readonly store: Store;
  readonly modelNo: number;
  readonly embedder: Embedder;
  readonly gatherer: EmbeddingGatherer;
}

export interface EmbeddedTexts {
  /** One per text, in order. */
  readonly embeddings: Float32Array[];
  /** The texts' keys in the cache; null for an embedder that is not cached. */
  readonly textHashes: Buffer[] | null;
  /** What the cache did not know, each text once. */
  readonly misses: CachedEmbedding[];
  /** Texts that the cache knew, and the tokens that they would have taken, by estimate. */
  readonly hits: number;
  readonly savedTokens: number;
}

/**
 * Embeds the texts of one memory, from the cache where it knows them. Calls for many memories at once share provider calls and
 * fail apart. The store is read before anything is awaited. Throws as the gatherer does.
 */
export async function embedTexts(
  { store, modelNo, embedder, gatherer }: EmbedTextsContext,
  texts: readonly string[],
  signal?: AbortSignal,
): Promise<EmbeddedTexts> {
  if (!embedder.cacheable) {
    const embeddings = await embedder.embed(texts, { purpose: 'document', signal });
    return { embeddings, textHashes: null, misses: [], hits: 0, savedTokens: 0 };
  }
  const textHashes = texts.map(hashText);
  const cached = findCachedEmbeddings(store, modelNo, textHashes);
  const missing = [...cached.keys()].filter((i) => cached[i] === undefined);
  const fresh = await gatherer.embedAll(
    missing.map((i) => texts[i]!),
    'document',
    signal,
  );
  const misses = new Map<string, CachedEmbedding>();
  missing.forEach((i, j) => misses.set(texts[i]!, { textHash: textHashes[i]!, embedding: fresh[j]! }));
  const embeddings = texts.map((text, i) => cached[i] ?? misses.get(text)!.embedding);
  const known = texts.filter((_, i) => cached[i] !== undefined);
  const savedTokens = known.reduce((sum, text) => sum + estimateTokens(text), 0);
  return { embeddings, textHashes, misses: [...misses.values()], hits: known.length, savedTokens };
}

/** 16 bytes of SHA-256 of the text as the embedder sees it: unlike `contentHash`, white space counts. */
function hashText(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest().subarray(0, 16);
}
