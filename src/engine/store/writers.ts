import type { Store } from './open-store.ts';

/** SQL that selects the number of a key; its parameter is the public id of the key. */
export const SELECT_WRITER = 'SELECT writer_no FROM writers WHERE key_id = ?';

/**
 * Returns the number of a key in this file, which is given on first use; null if `keyId` is null, since no key asked
 * for the write. Call inside the write that stores something for the key.
 * @param keyId public id of the key; `environment`, `anonymous` and `cli` stand for callers without a key of their own
 */
export function ensureWriter(store: Store, keyId: string | null): number | null {
  if (keyId === null) return null;
  const known = findWriter(store, keyId);
  if (known !== undefined) return known;
  return Number(store.prepare('INSERT INTO writers (key_id) VALUES (?)').run(keyId).lastInsertRowid);
}

/** Finds the number of a key in this file; undefined if the key has written nothing. */
export function findWriter(store: Store, keyId: string): number | undefined {
  return store.prepare(SELECT_WRITER).pluck().get(keyId) as number | undefined;
}

/**
 * Returns the SQL expression for the public id of the key whose number is in a column; NULL if the column is NULL.
 * @param column the column with its table, since the table of writers has a column of the same name
 */
export function writerOf(column: string): string {
  return `(SELECT key_id FROM writers WHERE writer_no = ${column})`;
}

/**
 * Returns the SQL condition that the number in a column is that of one of several keys. Its one parameter is a JSON
 * list of the public ids of these keys.
 */
export function isByOneOf(column: string): string {
  return `${column} IN (SELECT writer_no FROM writers WHERE key_id IN (SELECT value FROM json_each(?)))`;
}

/** Returns the public id of a key by its number in this file; null if the number is null or unknown. */
export function nameOfWriter(store: Store, writerNo: number | null): string | null {
  if (writerNo === null) return null;
  return (
    (store.prepare('SELECT key_id FROM writers WHERE writer_no = ?').pluck().get(writerNo) as string | undefined) ??
    null
  );
}
