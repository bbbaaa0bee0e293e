import type { Store } from './open-store.ts';

/**
 * Runs `work` in a savepoint, so that its writes can be undone without undoing the whole transaction. Call inside a
 * write.
 * @param undone called with the error of `work` after everything that `work` wrote was undone; its result is returned
 *   instead of that of `work`
 * @throws the error of `work` if it ended the whole transaction, as a full disk may
 */
export function inSavepoint<T>(store: Store, work: () => T, undone: (error: unknown) => T): T {
  store.words?.flush();
  store.prepare('SAVEPOINT request').run();
  try {
    const value = work();
    store.prepare('RELEASE request').run();
    return value;
  } catch (error) {
    if (store.transactionNo === undefined) throw error;
    store.words?.forget();
    store.prepare('ROLLBACK TO request').run();
    store.prepare('RELEASE request').run();
    return undone(error);
  }
}
