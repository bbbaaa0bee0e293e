import type { SqliteStore, Store } from '../../src/engine/store/open-store.ts';

/** The store of a tenant that is known to live in a file. */
export function sqliteOf(store: Store): SqliteStore {
  if (!('db' in store)) throw new Error('this tenant lives in no file');
  return store as SqliteStore;
}
