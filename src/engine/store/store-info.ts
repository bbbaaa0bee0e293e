/**
 * Stores single values about the file itself by key in the table `store_info`, such as the file's id for write
 * receipts, or the time at which each schedule last ran.
 */

import { randomBytes } from 'node:crypto';
import type { Store } from './open-store.ts';

const STORE_ID = 'store_id';

const SELECT_VALUE = 'SELECT value FROM store_info WHERE key = ?';

export function findInfo(store: Pick<Store, 'prepare'>, key: string): string | undefined {
  return (store.prepare(SELECT_VALUE).get(key) as { value: string } | undefined)?.value;
}

/** Reads the values of several keys by one statement; a key without a value is left out. */
export function findInfos(store: Pick<Store, 'prepare'>, keys: readonly string[]): Map<string, string> {
  const rows = store
    .prepare('SELECT key, value FROM store_info WHERE key IN (SELECT value FROM json_each(?))')
    .all(JSON.stringify(keys)) as { key: string; value: string }[];
  return new Map(rows.map(({ key, value }) => [key, value]));
}

/** Prefetches the values of keys for later calls of `findInfo` in this transaction; does nothing for a file. */
export function prefetchInfo({ ahead }: Pick<Store, 'ahead'>, keys: readonly string[]): void {
  ahead?.ask(
    SELECT_VALUE,
    keys.map((key) => [key]),
  );
}

export function hasInfo(store: Pick<Store, 'prepare'>, key: string): boolean {
  return store.prepare('SELECT 1 FROM store_info WHERE key = ?').get(key) !== undefined;
}

export function putInfo(store: Pick<Store, 'prepare'>, key: string, value: string): void {
  store
    .prepare('INSERT INTO store_info (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value')
    .run(key, value);
}

export function deleteInfo(store: Store, key: string): void {
  store.prepare('DELETE FROM store_info WHERE key = ?').run(key);
}

/** Deletes the entry of a key if its value is `value`. Call inside a write. */
export function deleteInfoIf(store: Store, key: string, value: string): void {
  store.prepare('DELETE FROM store_info WHERE key = ? AND value = ?').run(key, value);
}

/** Cache of file ids by connection. An id that was just made is not cached, since its write may be rolled back. */
const storeIds = new WeakMap<Store, string>();

/** Tells whether the file has an id for its write receipts yet. */
export function hasStoreId(store: Store): boolean {
  return findStoreId(store) !== undefined;
}

function findStoreId(store: Store): string | undefined {
  const storeId = storeIds.get(store) ?? findInfo(store, STORE_ID);
  if (storeId !== undefined) storeIds.set(store, storeId);
  return storeId;
}

/**
 * Returns the id of the file, eight hexadecimal digits that distinguish its write receipts from those of other tenants.
 * It is made on first use and kept in the file. Call inside a write.
 */
export function ensureStoreId(store: Store): string {
  const storeId = findStoreId(store);
  if (storeId !== undefined) return storeId;
  const made = randomBytes(4).toString('hex');
  putInfo(store, STORE_ID, made);
  return made;
}
