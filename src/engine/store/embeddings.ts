import { EngineError } from '../errors.ts';
import type { Embedder, VectorEncoding } from '../ports.ts';
import type { EmbedLogEntry } from '../types.ts';
import type { Store } from './open-store.ts';
import { addUsage } from './provider-usage.ts';
import { findInfo } from './store-info.ts';
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
        .prepare(
          'INSERT INTO models (model_no, provider, model, dimensions, encoding, created_at) VALUES (?, ?, ?, ?, ?, ?)',
        )
        .run(nextModelNumber(store), provider, model, dimensions, encoding, now).lastInsertRowid,
    )
  );
}

/** Set when a model is dropped: its number is never given again, since some other process may still have it in mind. */
export const LAST_MODEL = 'last_model';

function nextModelNumber(store: Store): number {
  const { last } = store.prepare('SELECT coalesce(max(model_no), 0) AS last FROM models').get() as { last: number };
  return 1 + Math.max(last, Number(findInfo(store, LAST_MODEL) ?? 0));
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

/** A text that is known already keeps its vector and is young again. Call inside a write. */
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
     ON CONFLICT (model_no, text_hash) DO UPDATE SET created_at = excluded.created_at`,
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

/** Forgets one text of a model, also where several memories share it. Call inside a write. */
export function eraseCachedEmbedding(store: Store, modelNo: number, textHash: Buffer): void {
  store.prepare('DELETE FROM embedding_cache WHERE model_no = ? AND text_hash = ?').run(modelNo, textHash);
}

/** Forgets vectors that no memory was made with since `before`, oldest first. Call inside a write. */
export function purgeCachedEmbeddings(store: Store, before: number, limit: number): number {
  return store
    .prepare(
      `DELETE FROM embedding_cache WHERE (model_no, text_hash) IN
         (SELECT model_no, text_hash FROM embedding_cache WHERE created_at < ? ORDER BY created_at LIMIT ?)`,
    )
    .run(before, limit).changes;
}

export type { EmbedLogEntry } from '../types.ts';

/** Logs a call and adds it to the sums of its day. Call inside a write. */
export function appendEmbedLog(store: Store, entry: EmbedLogEntry): void {
  const { error, ...call } = entry;
  const isFailed = error !== null;
  store
    .prepare(
      `INSERT INTO embed_logs
         (at, provider, model, server, purpose, texts, tokens, output_tokens, ms, cost_usd, status, error_code, error)
       VALUES (:at, :provider, :model, :server, :purpose, :texts, :tokens, :outputTokens, :ms, :costUsd, :status, :code, :message)`,
    )
    .run({
      ...call,
      status: isFailed ? 'failed' : 'completed',
      code: error?.code ?? null,
      message: error?.message ?? null,
    });
  const { provider, model, purpose, texts, tokens, outputTokens, costUsd } = call;
  addUsage(store, call.at, {
    ...{ provider, model, purpose, costUsd, calls: 1, failed: isFailed ? 1 : 0 },
    ...(isFailed ? { texts: 0, tokens: 0, outputTokens: 0 } : { texts, tokens, outputTokens }),
    ...{ cachedTexts: 0, savedTokens: 0 },
  });
}

export interface EmbedLogFilter {
  /** Those that failed, or those that completed. */
  readonly state?: 'failed' | 'completed' | undefined;
}

const ofState = ({ state }: EmbedLogFilter) => (state === undefined ? '' : `WHERE status = '${state}'`);

/** Newest first. */
export function listEmbedLogs(
  store: Store,
  filter: EmbedLogFilter,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): EmbedLogEntry[] {
  const rows = store
    .prepare(
      `SELECT at, provider, model, server, purpose, texts, tokens, output_tokens AS outputTokens, ms, cost_usd AS costUsd,
         error_code AS code, error AS message
       FROM embed_logs ${ofState(filter)} ORDER BY log_no DESC LIMIT ? OFFSET ?`,
    )
    .all(limit, offset) as (Omit<EmbedLogEntry, 'error'> & { code: string | null; message: string | null })[];
  return rows.map(({ code, message, ...entry }) => ({
    ...entry,
    error: code === null ? null : { code, message: message ?? '' },
  }));
}

export function countEmbedLogs(store: Store, filter: EmbedLogFilter): number {
  return (store.prepare(`SELECT count(*) AS n FROM embed_logs ${ofState(filter)}`).get() as { n: number }).n;
}

export function purgeEmbedLogs(store: Store, before: number, limit: number): number {
  return store
    .prepare('DELETE FROM embed_logs WHERE log_no IN (SELECT log_no FROM embed_logs WHERE at < ? ORDER BY at LIMIT ?)')
    .run(before, limit).changes;
}
