/**
 * Stores vectors of standing queries (stored queries that are compared with each new memory). By its vector a query is
 * found for a memory that shares no word with it.
 */

import type { Store } from './open-store.ts';

/** The number of a standing query, with the vector of its text. */
export interface StandingVector {
  readonly queryNo: number;
  readonly embedding: Float32Array;
}

/** Lists at most `limit` standing queries without a vector of this model, oldest first. */
export function listUnembeddedQueries(
  store: Store,
  modelNo: number,
  limit: number,
): { readonly queryNo: number; readonly query: string }[] {
  return store
    .prepare(
      `SELECT q.query_no AS queryNo, q.query FROM standing_queries q
         LEFT JOIN standing_vectors v ON v.query_no = q.query_no AND v.model_no = ?
       WHERE v.query_no IS NULL ORDER BY q.query_no LIMIT ?`,
    )
    .all(modelNo, limit) as { queryNo: number; query: string }[];
}

/**
 * Stores vectors of a model, in place of vectors of another model. Queries that were deleted meanwhile are ignored.
 * Call inside a write.
 */
export function putStandingVectors(store: Store, modelNo: number, vectors: readonly StandingVector[]): void {
  const put = store.prepare(
    `INSERT OR REPLACE INTO standing_vectors (query_no, model_no, embedding)
     SELECT query_no, ?, ? FROM standing_queries WHERE query_no = ?`,
  );
  for (const { queryNo, embedding } of vectors)
    put.run(modelNo, Buffer.from(embedding.buffer, embedding.byteOffset, embedding.byteLength), queryNo);
}

/** Counts the standing queries that have a vector of this model. */
export function countStandingVectors(store: Store, modelNo: number): number {
  return store.prepare('SELECT count(*) FROM standing_vectors WHERE model_no = ?').pluck().get(modelNo) as number;
}

/** Iterates over the vectors of a model, by ascending number of their queries. */
export function* readStandingVectors(store: Store, modelNo: number): Iterable<StandingVector> {
  const rows = store
    .prepare('SELECT query_no AS queryNo, embedding FROM standing_vectors WHERE model_no = ? ORDER BY query_no')
    .iterate(modelNo) as Iterable<{ queryNo: number; embedding: Buffer }>;
  for (const { queryNo, embedding } of rows) yield { queryNo, embedding: floatsOf(embedding) };
}

/** Returns the vector of a standing query by this model; undefined if it has none. */
export function findStandingVector(store: Store, modelNo: number, queryNo: number): Float32Array | undefined {
  const embedding = store
    .prepare('SELECT embedding FROM standing_vectors WHERE query_no = ? AND model_no = ?')
    .pluck()
    .get(queryNo, modelNo) as Buffer | undefined;
  return embedding && floatsOf(embedding);
}

/** Copies bytes to a Float32Array of their own, since it must begin at a multiple of four bytes. */
function floatsOf(bytes: Buffer): Float32Array {
  return new Float32Array(Uint8Array.from(bytes).buffer);
}
