import type { SqliteStore, Store } from '../../src/engine/store/open-store.ts';

/** Returns the store of a tenant as an SQLite store. The tenant must be kept in a file. */
export function sqliteOf(store: Store): SqliteStore {
  if (!('db' in store)) throw new Error('this tenant lives in no file');
  return store as SqliteStore;
}
