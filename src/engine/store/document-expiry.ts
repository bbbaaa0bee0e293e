import { ABANDONED, IS_ALIVE, takeIdentity } from './documents.ts';
import type { Store } from './open-store.ts';

/** SQL for the numbers of documents of which a generation has expired by its one parameter, a time (Unix ms). */
const WITH_EXPIRED = 'SELECT document_no FROM document_generations WHERE expires_at > 0 AND expires_at <= ?';

/**
 * Lists the numbers of at most `limit` documents that have expired by `now` (Unix ms, included) and are not being
 * erased yet.
 */
export function listExpiredDocuments(store: Store, now: number, limit: number): number[] {
  return store
    .prepare(
      `SELECT document_no FROM documents
       WHERE document_no IN (${WITH_EXPIRED}) AND state <> 'deleting' AND NOT (${IS_ALIVE}) LIMIT ?`,
    )
    .pluck()
    .all(now, now, limit) as number[];
}

/**
 * Lists the numbers of at most `limit` documents whose live generation has expired by `now` (Unix ms, included), while
 * their next one has not. A document that is being read is left out, since the reading may keep parts of the live one.
 */
export function listOutlived(store: Store, now: number, limit: number): number[] {
  return store
    .prepare(
      `SELECT document_no FROM documents
       WHERE document_no IN (${WITH_EXPIRED}) AND ${IS_ALIVE} AND EXISTS (SELECT 1 FROM document_generations l
           WHERE l.generation_no = documents.live_no AND l.expires_at <= ?)
         AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.document = documents.document_no AND j.document > 0
           AND j.kind = 'document' AND j.state = 'active')
       LIMIT ?`,
    )
    .pluck()
    .all(now, now, now, limit) as number[];
}

/**
 * Gives up a document's live generation, which has expired; a later step erases it. The document then is what its next
 * generation is: queued, being read or failed. Call inside a write.
 */
export function dropLiveGeneration(store: Store, documentNo: number, now: number): void {
  store
    .prepare(
      `UPDATE document_generations SET hidden = ${ABANDONED}, expires_at = NULL
       WHERE generation_no = (SELECT live_no FROM documents WHERE document_no = ?)`,
    )
    .run(documentNo);
  const next = store
    .prepare(
      `UPDATE documents SET live_no = NULL,
         state = iif(state = 'ready' OR (state = 'processing' AND error_code IS NOT NULL), 'failed', state),
         updated_at = ?
       WHERE document_no = ? RETURNING next_no`,
    )
    .pluck()
    .get(now, documentNo) as number;
  takeIdentity(store, documentNo, next);
}
