import type { Store } from './open-store.ts';

/** SQL that selects the number of a user; its parameter is the user's id. */
export const SELECT_USER = 'SELECT user_no FROM users WHERE user_id = ?';

/** Finds the number of a user: 0 for the user '', undefined for any other user without memories. */
export function findUserNo(store: Store, userId: string): number | undefined {
  return store.prepare(SELECT_USER).pluck().get(userId) as number | undefined;
}
