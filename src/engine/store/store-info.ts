import { randomBytes } from 'node:crypto';
import type { Store } from './open-store.ts';

/** Small facts about the file itself: its name for tokens, when each schedule last ran and who runs it. */

const STORE_ID = 'store_id';

export function findInfo(store: Store, key: string): string | undefined {
  return (store.prepare('SELECT value FROM store_info WHERE key = ?').get(key) as { value: string } | undefined)?.value;
}

export function putInfo(store: Store, key: string, value: string): void {
  store
    .prepare('INSERT INTO store_info (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value')
    .run(key, value);
}

export function deleteInfo(store: Store, key: string): void {
  store.prepare('DELETE FROM store_info WHERE key = ?').run(key);
}

/** Deletes a fact only where it still says `value`. */
export function deleteInfoIf(store: Store, key: string, value: string): void {
  store.prepare('DELETE FROM store_info WHERE key = ? AND value = ?').run(key, value);
}

/** Whether the file has a name for its tokens yet. */
export function hasStoreId(store: Store): boolean {
  return findInfo(store, STORE_ID) !== undefined;
}

/** Eight hex digits that tell one tenant's tokens from another's. Call inside a write. */
export function ensureStoreId(store: Store): string {
  const found = findInfo(store, STORE_ID);
  if (found !== undefined) return found;
  const made = randomBytes(4).toString('hex');
  putInfo(store, STORE_ID, made);
  return made;
}
