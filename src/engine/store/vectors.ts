/** The stored vectors of memories. All vector indexes can be built again from them. */

import { assert } from '../errors.ts';
import {
  VECTOR_PRECISIONS,
  type IndexedVector,
  type VectorEncoding,
  type VectorPrecision,
  type VectorRole,
} from '../ports.ts';
import type { Store } from './open-store.ts';
import { assertValidVector, decodeVector, encodedLength, encodeVector, type StoredForm } from './vector-encoding.ts';
import { insertParts, STORED_BYTES } from './vector-parts.ts';

/** Window number of a vector that is the mean of several windows. */
export const MEAN_WINDOW = -1;

/** A space of comparable vectors, those of one model. Vectors of two spaces are never compared. */
export interface VectorSpace {
  readonly modelNo: number;
  readonly dimensions: number;
  readonly encoding: VectorEncoding;
}

/** A vector to store. */
export interface NewVector {
  readonly memory: number;
  readonly userNo: number;
  /** Index of the window of the text, from 0; MEAN_WINDOW (-1) for the mean of several windows. */
  readonly windowNo: number;
  readonly role: VectorRole;
  readonly embedding: Float32Array;
  /**
   * Key of the window's text in the embedding cache, the first 16 bytes of its SHA-256; null for a mean, and if the
   * embedder is not cached.
   */
  readonly textHash: Buffer | null;
}

/**
 * The roles of vectors: of a text with one window (`whole`), of one window of a longer text, or the mean of its
 * windows. The index of a role is its number in the column `vectors.role`.
 */
export const ROLES = ['whole', 'window', 'mean'] as const satisfies readonly VectorRole[];

/**
 * Returns the number of a precision in the column `vectors.precision`. In this column, 0 means that the row itself has
 * the vector.
 */
function numberOf(precision: VectorPrecision): number {
  return 1 + VECTOR_PRECISIONS.indexOf(precision);
}

/** Returns the form of a stored vector of a space. @param precisionNo value of the column `vectors.precision` */
export function formOf({ encoding }: Pick<VectorSpace, 'encoding'>, precisionNo: number): StoredForm {
  return VECTOR_PRECISIONS[precisionNo - 1] ?? encoding;
}

/**
 * Stores a vector. The caller must add it to indexes and store its code. Call inside a write.
 * @param precision precision in which a vector of a float32 space is stored; a vector of an int5 space ignores it
 * @returns the number of the vector, by which indexes know it
 * @throws EngineError `internal` for a vector that is not valid in the space
 */
export function insertVector(
  store: Store,
  space: VectorSpace,
  vector: NewVector,
  precision: VectorPrecision = 'float32',
): number {
  assertValidVector(vector.embedding, space.dimensions);
  const isInRow = space.encoding === 'int5';
  const bytes = encodeVector(vector.embedding, isInRow ? space.encoding : precision);
  const result = store
    .prepare(
      `INSERT INTO vectors (memory, user_no, model_no, window_no, role, text_hash, embedding, precision)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      vector.memory,
      vector.userNo,
      space.modelNo,
      vector.windowNo,
      ROLES.indexOf(vector.role),
      vector.textHash,
      isInRow ? bytes : EMPTY,
      isInRow ? 0 : numberOf(precision),
    );
  const vectorNo = Number(result.lastInsertRowid);
  if (!isInRow) insertParts(store, vectorNo, bytes);
  return vectorNo;
}

const EMPTY = Buffer.alloc(0);

/**
 * Stores a vector of another file, given by its bytes in a stored form, which are not checked. It does not serve as a
 * cached embedding of its text. The caller must add it to indexes and store its code. Call inside a write.
 * @param form form of the bytes: int5 in a space of int5, otherwise the precision of the vector
 * @returns the number of the vector
 */
export function insertStoredVector(
  store: Store,
  space: VectorSpace,
  { form, bytes, ...vector }: Omit<NewVector, 'embedding' | 'textHash'> & { readonly form: StoredForm; bytes: Buffer },
): number {
  const isInRow = form === 'int5';
  const result = store
    .prepare(
      `INSERT INTO vectors (memory, user_no, model_no, window_no, role, embedding, precision)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      vector.memory,
      vector.userNo,
      space.modelNo,
      vector.windowNo,
      ROLES.indexOf(vector.role),
      isInRow ? bytes : EMPTY,
      isInRow ? 0 : numberOf(form),
    );
  const vectorNo = Number(result.lastInsertRowid);
  if (!isInRow) insertParts(store, vectorNo, bytes);
  return vectorNo;
}

