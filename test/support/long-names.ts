import { eraseRecalls } from '../../src/engine/store/recalls.ts';
import type { Store } from '../../src/engine/store/open-store.ts';

/**
 * Logs 12 recalls, some of which name users of 100 or 600 kB, and erases those about a user whom none names.
 * @returns the number of the recall after which each slice but the first began; null at the end
 */
export function lookAtLongNames({ store }: { readonly store: Store }): (number | null)[] {
  const put = store.prepare(
    `INSERT INTO recalls (recall_id, asked_at, users, sessions, head, bytes) VALUES (?, 0, ?, ?, '{}', 0)`,
  );
  const users = [...Array(8).fill('u'.repeat(100_000)), 'u'.repeat(600_000), 'u'.repeat(600_000), 'ana', 'ana'];
  store.write(() => {
    for (const [no, user] of users.entries()) put.run(`recall ${no}`, JSON.stringify([user]), '[]');
  });
  const ends: (number | null)[] = [];
  for (let after: number | null = 0; after !== null; ends.push(after)) {
    const from: number = after;
    after = store.write(() => eraseRecalls(store, { userIds: ['nobody'] }, from)).next;
  }
  return ends;
}
