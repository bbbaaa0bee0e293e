import type { Store } from './open-store.ts';

/**
 * Returns the earliest time (Unix ms) at which a memory or a version of a document expires; Infinity if none does. It
 * may lie in the past, also for rows that are erased in another way, such as replaced versions of documents.
 */
export function firstExpiry(store: Store): number {
  return (store.prepare(FIRST_EXPIRY).pluck().get() as number | null) ?? Infinity;
}

const FIRST_EXPIRY = `SELECT min(at) FROM (
  SELECT min(expires_at) AS at FROM memories WHERE expires_at > 0
  UNION ALL SELECT min(expires_at) FROM document_generations WHERE expires_at > 0) AS first`;
