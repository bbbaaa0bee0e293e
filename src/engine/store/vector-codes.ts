import type { VectorRole } from '../ports.ts';
import { openChangeLog } from './change-log.ts';
import type { Store } from './open-store.ts';
import { signLength } from './vector-encoding.ts';
import { ROLES, type VectorSpace } from './vectors.ts';

/** What an index in memory holds of a vector, and what was removed since it was read. */

export interface VectorCode {
  readonly vectorNo: number;
  readonly memory: number;
  readonly userNo: number;
  readonly role: VectorRole;
  /** A sign bit a dimension, as `signBits` has it. */
  readonly code: Uint8Array;
}

/**
 * Where the codes of a space stand. A vector in int5 begins with its code, so `vectors` has them. One in float32 has it beside it, in
 * `vector_codes`: nobody should read 3 to 16 KB for 100 to 500 bytes.
 */
interface CodeTable {
  readonly name: 'vectors' | 'vector_codes';
  /** Of a row, as SQL. */
  readonly code: string;
}

function tableOf({ encoding, dimensions }: VectorSpace): CodeTable {
  return encoding === 'int5'
    ? { name: 'vectors', code: `substr(embedding, 1, ${signLength(dimensions)})` }
    : { name: 'vector_codes', code: 'code' };
}

/** Vectors that were removed. */
export const vectorRemovals = openChangeLog('vector_removals', 'removal_no', 'vector_no');

/** Of vectors that `vectors` has already. Call inside a write. */
export function insertCodes(store: Store, space: VectorSpace, codes: () => readonly VectorCode[]): void {
  if (tableOf(space).name === 'vectors') return;
  const insert = store.prepare(
    'INSERT INTO vector_codes (vector_no, model_no, memory, user_no, role, code) VALUES (?, ?, ?, ?, ?, ?)',
  );
  for (const { vectorNo, memory, userNo, role, code } of codes()) {
    insert.run(vectorNo, space.modelNo, memory, userNo, ROLES.indexOf(role), code);
  }
}

/** Of vectors that `vectors` no longer has. Unknown numbers are passed over. Call inside a write. */
export function deleteCodes(store: Store, vectorNos: readonly number[]): void {
  dropCodes(store, vectorNos);
  vectorRemovals.note(store, vectorNos);
}

/** The same for a model that nobody searches any more, so that nobody has to be told. Call inside a write. */
export function dropCodes(store: Store, vectorNos: readonly number[]): void {
  const remove = store.prepare('DELETE FROM vector_codes WHERE vector_no = ?');
  for (const vectorNo of vectorNos) remove.run(vectorNo);
}

/** All of a model that can be made again from its vectors; whoever holds codes reads all again. Call inside a write. */
export function clearCodes(store: Store, modelNo: number): void {
  store.prepare('DELETE FROM vector_codes WHERE model_no = ?').run(modelNo);
  vectorRemovals.note(store, [null]);
}

/**
 * The next codes of a space behind a number, in order.
 * @param limit rows that are looked at, of whatever model
 * @returns also the number of the last row that was looked at; none was left where it is `Infinity`
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
  // In place: a copy of each of a million rows would take a second.
  for (const row of codes) row.role = ROLES[row.role as number];
  return { codes: codes as VectorCode[], upTo };
}

/** The highest number that a code of a space can have; 0 where there is none. */
export function lastCode(store: Store, space: VectorSpace): number {
  return store
    .prepare(`SELECT coalesce(max(vector_no), 0) FROM ${tableOf(space).name}`)
    .pluck()
    .get() as number;
}
