import type { VectorEncoding, VectorRole } from '../ports.ts';
import { assertValidVector, decodeVector, encodeVector } from './vector-encoding.ts';
import type { Store } from './open-store.ts';

/** The canonical vectors. Every index over them can be made again from here. */

export const MEAN_WINDOW = -1;

/** The space a vector lives in: vectors of different spaces are never compared. */
export interface VectorSpace {
  readonly modelNo: number;
  readonly dimensions: number;
  readonly encoding: VectorEncoding;
}

export interface NewVector {
  readonly memory: number;
  /** 0.. for a window of the text, MEAN_WINDOW for the mean of several. */
  readonly windowNo: number;
  readonly embedding: Float32Array;
  readonly textHash: Buffer | null;
}

/** @returns the vector's number, its row in every index */
export function insertVector(store: Store, space: VectorSpace, vector: NewVector): number {
  assertValidVector(vector.embedding, space.dimensions);
  const result = store
    .prepare('INSERT INTO vectors (memory, model_no, window_no, text_hash, embedding) VALUES (?, ?, ?, ?, ?)')
    .run(
      vector.memory,
      space.modelNo,
      vector.windowNo,
      vector.textHash,
      encodeVector(vector.embedding, space.encoding),
    );
  return Number(result.lastInsertRowid);
}

/** @returns the numbers of the removed vectors of this memory and model */
export function deleteVectors(store: Store, memory: number, modelNo: number): number[] {
  const rows = store
    .prepare('DELETE FROM vectors WHERE memory = ? AND model_no = ? RETURNING vector_no')
    .all(memory, modelNo) as { vector_no: number }[];
  return rows.map((row) => row.vector_no);
}

export interface MemoryVector {
  readonly vectorNo: number;
  readonly memory: number;
  readonly windowNo: number;
  readonly embedding: Float32Array;
}

/** Vectors by number, in no order; unknown numbers are left out. */
export function readVectors(store: Store, space: VectorSpace, vectorNos: readonly number[]): MemoryVector[] {
  return decodeRows(
    space,
    store
      .prepare(
        'SELECT vector_no, memory, window_no, embedding FROM vectors WHERE vector_no IN (SELECT value FROM json_each(?))',
      )
      .all(JSON.stringify(vectorNos)),
  );
}

/** The vector that stands for a whole memory: its mean, or its only window. */
export function findWholeVector(store: Store, space: VectorSpace, memory: number): MemoryVector | undefined {
  return decodeRows(
    space,
    store
      .prepare(
        `SELECT vector_no, memory, window_no, embedding FROM vectors WHERE memory = ? AND model_no = ? AND sector = ''
         ORDER BY window_no LIMIT 1`,
      )
      .all(memory, space.modelNo),
  )[0];
}

export function countVectors(store: Store): number {
  return (store.prepare('SELECT count(*) AS n FROM vectors').get() as { n: number }).n;
}

/** How many memories have vectors in this space; reads the whole index of vectors. */
export function countEmbedded(store: Store, { modelNo }: VectorSpace): number {
  const row = store
    .prepare(`SELECT count(DISTINCT memory) AS n FROM vectors WHERE model_no = ? AND sector = ''`)
    .get(modelNo) as { n: number };
  return row.n;
}

/** What the rows of one memory stand for in an index, by their window number. */
export function roleOf(windowNo: number, windowCount: number): VectorRole {
  if (windowNo === MEAN_WINDOW) return 'mean';
  return windowCount > 1 ? 'window' : 'whole';
}

function decodeRows(space: VectorSpace, rows: unknown[]): MemoryVector[] {
  return (rows as { vector_no: number; memory: number; window_no: number; embedding: Buffer }[]).map((row) => {
    const embedding = decodeVector(row.embedding, space.encoding, space.dimensions);
    return { vectorNo: row.vector_no, memory: row.memory, windowNo: row.window_no, embedding };
  });
}
