import { parseStored } from './stored-json.ts';
import { timingSafeEqual } from 'node:crypto';
import { assert, EngineError } from '../errors.ts';
import type { AddReply, IdempotencyClaim } from '../types.ts';
import { keyedHash } from './keyed-hash.ts';
import type { Store } from './open-store.ts';
import { changesOfEach } from './statement.ts';
import { findInfo } from './store-info.ts';

/** The use of an Idempotency-Key by a writer. Replies are kept for each writer, so that no other one gets them. */
export interface WriterClaim extends IdempotencyClaim {
  /** Public id of the API key that writes; null without one. */
  readonly writtenBy: string | null;
}

/**
 * Finds the reply that is stored for an Idempotency-Key, writer and route, marked as `replayed`; undefined if this
 * writer has not used the Idempotency-Key.
 * @param items number of items of the request, which must be the number of results in the reply, unless the write took
 *   only the first of them
 * @throws EngineError `conflict` if a memory of the reply was deleted, or if the reply was stored by a version of Cairn
 *   that kept no result for each item; `unprocessable` if the key was used with another body
 */
export function findStoredReply(store: Store, claim: WriterClaim, items: number): AddReply | undefined {
  const { keyHash, sharedHash, bodyHash } = hashesOf(store, claim);
  const row = store
    .prepare(
      `SELECT k.body_hash, k.reply FROM idempotency_keys k
       WHERE k.key_hash IN (?, ?) AND k.route = ? AND (k.key_hash = ? OR k.reply IS NULL OR EXISTS (
         SELECT 1 FROM memory_dynamics d WHERE d.seq = k.first_seq AND d.writer_no =
           (SELECT writer_no FROM writers WHERE key_id = ?)))
       ORDER BY k.key_hash = ? DESC LIMIT 1`,
    )
    .get(keyHash, sharedHash, claim.route, keyHash, claim.writtenBy, keyHash) as
    { body_hash: Buffer | null; reply: string | null } | undefined;
  if (row === undefined) return undefined;
  if (row.body_hash === null || row.reply === null) {
    throw new EngineError('conflict', 'what this Idempotency-Key made was deleted; use a new key to add it again');
  }
  if (!timingSafeEqual(row.body_hash, bodyHash)) {
    throw new EngineError(
      'unprocessable',
      'this Idempotency-Key was used with another body; use a new key for a new request',
    );
  }
  const reply = parseStored(row.reply) as AddReply;
  if (reply.outcomes.length !== items && reply.outcomes.length !== reply.taken) {
    throw new EngineError(
      'conflict',
      'the reply to this Idempotency-Key is of another version, which kept no refusals; use a new key',
    );
  }
  return { ...reply, replayed: true };
}

/**
 * Stores the reply to the first use of an Idempotency-Key. Call inside the write that adds the memories, after
 * `findStoredReply`.
 * @param memories lowest and highest number of the at most 1,000 memories that were added; null if none was
 */
export function putStoredReply(
  store: Store,
  claim: WriterClaim,
  { reply, memories, now }: { reply: AddReply; memories: { first: number; last: number } | null; now: number },
): void {
  const { keyHash, bodyHash } = hashesOf(store, claim);
  store
    .prepare(
      `INSERT INTO idempotency_keys (key_hash, route, body_hash, reply, first_seq, last_seq, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(keyHash, claim.route, bodyHash, JSON.stringify(reply), memories?.first ?? null, memories?.last ?? null, now);
}

/**
 * Returns keyed hashes, as the file holds neither the Idempotency-Key nor the hash of the body itself: `keyHash` of the
 * Idempotency-Key with its writer, `sharedHash` of the Idempotency-Key alone. Older files have replies under the
 * latter, which belong to the writer of their memories.
 */
function hashesOf(store: Store, { key, writtenBy, bodyHash }: WriterClaim) {
  const secret = findInfo(store, 'idempotency_secret');
  assert(secret !== undefined, 'a migration made the secret of the stored replies');
  const sharedHash = keyedHash(secret, key);
  const keyHash = writtenBy === null ? sharedHash : keyedHash(secret, JSON.stringify([writtenBy, key]));
  return { keyHash, sharedHash, bodyHash: keyedHash(secret, bodyHash) };
}

/** Greatest number of memories of one stored reply. It bounds the search for the reply that belongs to a memory. */
export const MAX_REPLY_MEMORIES = 1_000;

/**
 * Replaces the stored replies whose range of memory numbers includes one of these memories by tombstones, which keep
 * nothing of request and reply, so that a later use of the key fails. Call inside a write.
 * @returns the number of replies that were replaced
 */
export function eraseStoredReplies(store: Store, memoryNos: readonly number[]): number {
  const erase = store.prepare(
    `UPDATE idempotency_keys SET reply = NULL, body_hash = NULL
     WHERE last_seq BETWEEN ? AND ? AND first_seq <= ? AND reply IS NOT NULL`,
  );
  return changesOfEach(erase, memoryNos, (no) => [no, no + MAX_REPLY_MEMORIES, no]);
}

/**
 * Deletes at most `limit` replies and tombstones of replies that were stored before `before` (Unix ms, excluded),
 * oldest first. Call inside a write.
 * @returns the number of deleted rows
 */
export function purgeStoredReplies(store: Store, before: number, limit: number): number {
  return store
    .prepare(
      `DELETE FROM idempotency_keys WHERE (key_hash, route) IN
         (SELECT key_hash, route FROM idempotency_keys WHERE created_at < ? ORDER BY created_at LIMIT ?)`,
    )
    .run(before, limit).changes;
}