/**
 * Lists those vectors of providers that `coarsenVector` would change: they are stored in a finer precision, or still in
 * their own row instead of in parts. It examines `within` vector numbers above `after`, ascending.
 * @returns `upTo`: the last number that was examined, to pass as `after` next time; if it is below `after + within`, no
 *   vector is left
 */
export function listFiner(
  store: Store,
  {
    precision,
    after,
    within,
  }: { readonly precision: VectorPrecision; readonly after: number; readonly within: number },
): { readonly vectorNos: readonly number[]; readonly upTo: number } {
  const upTo = Math.min(after + within, lastVectorNo(store));
  const vectorNos = store
    .prepare(
      `SELECT vector_no FROM vectors WHERE vector_no > ? AND vector_no <= ? AND precision < ?
         AND model_no IN (SELECT model_no FROM models WHERE encoding = 'float32')
       ORDER BY vector_no`,
    )
    .pluck()
    .all(after, upTo, numberOf(precision)) as number[];
  return { vectorNos, upTo };
}

/**
 * Stores a vector of a provider in a coarser precision, or in parts instead of its row. Its number and the signs of its
 * components stay the same, so no index has to change. A deleted vector, or one that is coarse enough, is ignored. Call
 * inside a write.
 */
export function coarsenVector(store: Store, vectorNo: number, precision: VectorPrecision): void {
  const row = store
    .prepare(
      `SELECT v.memory, v.user_no, v.model_no, v.window_no, v.role, v.sector, v.text_hash, v.precision, m.dimensions,
         m.encoding, ${STORED_BYTES} AS bytes
       FROM vectors v CROSS JOIN models m ON m.model_no = v.model_no WHERE v.vector_no = ?`,
    )
    .get(vectorNo) as
    | { precision: number; dimensions: number; encoding: VectorEncoding; bytes: Buffer; [column: string]: unknown }
    | undefined;
  if (row === undefined || row.precision >= numberOf(precision)) return;
  const { dimensions, encoding, bytes, ...columns } = row;
  const embedding = decodeVector(bytes, formOf({ encoding }, row.precision), dimensions);
  // Deleted and written again, since SQLite joins pages that became nearly empty only at a delete, not at an update.
  deleteVector(store, vectorNo);
  store
    .prepare(
      `INSERT INTO vectors
         (vector_no, memory, user_no, model_no, window_no, role, sector, text_hash, embedding, precision)
       VALUES (:vectorNo, :memory, :user_no, :model_no, :window_no, :role, :sector, :text_hash, x'', :precision)`,
    )
    .run({ ...columns, vectorNo, precision: numberOf(precision) });
  insertParts(store, vectorNo, encodeVector(embedding, precision));
}

/** SQL that selects a row if a memory has a vector; its parameter is the number of the memory. */
export const SELECT_ANY_VECTOR = 'SELECT 1 FROM vectors WHERE memory = ? LIMIT 1';

/** Tells whether a memory has vectors of any model. */
export function hasVectors(store: Store, memoryNo: number): boolean {
  return store.prepare(SELECT_ANY_VECTOR).get(memoryNo) !== undefined;
}

/**
 * Deletes the vectors that one model made of a memory. The caller must remove them from indexes and delete their codes.
 * Call inside a write.
 * @returns the numbers of the deleted vectors
 */
export function deleteVectors(store: Store, memoryNo: number, modelNo: number): number[] {
  const rows = store
    .prepare('DELETE FROM vectors WHERE memory = ? AND model_no = ? RETURNING vector_no')
    .all(memoryNo, modelNo) as { vector_no: number }[];
  return rows.map((row) => row.vector_no);
}

/** Deletes the vectors of several memories as `deleteVectors` does. */
export function deleteVectorsOfAll(store: Store, memoryNos: readonly number[], modelNo: number): number[] {
  return store
    .prepare(
      `DELETE FROM vectors WHERE memory IN (SELECT value FROM json_each(?)) AND model_no = ? RETURNING vector_no`,
    )
    .pluck()
    .all(JSON.stringify(memoryNos), modelNo) as number[];
}

