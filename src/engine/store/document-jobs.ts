import { noteEvents } from './job-timeline.ts';
import { type DocumentClaim, UNFINISHED, UUID } from './jobs.ts';
import type { Store } from './open-store.ts';

/**
 * Moves the job of a document that was read to the step `settle`, at which it waits for the jobs of the document's
 * chunks. No worker claims this step; `settleDocumentJob` ends it. If the claim `held` was lost meanwhile, because
 * another worker has claimed the job or it was cancelled, nothing changes. Call inside a write.
 */
export function awaitChunks(store: Store, held: DocumentClaim, now: number): void {
  store
    .prepare(
      `UPDATE jobs SET step = 'settle', state = 'queued', attempts = 0, suspect = 0, lease_owner = NULL,
         lease_until = NULL,
         error = NULL, error_code = NULL, updated_at = ?, ${noteEvents(['read'])} WHERE seq = ? AND lease_epoch = ?`,
    )
    .run(now, now, held.jobNo, held.epoch);
}

/** Tells whether an unfinished job still has to embed or link a chunk of the document. */
export function hasUnfinishedChunks(store: Store, documentNo: number): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM jobs INDEXED BY jobs_by_document
         WHERE document = ? AND document > 0 AND state IN ${UNFINISHED} AND kind IN ('memory', 'import') LIMIT 1`,
      )
      .get(documentNo) !== undefined
  );
}

/**
 * Marks the jobs of a document at the step `settle` as done if no job of its chunks is unfinished, even if some chunks'
 * jobs are dead or cancelled. Call inside a write.
 * @returns whether a job was marked; false if a chunk's job is unfinished or no job waits
 */
export function settleDocumentJob(store: Store, documentNo: number, now: number): boolean {
  if (hasUnfinishedChunks(store, documentNo)) return false;
  return (
    store
      .prepare(
        `UPDATE jobs SET step = 'done', state = 'done', finished_at = ?, updated_at = ?,
           ${noteEvents(['settled', 'done'])}
         WHERE document = ? AND document > 0 AND kind = 'document' AND step = 'settle' AND state = 'queued'`,
      )
      .run(now, now, now, documentNo).changes > 0
  );
}

/**
 * Lists the numbers of documents whose job waits at the step `settle` although no chunk has an unfinished job.
 * @param options.looked greatest number of waiting documents that are examined
 * @param options.limit greatest number of documents in the result
 */
export function listForgotten(
  store: Store,
  { looked, limit }: { readonly looked: number; readonly limit: number },
): number[] {
  return store
    .prepare(
      `SELECT w.document FROM (
         SELECT document FROM jobs INDEXED BY jobs_due
         WHERE step = 'settle' AND suspect = 0 AND state IN ('queued', 'failed') LIMIT ?
       ) AS w WHERE NOT EXISTS (
         SELECT 1 FROM jobs c INDEXED BY jobs_by_document
         WHERE c.document = w.document AND c.document > 0 AND c.state IN ${UNFINISHED}
           AND c.kind IN ('memory', 'import')
       ) LIMIT ?`,
    )
    .pluck()
    .all(looked, limit) as number[];
}

/**
 * Tells whether a job of the document waits at the step `settle`. When it ends, `noteSettled` makes a `processing`
 * document `ready`.
 */
export function isAwaitingChunks(store: Store, documentNo: number): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM jobs INDEXED BY jobs_by_document
         WHERE document = ? AND document > 0 AND state = 'queued' AND kind = 'document' AND step = 'settle' LIMIT 1`,
      )
      .get(documentNo) !== undefined
  );
}

/**
 * Finds the newest unfinished job that reads a document or waits for its chunks; undefined if there is none. While a
 * document is read again, its earlier job may still wait for chunks.
 */
export function findOpenDocumentJob(store: Store, documentNo: number): { id: string; jobNo: number } | undefined {
  return store
    .prepare(
      `SELECT id, seq AS jobNo FROM jobs
       WHERE document = ? AND document > 0 AND kind = 'document' AND state IN ${UNFINISHED} ORDER BY seq DESC LIMIT 1`,
    )
    .get(documentNo) as { id: string; jobNo: number } | undefined;
}

/**
 * Tells whether a newer job of the document is unfinished or dead. The next generation of the document is not the older
 * job's then: a dead job, too, may be retried.
 * @param jobNo number of the older job, which may be in any state
 */
export function hasNewerDocumentJob(store: Store, documentNo: number, jobNo: number): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM jobs INDEXED BY jobs_by_document
         WHERE document = ? AND document > 0 AND state IN ('queued', 'active', 'failed', 'dead') AND kind = 'document'
           AND seq > ? LIMIT 1`,
      )
      .get(documentNo, jobNo) !== undefined
  );
}

/**
 * Finds the number of the document that a job reads or whose chunk it works on; null if it is about no document, or
 * does not exist.
 * @param id the job's id
 */
export function documentOfJob(store: Store, id: string): number | null {
  const row = store.prepare(`SELECT document FROM jobs WHERE uuid = ${UUID}`).get(id) as
    { document: number | null } | undefined;
  return row?.document ?? null;
}

/** SQL conditions on an unfinished job of a document: whether it reads the document, or waits for its chunks. */
const WHICH = { all: 'true', reading: `step <> 'settle'`, awaiting: `step = 'settle'` };

/**
 * Cancels unfinished jobs of a document; a worker that has claimed one can no longer commit anything for it. The jobs
 * of the chunks are not cancelled. Call inside a write.
 * @param which `reading` for the job that reads it, `awaiting` for those that wait for the chunks of what queries find
 *   now, and alone tell when these are embedded; `all` for both
 * @returns the number of cancelled jobs
 */
export function cancelDocumentJobs(
  store: Store,
  documentNo: number,
  { which, now }: { readonly which: keyof typeof WHICH; readonly now: number },
): number {
  return store
    .prepare(
      `UPDATE jobs SET state = 'cancelled', finished_at = ?, lease_owner = NULL, lease_until = NULL,
         lease_epoch = lease_epoch + 1,
         updated_at = ?, ${noteEvents(['cancelled'])}
       WHERE document = ? AND document > 0 AND kind = 'document' AND state IN ${UNFINISHED} AND ${WHICH[which]}`,
    )
    .run(now, now, now, documentNo).changes;
}
