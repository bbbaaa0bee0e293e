import type { Store } from './open-store.ts';

/**
 * Returns the small number that stands in this file for a key, made on first use; null for what no key asked for. Call
 * inside the write that stores something in the name of the key.
 * @param keyId public id of the key; `environment`, `anonymous` and `cli` stand for callers without a key of their own
 */
export function ensureWriter(store: Store, keyId: string | null): number | null {
  if (keyId === null) return null;
  const known = findWriter(store, keyId);
  if (known !== undefined) return known;
  return Number(store.prepare('INSERT INTO writers (key_id) VALUES (?)').run(keyId).lastInsertRowid);
}

/** Finds the number that stands for a key; undefined if the key has written nothing. */
export function findWriter(store: Store, keyId: string): number | undefined {
  return store.prepare('SELECT writer_no FROM writers WHERE key_id = ?').pluck().get(keyId) as number | undefined;
}

/**
 * SQL expression for the id of the key that a column with a writer's number stands for; NULL for none.
 * @param column the column with its table, since the table of writers has a column of the same name
 */
export function writerOf(column: string): string {
  return `(SELECT key_id FROM writers WHERE writer_no = ${column})`;
}

/** SQL condition that a column with a writer's number stands for one of the keys in a JSON array, its one parameter. */
export function isByOneOf(column: string): string {
  return `${column} IN (SELECT writer_no FROM writers WHERE key_id IN (SELECT value FROM json_each(?)))`;
}

/** Returns the id of the key that a writer's number stands for; null for null. */
export function nameOfWriter(store: Store, writerNo: number | null): string | null {
  if (writerNo === null) return null;
  return (
    (store.prepare('SELECT key_id FROM writers WHERE writer_no = ?').pluck().get(writerNo) as string | undefined) ??
    null
  );
}
