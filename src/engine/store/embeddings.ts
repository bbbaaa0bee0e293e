import { EngineError } from '../errors.ts';
import type { Embedder, EmbedOptions, VectorEncoding } from '../ports.ts';
import type { Store } from './open-store.ts';
import { assertValidVector, decodeVector, encodeVector } from './vector-encoding.ts';
import type { VectorSpace } from './vectors.ts';

/** Which model made which vectors, the vectors that were paid for, and every provider call. */

type ModelName = Pick<Embedder, 'provider' | 'model' | 'dimensions' | 'encoding'>;

/** The number of an embedder's vector space, made on first use. Call inside a write. */
export function modelNumber(store: Store, embedder: ModelName, now: number): number {
  const { provider, model, dimensions, encoding } = embedder;
  return (
    findModelNumber(store, embedder) ??
    Number(
      store
        .prepare('INSERT INTO models (provider, model, dimensions, encoding, created_at) VALUES (?, ?, ?, ?, ?)')
        .run(provider, model, dimensions, encoding, now).lastInsertRowid,
    )
  );
}

/** undefined while this file holds no vector of the embedder. */
export function findModelNumber(
  store: Store,
  { provider, model, dimensions, encoding }: ModelName,
): number | undefined {
  const row = store
    .prepare('SELECT model_no FROM models WHERE provider = ? AND model = ? AND dimensions = ? AND encoding = ?')
    .get(provider, model, dimensions, encoding) as { model_no: number } | undefined;
  return row?.model_no;
}

/** Throws `not_found`. */
export function getVectorSpace(store: Store, modelNo: number): VectorSpace {
  const row = store.prepare('SELECT dimensions, encoding FROM models WHERE model_no = ?').get(modelNo) as
    { dimensions: number; encoding: VectorEncoding } | undefined;
  if (row === undefined) throw new EngineError('not_found', `no model ${modelNo}`);
  return { modelNo, ...row };
}

/** Every model that ever made vectors here. */
export function listModels(store: Store): (ModelName & { readonly modelNo: number })[] {
  return store
    .prepare('SELECT model_no AS modelNo, provider, model, dimensions, encoding FROM models ORDER BY model_no')
    .all() as (ModelName & { modelNo: number })[];
}

export interface CachedEmbedding {
  /** 16 bytes of SHA-256 of the text. */
  readonly textHash: Buffer;
  readonly embedding: Float32Array;
}

/** One entry per hash, in order; undefined where the cache knows nothing. */
export function findCachedEmbeddings(
  store: Store,
  modelNo: number,
  textHashes: readonly Buffer[],
): (Float32Array | undefined)[] {
  const { encoding, dimensions } = getVectorSpace(store, modelNo);
  const statement = store.prepare('SELECT embedding FROM embedding_cache WHERE model_no = ? AND text_hash = ?');
  return textHashes.map((textHash) => {
    const row = statement.get(modelNo, textHash) as { embedding: Buffer } | undefined;
    if (row === undefined) return undefined;
    const embedding = decodeVector(row.embedding, encoding, dimensions);
    assertValidVector(embedding, dimensions);
    return embedding;
  });
}

/** A text that is known already keeps its vector. Call inside a write. */
export function putCachedEmbeddings(
  store: Store,
  modelNo: number,
  rows: readonly CachedEmbedding[],
  now: number,
): void {
  if (rows.length === 0) return;
  const { encoding, dimensions } = getVectorSpace(store, modelNo);
  const statement = store.prepare(
    `INSERT INTO embedding_cache (model_no, text_hash, embedding, created_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (model_no, text_hash) DO NOTHING`,
  );
  for (const { textHash, embedding } of rows) {
    assertValidVector(embedding, dimensions);
    statement.run(modelNo, textHash, encodeVector(embedding, encoding), now);
  }
}

/**
 * Forgets the texts that a memory's vectors were made from, also those that another memory shares: for that one the cache is only a
 * saving. Call before its vectors are deleted, inside a write.
 * @returns how many were forgotten
 */
export function eraseCachedEmbeddingsOf(store: Store, memory: number): number {
  return store
    .prepare(
      `DELETE FROM embedding_cache WHERE (model_no, text_hash) IN
         (SELECT model_no, text_hash FROM vectors WHERE memory = ? AND text_hash IS NOT NULL)`,
    )
    .run(memory).changes;
}

export interface EmbedLogEntry {
  readonly at: number;
  readonly provider: string;
  readonly model: string;
  readonly purpose: EmbedOptions['purpose'];
  readonly texts: number;
  readonly tokens: number;
  readonly ms: number;
  /** null for a call that completed. */
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** Call inside a write. */
export function appendEmbedLog(store: Store, entry: EmbedLogEntry): void {
  store
    .prepare(
      `INSERT INTO embed_logs (at, provider, model, purpose, texts, tokens, ms, status, error_code, error)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      entry.at,
      entry.provider,
      entry.model,
      entry.purpose,
      entry.texts,
      entry.tokens,
      entry.ms,
      entry.error === null ? 'completed' : 'failed',
      entry.error?.code ?? null,
      entry.error?.message ?? null,
    );
}

/** Newest first. */
export function listEmbedLogs(store: Store, { limit }: { readonly limit: number }): EmbedLogEntry[] {
  const rows = store
    .prepare(
      `SELECT at, provider, model, purpose, texts, tokens, ms, error_code AS code, error AS message
       FROM embed_logs ORDER BY log_no DESC LIMIT ?`,
    )
    .all(limit) as (Omit<EmbedLogEntry, 'error'> & { code: string | null; message: string | null })[];
  return rows.map(({ code, message, ...entry }) => ({
    ...entry,
    error: code === null ? null : { code, message: message ?? '' },
  }));
}

export function purgeEmbedLogs(store: Store, before: number, limit: number): number {
  return store
    .prepare('DELETE FROM embed_logs WHERE log_no IN (SELECT log_no FROM embed_logs WHERE at < ? ORDER BY at LIMIT ?)')
    .run(before, limit).changes;
}
