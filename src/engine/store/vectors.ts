/** The canonical vectors, from which every index over vectors can be rebuilt. */
import { assert } from '../errors.ts';
import type { IndexedVector, VectorEncoding, VectorRole } from '../ports.ts';
import { assertValidVector, decodeVector, encodedLength, encodeVector } from './vector-encoding.ts';
import type { Store } from './open-store.ts';

/** Window number of the mean of several windows. */
export const MEAN_WINDOW = -1;

/** A space of comparable vectors; vectors of different spaces are never compared. */
export interface VectorSpace {
  readonly modelNo: number;
  readonly dimensions: number;
  readonly encoding: VectorEncoding;
}

/** A vector to store. */
export interface NewVector {
  readonly memory: number;
  readonly userNo: number;
  /** Index of the window of the text, from 0; MEAN_WINDOW for the mean of several windows. */
  readonly windowNo: number;
  readonly role: VectorRole;
  readonly embedding: Float32Array;
  /** Key of the window's text in the embedding cache; null for a mean, and if the embedder is not cached. */
  readonly textHash: Buffer | null;
}

/** Roles in the order of their numbers in the column `vectors.role`. */
export const ROLES = ['whole', 'window', 'mean'] as const satisfies readonly VectorRole[];

/**
 * Stores a vector; indexes and codes are left to the caller. Call inside a write.
 * @returns the number of the vector, by which every index knows it
 * @throws EngineError `internal` for a vector that is not valid in the space
 */
