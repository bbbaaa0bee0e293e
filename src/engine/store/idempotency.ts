import { timingSafeEqual } from 'node:crypto';
import { EngineError } from '../errors.ts';
import type { AddReply, IdempotencyClaim } from '../types.ts';
import type { Store } from './open-store.ts';

/**
 * Finds the reply that is stored for a key and its route, marked as `replayed`; undefined if the key is new.
 * @throws EngineError `unprocessable` if the key came with another body; `conflict` if the memories of the reply were
 *   deleted
 */
export function findStoredReply(store: Store, claim: IdempotencyClaim): AddReply | undefined {
  const row = store
    .prepare('SELECT body_hash, reply FROM idempotency_keys WHERE key = ? AND route = ?')
    .get(claim.key, claim.route) as { body_hash: Buffer; reply: string | null } | undefined;
  if (row === undefined) return undefined;
  if (!timingSafeEqual(row.body_hash, claim.bodyHash)) {
    throw new EngineError(
      'unprocessable',
      'this Idempotency-Key was used with another body; use a new key for a new request',
    );
  }
  if (row.reply === null) {
    throw new EngineError('conflict', 'what this Idempotency-Key made was deleted; use a new key to add it again');
  }
  return { ...(JSON.parse(row.reply) as AddReply), replayed: true };
}

/**
 * Stores the reply to the first use of a key. Call inside the write that adds the memories, after `findStoredReply`.
 * @param memories lowest and highest number of the memories that were added, at most MAX_REPLY_MEMORIES; null for none
 */
export function putStoredReply(
  store: Store,
  claim: IdempotencyClaim,
  { reply, memories, now }: { reply: AddReply; memories: { first: number; last: number } | null; now: number },
): void {
  store
    .prepare(
      `INSERT INTO idempotency_keys (key, route, body_hash, reply, first_seq, last_seq, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      claim.key,
      claim.route,
      claim.bodyHash,
      JSON.stringify(reply),
      memories?.first ?? null,
      memories?.last ?? null,
      now,
    );
}

/** Most memories of one stored reply. It bounds the search for the reply that made a memory. */
export const MAX_REPLY_MEMORIES = 1_000;

/**
 * Replaces each stored reply whose range of memory numbers holds this memory by a tombstone, so that a later use of the
 * key fails. Call inside a write.
 * @returns the number of replies that were replaced
 */
export function eraseStoredReplies(store: Store, memoryNo: number): number {
  return store
    .prepare(
      `UPDATE idempotency_keys SET reply = NULL
       WHERE last_seq BETWEEN ? AND ? AND first_seq <= ? AND reply IS NOT NULL`,
    )
    .run(memoryNo, memoryNo + MAX_REPLY_MEMORIES, memoryNo).changes;
}

/**
 * Deletes at most `limit` replies and tombstones of replies that were stored before `before` (Unix ms, excluded),
 * oldest first.
 * @returns the number deleted
 */
export function purgeStoredReplies(store: Store, before: number, limit: number): number {
  return store
    .prepare(
      `DELETE FROM idempotency_keys WHERE (key, route) IN
         (SELECT key, route FROM idempotency_keys WHERE created_at < ? ORDER BY created_at LIMIT ?)`,
    )
    .run(before, limit).changes;
}
