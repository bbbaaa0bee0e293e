/**
 * Stores codes of vectors, one sign bit for each dimension. The vector index holds the codes in memory. This file also
 * logs the vectors that were removed, so that each process updates its index.
 */

import type { VectorRole } from '../ports.ts';
import { openChangeLog } from './change-log.ts';
import type { Store } from './open-store.ts';
import { signLength } from './vector-encoding.ts';
import { ROLES, type VectorSpace } from './vectors.ts';

/**
 * A vector as the index in memory keeps it: its number, memory, user and role, and its sign bits instead of its
 * components.
 */
export interface VectorCode {
  readonly vectorNo: number;
  readonly memory: number;
  readonly userNo: number;
  readonly role: VectorRole;
  /** One sign bit for each dimension, in the order of `signBits`. */
  readonly code: Uint8Array;
}

/**
 * Table and SQL expression from which the codes of a space are read. A vector in int5 begins with its code, so
 * `vectors` has the code. For float32 the codes have a table of their own, `vector_codes`, so that reading one takes
 * 100 to 500 bytes instead of 3 to 16 KB.
 */
interface CodeTable {
  readonly name: 'vectors' | 'vector_codes';
  /** SQL for the code of a row. */
  readonly code: string;
}

function tableOf({ encoding, dimensions }: VectorSpace): CodeTable {
  return encoding === 'int5'
    ? { name: 'vectors', code: `substr(embedding, 1, ${signLength(dimensions)})` }
    : { name: 'vector_codes', code: 'code' };
}

/**
 * Change log of removed vectors, by which the index of each process drops their codes. New vectors need no log, since
 * their numbers are above all others.
 */
export const vectorRemovals = openChangeLog('vector_removals', 'removal_no', 'vector_no');

/**
 * Stores the codes of vectors that are stored in `vectors` already. Call inside a write.
 * @param codes called only for a space in float32, since vectors in int5 contain their codes
 */
export function insertCodes(store: Store, space: VectorSpace, codes: () => readonly VectorCode[]): void {
  if (tableOf(space).name === 'vectors') return;
  const insert = store.prepare(
    'INSERT INTO vector_codes (vector_no, model_no, memory, user_no, role, code) VALUES (?, ?, ?, ?, ?, ?)',
  );
  for (const { vectorNo, memory, userNo, role, code } of codes()) {
    insert.run(vectorNo, space.modelNo, memory, userNo, ROLES.indexOf(role), code);
  }
}

/**
 * Deletes the codes of vectors that were deleted from `vectors`, and logs the removals. Unknown numbers are ignored.
 * Call inside a write.
 */
export function deleteCodes(store: Store, vectorNos: readonly number[]): void {
  dropCodes(store, vectorNos);
  vectorRemovals.note(store, vectorNos);
}

/**
 * Deletes the codes of vectors without logging the removals, which is enough for a model that is no longer searched.
 * Call inside a write.
 */
export function dropCodes(store: Store, vectorNos: readonly number[]): void {
  const remove = store.prepare('DELETE FROM vector_codes WHERE vector_no = ?');
  for (const vectorNo of vectorNos) remove.run(vectorNo);
}

/**
 * Deletes all codes of a model, which can be computed again from its vectors. Every process then reads all codes again.
 * Call inside a write.
 */
export function clearCodes(store: Store, modelNo: number): void {
  store.prepare('DELETE FROM vector_codes WHERE model_no = ?').run(modelNo);
  vectorRemovals.note(store, [null]);
}

/**
 * Reads the next codes of a space with vector numbers above `after`, ascending.
 * @param limit greatest number of vectors that are examined, whatever their model is, so there may be fewer codes, or
 *   none
 * @returns the codes; `upTo`: number of the last vector that was examined, from which to go on; Infinity if none is
 *   left
 */
export function readCodes(
  store: Store,
  space: VectorSpace,
  { after, limit }: { readonly after: number; readonly limit: number },
): { readonly codes: readonly VectorCode[]; readonly upTo: number } {
  const { name, code } = tableOf(space);
  const rows = store
    .prepare(
      `SELECT vector_no AS vectorNo, memory, user_no AS userNo, role, iif(model_no = ?, ${code}, NULL) AS code
       FROM ${name} WHERE vector_no > ? ORDER BY vector_no LIMIT ?`,
    )
    .all(space.modelNo, after, limit) as {
    vectorNo: number;
    memory: number;
    userNo: number;
    role: unknown;
    code: Uint8Array | null;
  }[];
  const upTo = rows.length < limit ? Infinity : rows.at(-1)!.vectorNo;
  const codes = rows.filter((row) => row.code !== null);
  // Rows are changed in place: copying each of a million rows would take a second.
  for (const row of codes) row.role = ROLES[row.role as number];
  return { codes: codes as VectorCode[], upTo };
}

/** Number of windows of one memory, from the first, whose codes are read. */
const MAX_CODES_OF_MEMORY = 8;

/**
 * Reads the codes (sign bits) of memories for a space in float32, by memory number: the code of the whole text, or
 * those of its first 8 windows. A memory without vectors is left out.
 */
export function readCodesOf(
  store: Store,
  { modelNo }: VectorSpace,
  memoryNos: readonly number[],
): ReadonlyMap<number, readonly Uint8Array[]> {
  const rows = store
    .prepare(
      `SELECT v.memory, c.code FROM json_each(?) AS wanted
         CROSS JOIN vectors v ON v.memory = wanted.value AND v.model_no = ? AND v.role <> ${ROLES.indexOf('mean')}
           AND v.window_no < ${MAX_CODES_OF_MEMORY}
         CROSS JOIN vector_codes c ON c.vector_no = v.vector_no`,
    )
    .all(JSON.stringify(memoryNos), modelNo) as { memory: number; code: Uint8Array }[];
  const codes = new Map<number, Uint8Array[]>();
  for (const { memory, code } of rows) codes.set(memory, [...(codes.get(memory) ?? []), code]);
  return codes;
}

/**
 * Returns the highest vector number in the table that has the codes of a space, even if that vector is of another
 * model; 0 if the table is empty.
 */
export function lastCode(store: Store, space: VectorSpace): number {
  return store
    .prepare(`SELECT coalesce(max(vector_no), 0) FROM ${tableOf(space).name}`)
    .pluck()
    .get() as number;
}