export function insertVector(store: Store, space: VectorSpace, vector: NewVector): number {
  assertValidVector(vector.embedding, space.dimensions);
  const result = store
    .prepare(
      `INSERT INTO vectors (memory, user_no, model_no, window_no, role, text_hash, embedding)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      vector.memory,
      vector.userNo,
      space.modelNo,
      vector.windowNo,
      ROLES.indexOf(vector.role),
      vector.textHash,
      encodeVector(vector.embedding, space.encoding),
    );
  return Number(result.lastInsertRowid);
}

/** Tells whether a memory has vectors of any model. */
export function hasVectors(store: Store, memoryNo: number): boolean {
  return store.prepare('SELECT 1 FROM vectors WHERE memory = ? LIMIT 1').get(memoryNo) !== undefined;
}

/**
 * Deletes a memory's vectors of one model; indexes and codes are left to the caller. Call inside a write.
 * @returns the numbers of the deleted vectors
 */
export function deleteVectors(store: Store, memoryNo: number, modelNo: number): number[] {
  const rows = store
    .prepare('DELETE FROM vectors WHERE memory = ? AND model_no = ? RETURNING vector_no')
    .all(memoryNo, modelNo) as { vector_no: number }[];
  return rows.map((row) => row.vector_no);
}

/**
 * Deletes a vector; indexes and codes are left to the caller. Call inside a write.
 * @returns the key in the embedding cache of the text it was made from; null if there is none, or no such vector
 */
export function deleteVector(store: Store, vectorNo: number): Buffer | null {
  const row = store.prepare('DELETE FROM vectors WHERE vector_no = ? RETURNING text_hash').get(vectorNo) as
    { text_hash: Buffer | null } | undefined;
  return row?.text_hash ?? null;
}

/** A stored vector of a memory. */
export interface MemoryVector {
  readonly vectorNo: number;
  readonly memory: number;
  readonly windowNo: number;
  readonly embedding: Float32Array;
}

/** A stored vector of a memory as it is stored, which `compareStored` compares without decoding it. */
export interface EncodedVector {
  readonly vectorNo: number;
  readonly memory: number;
  /** Vectors that were read together. */
  readonly blob: Uint8Array;
  /** Place of the vector's first byte in `blob`. */
  readonly offset: number;
}

/**
 * Reads vectors of one space by number, in no order; unknown numbers are left out. They come in one blob, since a blob
 * for each costs more than the rest together.
 * @param vectorNos numbers of vectors of this space only
 */
export function readVectors(store: Store, space: VectorSpace, vectorNos: readonly number[]): EncodedVector[] {
  const [numbers, memories, blob] = store
    .prepare(
      `SELECT json_group_array(v.vector_no), json_group_array(v.memory), CAST(group_concat(v.embedding, '') AS BLOB)
       FROM json_each(?) AS wanted CROSS JOIN vectors v ON v.vector_no = wanted.value`,
    )
    .raw()
    .get(JSON.stringify(vectorNos)) as [string, string, Buffer | null];
  if (blob === null) return [];
  const length = encodedLength(space.encoding, space.dimensions);
  const memoryOf = JSON.parse(memories) as number[];
  assert(blob.length === length * memoryOf.length, 'stored vectors of another length');
  return (JSON.parse(numbers) as number[]).map((vectorNo, place) => ({
    vectorNo,
    memory: memoryOf[place]!,
    blob,
    offset: length * place,
  }));
}

/**
 * Finds the vector of a space that stands for a whole memory, its mean or its only window; undefined if there is none.
 */
export function findWholeVector(store: Store, space: VectorSpace, memoryNo: number): MemoryVector | undefined {
  return decodeRows(
    space,
    store
      .prepare(
        `SELECT vector_no, memory, window_no, embedding FROM vectors WHERE memory = ? AND model_no = ? AND sector = ''
         ORDER BY window_no LIMIT 1`,
      )
      .all(memoryNo, space.modelNo),
  )[0];
}

/**
 * Reads the vectors of a space that stand for these whole memories, each with its user, in ascending order of memory.
 * Memories without a vector in the space are left out.
 */
export function readWholeVectors(
  store: Store,
  space: VectorSpace,
  memories: readonly number[],
): (MemoryVector & { readonly userNo: number })[] {
  const rows = store
    .prepare(
      `SELECT v.vector_no, v.memory, v.window_no, v.embedding, v.user_no
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
 * Reads the first `limit` vectors of a space with numbers above `after` up to `last`, included, in ascending order, as
 * an index takes them.
 */
export function readVectorsAfter(
  store: Store,
  { modelNo, encoding, dimensions }: VectorSpace,
  { after, last, limit }: { readonly after: number; readonly last: number; readonly limit: number },
): IndexedVector[] {
  const rows = store
    .prepare(
      `SELECT vector_no AS vectorNo, memory, user_no AS userNo, role, embedding FROM vectors
       WHERE model_no = ? AND vector_no > ? AND vector_no <= ? ORDER BY vector_no LIMIT ?`,
    )
    .all(modelNo, after, last, limit) as {
    vectorNo: number;
    memory: number;
    userNo: number;
    role: number;
    embedding: Buffer;
  }[];
  return rows.map(({ role, embedding, ...row }) => ({
    ...row,
    role: ROLES[role]!,
    embedding: decodeVector(embedding, encoding, dimensions),
  }));
}

/** Tells whether a vector exists. A number is never given twice, so it is the vector that had the number earlier. */
export function hasVector(store: Store, vectorNo: number): boolean {
  return store.prepare('SELECT 1 FROM vectors WHERE vector_no = ?').get(vectorNo) !== undefined;
}

/** Returns the highest number of a stored vector of any space; 0 if there are none. */
export function lastVectorNo(store: Store): number {
  return (store.prepare('SELECT max(vector_no) AS last FROM vectors').get() as { last: number | null }).last ?? 0;
}

export function countVectors(store: Store): number {
  return (store.prepare('SELECT count(*) AS n FROM vectors').get() as { n: number }).n;
}

/** Counts the memories with vectors in this space. It reads the whole index of vectors, so it is slow. */
export function countEmbedded(store: Store, { modelNo }: VectorSpace): number {
  const row = store
    .prepare(`SELECT count(DISTINCT memory) AS n FROM vectors WHERE model_no = ? AND sector = ''`)
    .get(modelNo) as { n: number };
  return row.n;
}

/**
 * Returns the role of a vector of a memory.
 * @param windowNo index of the window, or MEAN_WINDOW
 * @param windowCount number of windows of the memory's text, without the mean
 */
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
