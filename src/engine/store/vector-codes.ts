import type { VectorRole } from '../ports.ts';
import { openChangeLog } from './change-log.ts';
import type { Store } from './open-store.ts';

/** What an index in memory holds of a vector, and what was removed since it was read. */

/** A row of `vector_codes`. */
export interface VectorCode {
  readonly vectorNo: number;
  readonly memory: number;
  readonly userNo: number;
  readonly role: VectorRole;
  /** A sign bit a dimension, as `signBits` has it. */
  readonly code: Uint8Array;
}

const ROLES = ['whole', 'window', 'mean'] as const satisfies readonly VectorRole[];
/** Vectors whose codes were removed. */
export const vectorRemovals = openChangeLog('vector_removals', 'removal_no', 'vector_no');

/** Call inside a write. */
export function insertCode(store: Store, modelNo: number, { vectorNo, memory, userNo, role, code }: VectorCode): void {
  store
    .prepare('INSERT INTO vector_codes (vector_no, model_no, memory, user_no, role, code) VALUES (?, ?, ?, ?, ?, ?)')
    .run(vectorNo, modelNo, memory, userNo, ROLES.indexOf(role), code);
}

/** Unknown numbers are passed over. Call inside a write. */
export function deleteCodes(store: Store, vectorNos: readonly number[]): void {
  const remove = store.prepare('DELETE FROM vector_codes WHERE vector_no = ?');
  vectorRemovals.note(
    store,
    vectorNos.filter((vectorNo) => remove.run(vectorNo).changes > 0),
  );
}

/** The same for a model that nobody searches any more, so that nobody has to be told. Call inside a write. */
export function dropCodes(store: Store, vectorNos: readonly number[]): void {
  const remove = store.prepare('DELETE FROM vector_codes WHERE vector_no = ?');
  for (const vectorNo of vectorNos) remove.run(vectorNo);
}

/** All of a model. Call inside a write. */
export function clearCodes(store: Store, modelNo: number): void {
  store.prepare('DELETE FROM vector_codes WHERE model_no = ?').run(modelNo);
  vectorRemovals.note(store, [null]);
}

/** Codes of a model behind a number, in order. */
export function readCodes(
  store: Store,
  { modelNo, after, limit }: { readonly modelNo: number; readonly after: number; readonly limit: number },
): VectorCode[] {
  const rows = store
    .prepare(
      `SELECT vector_no AS vectorNo, memory, user_no AS userNo, role, code FROM vector_codes
       WHERE vector_no > ? AND model_no = ? ORDER BY vector_no LIMIT ?`,
    )
    .all(after, modelNo, limit) as { -readonly [K in keyof VectorCode]: K extends 'role' ? unknown : VectorCode[K] }[];
  // In place: a copy of each of a million rows would take a second.
  for (const row of rows) row.role = ROLES[row.role as number];
  return rows as VectorCode[];
}

/** The highest number of any model; 0 for none. */
export function lastCode(store: Store): number {
  return store.prepare('SELECT coalesce(max(vector_no), 0) FROM vector_codes').pluck().get() as number;
}
