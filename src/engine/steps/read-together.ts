import type { Store } from '../store/open-store.ts';

/**
 * Runs a function that makes several SQL queries. In PostgreSQL it runs in one read transaction, since only there these
 * queries share round trips, and what is read once per transaction is not asked again. A file needs no transaction.
 */
export function readTogether<T>(store: Store, read: () => T): T {
  return store.ahead === null ? read() : store.read(read);
}