/** Deletes a vector. The caller must remove it from indexes and delete its code. Call inside a write. */
export function deleteVector(store: Store, vectorNo: number): void {
  store.prepare('DELETE FROM vectors WHERE vector_no = ?').run(vectorNo);
}

/** A decoded vector of a memory. */
export interface MemoryVector {
  readonly vectorNo: number;
  readonly memory: number;
  readonly windowNo: number;
  readonly embedding: Float32Array;
}

/** A vector of a memory in its stored form, which `compareStored` compares without decoding it. */
export interface EncodedVector {
  readonly vectorNo: number;
  readonly memory: number;
  /** Bytes of several vectors that were read together. */
  readonly blob: Uint8Array;
  /** Offset of the vector's first byte in `blob`. */
  readonly offset: number;
  readonly form: StoredForm;
}

/**
 * Greatest number of vectors that PostgreSQL returns as one blob. For a larger blob it takes memory from the system and
 * gives it back, which costs more than to find the vectors.
 */
const BLOB_IN_DATABASE = 64;

/**
 * Reads vectors of one space by number, in no certain order; unknown numbers are left out. Many are read as one blob,
 * since a blob for each vector would cost more than everything else together.
 * @param vectorNos numbers of vectors of this space only
 */
export function readVectors(store: Store, space: VectorSpace, vectorNos: readonly number[]): EncodedVector[] {
  const { ahead } = store;
  if (ahead === null || vectorNos.length <= BLOB_IN_DATABASE) return readBlob(store, space, vectorNos);
  const blobs: number[][] = [];
  for (let at = 0; at < vectorNos.length; at += BLOB_IN_DATABASE)
    blobs.push(vectorNos.slice(at, at + BLOB_IN_DATABASE));
  ahead.ask(
    selectBlob(space),
    blobs.map((numbers) => [JSON.stringify(numbers)]),
  );
  return blobs.flatMap((numbers) => readBlob(store, space, numbers));
}

function selectBlob({ encoding }: VectorSpace): string {
  const isInRow = encoding === 'int5';
  return `SELECT json_group_array(v.vector_no), json_group_array(v.memory),
         ${isInRow ? `'[]'` : 'json_group_array(v.precision)'},
         CAST(group_concat(${isInRow ? 'v.embedding' : STORED_BYTES}, '') AS BLOB)
       FROM json_each(?) AS wanted CROSS JOIN vectors v ON v.vector_no = wanted.value`;
}

function readBlob(store: Store, space: VectorSpace, vectorNos: readonly number[]): EncodedVector[] {
  const [numbers, memories, precisions, blob] = store
    .prepare(selectBlob(space))
    .raw()
    .get(JSON.stringify(vectorNos)) as [string, string, string, Buffer | null];
  if (blob === null) return [];
  const memoryOf = JSON.parse(memories) as number[];
  const precisionOf = JSON.parse(precisions) as number[];
  let end = 0;
  const vectors = (JSON.parse(numbers) as number[]).map((vectorNo, place) => {
    const form = space.encoding === 'int5' ? space.encoding : formOf(space, precisionOf[place]!);
    const offset = end;
    end += encodedLength(form, space.dimensions);
    return { vectorNo, memory: memoryOf[place]!, blob, offset, form };
  });
  assert(blob.length === end, 'stored vectors of another length');
  return vectors;
}

/**
 * Finds the vector of a space that represents a memory as a whole: the mean of its windows, or the vector of its only
 * window; undefined if the memory has no vector in the space.
 */
export function findWholeVector(store: Store, space: VectorSpace, memoryNo: number): MemoryVector | undefined {
  return decodeRows(
    space,
    store
      .prepare(
        `SELECT v.vector_no, v.memory, v.window_no, v.precision, ${STORED_BYTES} AS bytes FROM vectors v
         WHERE v.memory = ? AND v.model_no = ? AND v.sector = '' ORDER BY v.window_no LIMIT 1`,
      )
      .all(memoryNo, space.modelNo),
  )[0];
}

