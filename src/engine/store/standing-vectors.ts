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

/** A standing query that has no vector. */
export interface UnembeddedQuery {
  readonly queryNo: number;
  readonly query: string;
}

/**
 * Lists at most `limit` standing queries without a vector of this model, oldest first. If all have one, which is so
 * nearly always, only the counts are read.
 */
export function listUnembeddedQueries(store: Store, modelNo: number, limit: number): UnembeddedQuery[] {
  const queries = store.prepare('SELECT count(*) FROM standing_queries').pluck().get() as number;
  if (countStandingVectors(store, modelNo) === queries) return [];
  return store
    .prepare(
      `SELECT q.query_no AS queryNo, q.query FROM standing_queries q
         LEFT JOIN standing_vectors v ON v.query_no = q.query_no AND v.model_no = ?
       WHERE v.query_no IS NULL ORDER BY q.query_no LIMIT ?`,
    )
    .all(modelNo, limit) as UnembeddedQuery[];
}

/**
 * Stores vectors of a model, in place of earlier vectors of the queries. Queries that were deleted meanwhile are
 * ignored. Call inside a write.
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

/** Greatest number of vectors that one statement reads. Those of 1,536 dimensions take 3 MB, in PostgreSQL some 10. */
const READ_AT_ONCE = 512;

/** Lists the numbers of the standing queries that have a vector of this model, ascending. */
export function listPlacedQueryNos(store: Store, modelNo: number): number[] {
  return store
    .prepare('SELECT query_no FROM standing_vectors WHERE model_no = ? ORDER BY query_no')
    .pluck()
    .all(modelNo) as number[];
}

/** Returns the vectors of these standing queries by a model, in no certain order; a query without one is left out. */
export function findStandingVectors(store: Store, modelNo: number, queryNos: readonly number[]): StandingVector[] {
  const read = store.prepare(
    `SELECT v.query_no AS queryNo, v.embedding FROM json_each(?) AS wanted
       CROSS JOIN standing_vectors v ON v.query_no = wanted.value WHERE v.model_no = ?`,
  );
  const found: StandingVector[] = [];
  for (let at = 0; at < queryNos.length; at += READ_AT_ONCE) {
    const wanted = JSON.stringify(queryNos.slice(at, at + READ_AT_ONCE));
    found.push(...(read.all(wanted, modelNo) as StoredRow[]).map(vectorOf));
  }
  return found;
}

interface StoredRow {
  readonly queryNo: number;
  readonly embedding: Buffer;
}

const vectorOf = ({ queryNo, embedding }: StoredRow): StandingVector => ({ queryNo, embedding: floatsOf(embedding) });

/** Copies bytes to a Float32Array of their own, since it must begin at a multiple of four bytes. */
function floatsOf(bytes: Buffer): Float32Array {
  return new Float32Array(Uint8Array.from(bytes).buffer);
}
