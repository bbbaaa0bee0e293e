/** Models and their numbers, the cache of embeddings, and the log of provider calls. */
import { EngineError } from '../errors.ts';
import type { Embedder, VectorEncoding } from '../ports.ts';
import type { EmbedLogEntry } from '../types.ts';
import type { Store } from './open-store.ts';
import { addUsage } from './provider-usage.ts';
import { findInfo } from './store-info.ts';
import { assertValidVector, decodeVector, encodeVector } from './vector-encoding.ts';
import type { VectorSpace } from './vectors.ts';

type ModelName = Pick<Embedder, 'provider' | 'model' | 'dimensions' | 'encoding'>;

/** Returns the number of an embedder's vector space, which is made on first use. Call inside a write. */
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

/**
 * Name of the note that holds the highest number of a dropped model. That number is never given again, since another
 * process may still remember it.
 */
export const LAST_MODEL = 'last_model';

function nextModelNumber(store: Store): number {
  const { last } = store.prepare('SELECT coalesce(max(model_no), 0) AS last FROM models').get() as { last: number };
  return 1 + Math.max(last, Number(findInfo(store, LAST_MODEL) ?? 0));
}

/** Finds the number of an embedder's vector space; undefined if `modelNumber` has not made it, or it was dropped. */
export function findModelNumber(
  store: Store,
  { provider, model, dimensions, encoding }: ModelName,
): number | undefined {
  const row = store
    .prepare('SELECT model_no FROM models WHERE provider = ? AND model = ? AND dimensions = ? AND encoding = ?')
    .get(provider, model, dimensions, encoding) as { model_no: number } | undefined;
  return row?.model_no;
}

/** Reads the vector space of a model. @throws EngineError `not_found` */
export function getVectorSpace(store: Store, modelNo: number): VectorSpace {
  const row = store.prepare('SELECT dimensions, encoding FROM models WHERE model_no = ?').get(modelNo) as
    { dimensions: number; encoding: VectorEncoding } | undefined;
  if (row === undefined) throw new EngineError('not_found', `no model ${modelNo}`);
  return { modelNo, ...row };
}

/** Lists the models that have a number in this file, in the order of their numbers, even if they have no vectors. */
export function listModels(store: Store): (ModelName & { readonly modelNo: number })[] {
  return store
    .prepare('SELECT model_no AS modelNo, provider, model, dimensions, encoding FROM models ORDER BY model_no')
    .all() as (ModelName & { modelNo: number })[];
}

/** An embedding of the cache. */
export interface CachedEmbedding {
  /** First 16 bytes of the SHA-256 of the text. */
  readonly textHash: Buffer;
  readonly embedding: Float32Array;
}

/**
 * Looks up embeddings by the hashes of their texts: one entry for each hash, in order, undefined if it is not cached.
 * The age of an entry stays as it is.
 * @throws EngineError `not_found` for an unknown model; `internal` for a damaged entry
 */
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

/**
 * Caches embeddings. A text that is cached already keeps its vector, and its age starts anew. Call inside a write.
 * @throws EngineError `not_found` for an unknown model; `internal` for a vector that cannot be stored
 */
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
 * Deletes the cached embeddings of the texts that a memory's vectors were made from, even if another memory shares a
 * text; there the cache only saves a call. Call before the memory's vectors are deleted, inside a write.
 * @returns the number of deleted embeddings
 */
export function eraseCachedEmbeddingsOf(store: Store, memoryNo: number): number {
  return store
    .prepare(
      `DELETE FROM embedding_cache WHERE (model_no, text_hash) IN
         (SELECT model_no, text_hash FROM vectors WHERE memory = ? AND text_hash IS NOT NULL)`,
    )
    .run(memoryNo).changes;
}

/**
 * Deletes the cached embedding of one text of a model, even if several memories share the text. Call inside a write.
 */
export function eraseCachedEmbedding(store: Store, modelNo: number, textHash: Buffer): void {
  store.prepare('DELETE FROM embedding_cache WHERE model_no = ? AND text_hash = ?').run(modelNo, textHash);
}

/**
 * Deletes at most `limit` cached embeddings that were last put before `before` (Unix ms, excluded), oldest first. Call
 * inside a write.
 * @returns the number deleted
 */
export function purgeCachedEmbeddings(store: Store, before: number, limit: number): number {
  return store
    .prepare(
      `DELETE FROM embedding_cache WHERE (model_no, text_hash) IN
         (SELECT model_no, text_hash FROM embedding_cache WHERE created_at < ? ORDER BY created_at LIMIT ?)`,
    )
    .run(before, limit).changes;
}

export type { EmbedLogEntry } from '../types.ts';

/**
 * Logs a call of a provider and adds it to the sums of its day; of a failed call the sums have no texts and tokens.
 * Call inside a write.
 */
export function appendEmbedLog(store: Store, entry: EmbedLogEntry): void {
  const { error, ...call } = entry;
  const isFailed = error !== null;
  store
    .prepare(
      `INSERT INTO embed_logs
         (at, provider, model, server, purpose, texts, tokens, output_tokens, ms, cost_usd, status, error_code, error)
       VALUES
         (:at, :provider, :model, :server, :purpose, :texts, :tokens, :outputTokens, :ms, :costUsd, :status, :code,
          :message)`,
    )
    .run({
      ...call,
      status: isFailed ? 'failed' : 'completed',
      code: error?.code ?? null,
      message: error?.message ?? null,
    });
  const { provider, model, purpose, texts, tokens, outputTokens, costUsd } = call;
  addUsage(store, call.at, {
    provider,
    model,
    purpose,
    costUsd,
    calls: 1,
    failed: isFailed ? 1 : 0,
    ...(isFailed ? { texts: 0, tokens: 0, outputTokens: 0 } : { texts, tokens, outputTokens }),
    cachedTexts: 0,
    savedTokens: 0,
  });
}

/** Filter for the log of provider calls. */
export interface EmbedLogFilter {
  /** Outcome of the calls; all calls by default. */
  readonly state?: 'failed' | 'completed' | undefined;
}

const ofState = ({ state }: EmbedLogFilter) => (state === undefined ? '' : `WHERE status = '${state}'`);

/** Lists logged calls, newest first. */
export function listEmbedLogs(
  store: Store,
  filter: EmbedLogFilter,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): EmbedLogEntry[] {
  const rows = store
    .prepare(
      `SELECT at, provider, model, server, purpose, texts, tokens, output_tokens AS outputTokens, ms,
         cost_usd AS costUsd,
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

/** Deletes at most `limit` logged calls from before `before` (Unix ms), oldest first. @returns the number deleted */
export function purgeEmbedLogs(store: Store, before: number, limit: number): number {
  return store
    .prepare('DELETE FROM embed_logs WHERE log_no IN (SELECT log_no FROM embed_logs WHERE at < ? ORDER BY at LIMIT ?)')
    .run(before, limit).changes;
}