/**
 * Reads the vectors of a space that represent memories as a whole, each with the number of its user, by ascending
 * memory number. A memory without a vector in the space is left out.
 */
export function readWholeVectors(
  store: Store,
  space: VectorSpace,
  memories: readonly number[],
): (MemoryVector & { readonly userNo: number })[] {
  const rows = store
    .prepare(
      `SELECT v.vector_no, v.memory, v.window_no, v.user_no, v.precision, ${STORED_BYTES} AS bytes
       FROM json_each(?) AS wanted
         CROSS JOIN vectors v ON v.memory = wanted.value AND v.model_no = ? AND v.sector = '' AND v.window_no <= 0
       ORDER BY v.memory, v.window_no DESC`,
    )
    .all(JSON.stringify(memories), space.modelNo) as { memory: number; user_no: number }[];
  // The rows of a memory end with its mean, if it has one, so the mean replaces the first window.
  const userNos = new Map(rows.map((row) => [row.memory, row.user_no]));
  const whole = new Map(decodeRows(space, rows).map((vector) => [vector.memory, vector]));
  return [...whole.values()].map((vector) => ({ ...vector, userNo: userNos.get(vector.memory)! }));
}

/**
 * Reads the first `limit` vectors of a space with numbers above `after` up to `last` (included), ascending, in the form
 * that a vector index takes in.
 */
export function readVectorsAfter(
  store: Store,
  space: VectorSpace,
  { after, last, limit }: { readonly after: number; readonly last: number; readonly limit: number },
): IndexedVector[] {
  const rows = store
    .prepare(
      `SELECT v.vector_no AS vectorNo, v.memory, v.user_no AS userNo, v.role, v.precision, ${STORED_BYTES} AS bytes
       FROM vectors v WHERE v.model_no = ? AND v.vector_no > ? AND v.vector_no <= ? ORDER BY v.vector_no LIMIT ?`,
    )
    .all(space.modelNo, after, last, limit) as {
    vectorNo: number;
    memory: number;
    userNo: number;
    role: number;
    precision: number;
    bytes: Buffer;
  }[];
  return rows.map(({ role, precision, bytes, ...row }) => ({
    ...row,
    role: ROLES[role]!,
    embedding: decodeVector(bytes, formOf(space, precision), space.dimensions),
  }));
}

/** SQL that selects a row if the vector with this number exists. */
export const SELECT_WHETHER_VECTOR = 'SELECT 1 FROM vectors WHERE vector_no = ?';

/** Tells whether the vector with this number still exists. Numbers are never given twice. */
export function hasVector(store: Store, vectorNo: number): boolean {
  return store.prepare(SELECT_WHETHER_VECTOR).get(vectorNo) !== undefined;
}

/** Returns the highest number of a stored vector of any space; 0 if there is none. */
export function lastVectorNo(store: Store): number {
  return (store.prepare('SELECT max(vector_no) AS last FROM vectors').get() as { last: number | null }).last ?? 0;
}

export function countVectors(store: Store): number {
  return (store.prepare('SELECT count(*) AS n FROM vectors').get() as { n: number }).n;
}

/** Counts the memories that have vectors in this space. It reads the whole index of vectors, which takes long. */
export function countEmbedded(store: Store, { modelNo }: VectorSpace): number {
  const row = store
    .prepare(`SELECT count(DISTINCT memory) AS n FROM vectors WHERE model_no = ? AND sector = ''`)
    .get(modelNo) as { n: number };
  return row.n;
}

/**
 * Returns the role of a vector of a memory.
 * @param windowNo index of the window, or MEAN_WINDOW
 * @param windowCount number of windows of the memory's text, the mean not counted
 */
export function roleOf(windowNo: number, windowCount: number): VectorRole {
  if (windowNo === MEAN_WINDOW) return 'mean';
  return windowCount > 1 ? 'window' : 'whole';
}

function decodeRows(space: VectorSpace, rows: unknown[]): MemoryVector[] {
  return (rows as { vector_no: number; memory: number; window_no: number; precision: number; bytes: Buffer }[]).map(
    (row) => {
      const embedding = decodeVector(row.bytes, formOf(space, row.precision), space.dimensions);
      return { vectorNo: row.vector_no, memory: row.memory, windowNo: row.window_no, embedding };
    },
  );
}
