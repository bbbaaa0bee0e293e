/** Models and their numbers, lookups of stored vectors by text, and the log of calls of embedding providers. */

import { EngineError } from '../errors.ts';
import type { Embedder, VectorEncoding } from '../ports.ts';
import type { EmbedLogEntry } from '../types.ts';
import type { Store } from './open-store.ts';
import { addUsage } from './provider-usage.ts';
import { findInfo } from './store-info.ts';
import { assertValidVector, decodeVector } from './vector-encoding.ts';
import { STORED_BYTES } from './vector-parts.ts';
import { formOf, type VectorSpace } from './vectors.ts';

type ModelName = Pick<Embedder, 'provider' | 'model' | 'dimensions' | 'encoding'>;

/** Returns the number of an embedder's vector space in this file, which is given on first use. Call inside a write. */
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
 * Key of the entry in `store_info` that holds the highest number of a deleted model. That number is never given again,
 * since another process may still remember it.
 */
export const LAST_MODEL = 'last_model';

function nextModelNumber(store: Store): number {
  const { last } = store.prepare('SELECT coalesce(max(model_no), 0) AS last FROM models').get() as { last: number };
  return 1 + Math.max(last, Number(findInfo(store, LAST_MODEL) ?? 0));
}

/** Finds the number of an embedder's vector space; undefined if it has none yet, or if the model was deleted. */
export function findModelNumber(
  store: Store,
  { provider, model, dimensions, encoding }: ModelName,
): number | undefined {
  const row = store
    .prepare('SELECT model_no FROM models WHERE provider = ? AND model = ? AND dimensions = ? AND encoding = ?')
    .get(provider, model, dimensions, encoding) as { model_no: number } | undefined;
  return row?.model_no;
}

/** Reads the vector space of a model by its number. @throws EngineError `not_found` */
export function getVectorSpace(store: Store, modelNo: number): VectorSpace {
  const row = store.prepare('SELECT dimensions, encoding FROM models WHERE model_no = ?').get(modelNo) as
    { dimensions: number; encoding: VectorEncoding } | undefined;
  if (row === undefined) throw new EngineError('not_found', `no model ${modelNo}`);
  return { modelNo, ...row };
}

/** Lists the models that have a number in this file, by ascending number, even those without vectors. */
export function listModels(store: Store): (ModelName & { readonly modelNo: number })[] {
  return store
    .prepare('SELECT model_no AS modelNo, provider, model, dimensions, encoding FROM models ORDER BY model_no')
    .all() as (ModelName & { modelNo: number })[];
}

/**
 * Looks up vectors of texts, by the first 16 bytes of the SHA-256 of each text. The stored vectors serve as a cache of
 * embeddings: no provider has to be paid again for a text as long as some memory has a vector of it.
 * @returns one vector for each hash, in their order; undefined where no memory has a vector of the text by this model
 * @throws EngineError `not_found` for an unknown model; `internal` for a damaged vector
 */
export function findEmbeddings(
  store: Store,
  modelNo: number,
  textHashes: readonly Buffer[],
): (Float32Array | undefined)[] {
  const space = getVectorSpace(store, modelNo);
  const statement = store.prepare(
    `SELECT v.precision, ${STORED_BYTES} AS bytes FROM vectors v INDEXED BY vectors_by_text
     WHERE v.text_hash = ? AND v.text_hash <> '' AND v.model_no = ? ORDER BY v.vector_no LIMIT 1`,
  );
  return textHashes.map((textHash) => {
    const row = statement.get(textHash, modelNo) as { precision: number; bytes: Buffer } | undefined;
    if (row === undefined) return undefined;
    const embedding = decodeVector(row.bytes, formOf(space, row.precision), space.dimensions);
    assertValidVector(embedding, space.dimensions);
    return embedding;
  });
}

/**
 * Counts the cached embeddings that would be lost with these memories: their texts without a vector of another memory,
 * counted once for each model.
 */
export function countEmbeddingsOnlyOf(store: Store, memoryNos: readonly number[]): number {
  const wanted = JSON.stringify(memoryNos);
  return store
    .prepare(
      `SELECT count(*) FROM (SELECT DISTINCT model_no, text_hash FROM vectors
         WHERE memory IN (SELECT value FROM json_each(?)) AND text_hash <> '') t
       WHERE NOT EXISTS (SELECT 1 FROM vectors v INDEXED BY vectors_by_text
         WHERE v.text_hash = t.text_hash AND v.text_hash <> '' AND v.model_no = t.model_no
           AND v.memory NOT IN (SELECT value FROM json_each(?)))`,
    )
    .pluck()
    .get(wanted, wanted) as number;
}

/**
 * Deletes the copies of a memory's vectors in the table that earlier versions used as a cache. Call before the vectors
 * are deleted, inside a write.
 */
export function eraseCopies(store: Store, memoryNo: number): void {
  store
    .prepare(
      `DELETE FROM cached_copies WHERE (model_no, text_hash) IN
         (SELECT model_no, text_hash FROM vectors WHERE memory = ? AND text_hash <> '')`,
    )
    .run(memoryNo);
}

/** Tells whether the table that earlier versions used as a cache of vectors has any row. */
export function hasCopies(store: Store): boolean {
  return store.prepare('SELECT 1 FROM cached_copies LIMIT 1').get() !== undefined;
}

/** Deletes at most `limit` rows of the table that earlier versions used as a cache of vectors. Call inside a write. */
export function purgeCopies(store: Store, limit: number): void {
  store
    .prepare(
      `DELETE FROM cached_copies WHERE (model_no, text_hash) IN
         (SELECT model_no, text_hash FROM cached_copies LIMIT ?)`,
    )
    .run(limit);
}

export type { EmbedLogEntry } from '../types.ts';

/**
 * Adds a call of a provider to the log and to the sums of its day. A failed call adds no texts and no tokens to the
 * sums. Call inside a write.
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

/** Selects entries of the log of provider calls: calls of embedders and of language models. */
export interface CallLogFilter {
  /** `failed`: only calls that failed; `completed`: only calls that the provider answered; all calls if left out. */
  readonly state?: 'failed' | 'completed' | undefined;
}

const ofState = ({ state }: CallLogFilter) => (state === undefined ? '' : `WHERE status = '${state}'`);

/** Lists a page of the logged provider calls, newest first. */
export function listEmbedLogs(
  store: Store,
  filter: CallLogFilter,
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

/** Counts the logged provider calls that a filter selects. */
export function countEmbedLogs(store: Store, filter: CallLogFilter): number {
  return (store.prepare(`SELECT count(*) AS n FROM embed_logs ${ofState(filter)}`).get() as { n: number }).n;
}

/**
 * Deletes at most `limit` logged calls of providers, of embedders and language models, with a time before `before`
 * (Unix ms), oldest first. Call inside a write.
 * @returns the number of deleted calls
 */
export function purgeEmbedLogs(store: Store, before: number, limit: number): number {
  return store
    .prepare('DELETE FROM embed_logs WHERE log_no IN (SELECT log_no FROM embed_logs WHERE at < ? ORDER BY at LIMIT ?)')
    .run(before, limit).changes;
}
