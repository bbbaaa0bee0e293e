import { assert } from '../errors.ts';
import type { IndexedVector, VectorEncoding, VectorRole } from '../ports.ts';
import { assertValidVector, decodeVector, encodedLength, encodeVector } from './vector-encoding.ts';
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
  readonly userNo: number;
  /** 0.. for a window of the text, MEAN_WINDOW for the mean of several. */
  readonly windowNo: number;
  readonly role: VectorRole;
  readonly embedding: Float32Array;
  readonly textHash: Buffer | null;
}

/** As `vectors` has them. */
export const ROLES = ['whole', 'window', 'mean'] as const satisfies readonly VectorRole[];

/** @returns the vector's number, its row in every index */
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

/** Whether a memory has vectors of any model. */
export function hasVectors(store: Store, memory: number): boolean {
  return store.prepare('SELECT 1 FROM vectors WHERE memory = ? LIMIT 1').get(memory) !== undefined;
}

/** @returns the numbers of the removed vectors of this memory and model */
export function deleteVectors(store: Store, memory: number, modelNo: number): number[] {
  const rows = store
    .prepare('DELETE FROM vectors WHERE memory = ? AND model_no = ? RETURNING vector_no')
    .all(memory, modelNo) as { vector_no: number }[];
  return rows.map((row) => row.vector_no);
}

/** @returns the text that it was made from, as the cache knows it; null for none */
export function deleteVector(store: Store, vectorNo: number): Buffer | null {
  const row = store.prepare('DELETE FROM vectors WHERE vector_no = ? RETURNING text_hash').get(vectorNo) as
    { text_hash: Buffer | null } | undefined;
  return row?.text_hash ?? null;
}

export interface MemoryVector {
  readonly vectorNo: number;
  readonly memory: number;
  readonly windowNo: number;
  readonly embedding: Float32Array;
}

/** Vectors by number, each given once, in no order; unknown numbers are left out. All come in one blob, since a blob each costs more than all else. */
export function readVectors(store: Store, space: VectorSpace, vectorNos: readonly number[]): MemoryVector[] {
  const [numbers, memories, windows, blobs] = store
    .prepare(
      `SELECT json_group_array(v.vector_no), json_group_array(v.memory), json_group_array(v.window_no),
         CAST(group_concat(v.embedding, '') AS BLOB)
       FROM json_each(?) AS wanted CROSS JOIN vectors v ON v.vector_no = wanted.value`,
    )
    .raw()
    .get(JSON.stringify(vectorNos)) as [string, string, string, Buffer | null];
  const { encoding, dimensions } = space;
  const length = encodedLength(encoding, dimensions);
  const memoryOf = JSON.parse(memories) as number[];
  const windowOf = JSON.parse(windows) as number[];
  assert((blobs?.length ?? 0) === length * memoryOf.length, 'stored vectors of another length');
  return (JSON.parse(numbers) as number[]).map((vectorNo, place) => ({
    vectorNo,
    memory: memoryOf[place]!,
    windowNo: windowOf[place]!,
    embedding: decodeVector(blobs!.subarray(length * place, length * (place + 1)), encoding, dimensions),
  }));
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

/** The vectors that stand for these whole memories, each with its user; memories without are left out. In order of memory. */
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
  // Of a mean and the first window, the mean comes last and stays.
  const userNos = new Map(rows.map((row) => [row.memory, row.user_no]));
  const whole = new Map(decodeRows(space, rows).map((vector) => [vector.memory, vector]));
  return [...whole.values()].map((vector) => ({ ...vector, userNo: userNos.get(vector.memory)! }));
}

/** Vectors of a space behind a number and up to another, in order, as an index takes them. */
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

/** A number is never given again, so a vector that is there is the one that had it before. */
export function hasVector(store: Store, vectorNo: number): boolean {
  return store.prepare('SELECT 1 FROM vectors WHERE vector_no = ?').get(vectorNo) !== undefined;
}

/** The highest number of a vector that is stored; 0 without any. */
export function lastVectorNo(store: Store): number {
  return (store.prepare('SELECT max(vector_no) AS last FROM vectors').get() as { last: number | null }).last ?? 0;
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
