import type { Store } from './open-store.ts';

/**
 * Runs `work` inside a write so that it alone can be undone.
 * @param undone gives the result where `work` threw, once all that it had written is undone
 * @throws what `work` threw where that ended the whole transaction, as a full disk may
 */
export function inSavepoint<T>({ db, prepare }: Store, work: () => T, undone: (error: unknown) => T): T {
  prepare('SAVEPOINT request').run();
  try {
    const value = work();
    prepare('RELEASE request').run();
    return value;
  } catch (error) {
    if (!db.inTransaction) throw error;
    prepare('ROLLBACK TO request').run();
    prepare('RELEASE request').run();
    return undone(error);
  }
}
