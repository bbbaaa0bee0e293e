import { timingSafeEqual } from 'node:crypto';
import { EngineError } from '../errors.ts';
import type { AddReply, IdempotencyClaim } from '../types.ts';
import type { Store } from './open-store.ts';

/**
 * The reply kept under this key, or undefined if the key is new.
 * @throws EngineError `unprocessable` if the key came with another body; `conflict` if what it made was deleted
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

export function putStoredReply(
  store: Store,
  claim: IdempotencyClaim,
  { reply, memories, now }: { reply: AddReply; memories: { first: number; last: number } | null; now: number },
): void {
  store
    .prepare(
      'INSERT INTO idempotency_keys (key, route, body_hash, reply, first_seq, last_seq, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)',
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

/** Memories of one stored reply at most. Bounds where the reply that made a memory can be found. */
export const REPLY_MEMORIES_MOST = 1_000;

/** Leaves a tombstone where a stored reply spoke of this memory. @returns how many replies that were */
export function eraseStoredReplies(store: Store, memory: number): number {
  return store
    .prepare(
      `UPDATE idempotency_keys SET reply = NULL
       WHERE last_seq BETWEEN ? AND ? AND first_seq <= ? AND reply IS NOT NULL`,
    )
    .run(memory, memory + REPLY_MEMORIES_MOST, memory).changes;
}

export function purgeStoredReplies(store: Store, before: number, limit: number): number {
  return store
    .prepare(
      `DELETE FROM idempotency_keys WHERE (key, route) IN
         (SELECT key, route FROM idempotency_keys WHERE created_at < ? ORDER BY created_at LIMIT ?)`,
    )
    .run(before, limit).changes;
}
