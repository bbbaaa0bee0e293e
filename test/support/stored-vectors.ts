import type Database from 'better-sqlite3';
import type { VectorEncoding } from '../../src/engine/ports.ts';
import { decodeVector } from '../../src/engine/store/vector-encoding.ts';
import { STORED_BYTES } from '../../src/engine/store/vector-parts.ts';
import { formOf } from '../../src/engine/store/vectors.ts';

export interface StoredVector {
  readonly vectorNo: number;
  readonly memory: number;
  readonly modelNo: number;
  readonly model: string;
  readonly windowNo: number;
  /** Bytes of the vector as they are stored in the file. */
  readonly bytes: Buffer;
  readonly embedding: Float32Array;
}

/** Returns every vector of a file, in whatever form it is stored, in the order of the vector numbers. */
export function storedVectors(db: Database.Database): StoredVector[] {
  const rows = db
    .prepare(
      `SELECT v.vector_no AS vectorNo, v.memory, v.model_no AS modelNo, o.model, o.dimensions, o.encoding,
         v.window_no AS windowNo, v.precision, ${STORED_BYTES} AS bytes
       FROM vectors v JOIN models o USING (model_no) ORDER BY v.vector_no`,
    )
    .all() as (StoredVector & { dimensions: number; encoding: VectorEncoding; precision: number })[];
  return rows.map(({ dimensions, encoding, precision, ...row }) => ({
    ...row,
    embedding: decodeVector(row.bytes, formOf({ encoding }, precision), dimensions),
  }));
}
