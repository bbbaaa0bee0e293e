import { EngineError } from '../errors.ts';
import type { Job } from '../types.ts';
import { hasNewerDocumentJob } from './document-jobs.ts';
import { setDocumentState } from './documents.ts';
import { noteEvents } from './job-timeline.ts';
import { getJob } from './job-views.ts';
import { UUID, UNFINISHED, isUnfinished, markFailed } from './jobs.ts';
import type { Store } from './open-store.ts';
import { changesOfEach } from './statement.ts';

/**
 * Queues a failed, dead or cancelled job again at its step, due at once, with its full number of attempts and no
 * crashes. The memory that it embeds or links, or the document that it reads, becomes `queued`, too. A job that embeds
 * a memory for a change of the model becomes an ordinary `memory` job. Call inside a write.
 * @throws EngineError `not_found`; `conflict` if the job is queued, active or done, if its memory, document or file no
 *   longer exists, or if another unfinished job embeds or links its memory. A job that reads a document also causes it
 *   if it was cancelled, or if the document has a newer job that is unfinished or dead
 */
export function retryJob(store: Store, id: string, now: number): Job {
  const job = getJob(store, id);
  if (job.kind === 'document') return retryDocumentJob(store, job, now);
  if (job.step === 'reason') return retryQuestion(store, job, now);
  if (!['failed', 'dead', 'cancelled'].includes(job.state) || job.memoryId === null) {
    throw new EngineError(
      'conflict',
      `a job that is ${job.state}${job.memoryId === null ? ' and lost its memory' : ''} cannot be retried`,
    );
  }
  const memory = (store.prepare(`SELECT memory FROM jobs WHERE uuid = ${UUID}`).get(id) as { memory: number }).memory;
  const other = store
    .prepare(`SELECT 1 FROM jobs WHERE memory = ? AND id <> ? AND kind <> 'contradictions' AND state IN ${UNFINISHED}`)
    .get(memory, job.id);
  if (other !== undefined) throw new EngineError('conflict', 'a newer job works on this memory already');
  store
    .prepare(
      `UPDATE jobs SET kind = iif(kind = 'import', kind, 'memory'), state = 'queued', attempts = 0, crashes = 0,
         suspect = 0, run_at = ?,
         finished_at = NULL, error = NULL, error_code = NULL, lease_epoch = lease_epoch + 1, dispatched_until = 0,
         updated_at = ?, ${noteEvents(['retried'])}
       WHERE uuid = ${UUID}`,
    )
    .run(now, now, now, id);
  store.prepare(`UPDATE memory_dynamics SET state = 'queued' WHERE seq = ?`).run(memory);
  return getJob(store, id);
}

function retryQuestion(store: Store, job: Job, now: number): Job {
  const lostMemory = job.kind === 'contradictions' && job.memoryId === null;
  if (!['failed', 'dead', 'cancelled'].includes(job.state) || lostMemory) {
    throw new EngineError(
      'conflict',
      `a job that is ${job.state}${lostMemory ? ' and lost its memory' : ''} cannot be retried`,
    );
  }
  requeueAnew(store, job.id, now);
  return getJob(store, job.id);
}

function retryDocumentJob(store: Store, job: Job, now: number): Job {
  const row = store
    .prepare(
      `SELECT o.document_no AS no, o.next_no AS next, g.source = 'upload' AND g.upload = '' AS isGone FROM jobs j
       JOIN documents o ON o.document_no = j.document
       LEFT JOIN document_generations g ON g.generation_no = o.next_no WHERE j.uuid = ${UUID}`,
    )
    .get(job.id) as { no: number; next: number | null; isGone: 0 | 1 | null } | undefined;
  if (!['failed', 'dead'].includes(job.state) || row === undefined || row.next === null) {
    const advice = job.state === 'cancelled' ? ': hand the document in again' : '';
    throw new EngineError('conflict', `a document's job that is ${job.state} cannot be retried${advice}`);
  }
  if (row.isGone) throw new EngineError('conflict', 'its file was removed: hand the document in again');
  if (hasNewerDocumentJob(store, row.no, job.jobNo))
    throw new EngineError('conflict', 'a newer job reads this document');
  requeueAnew(store, job.id, now);
  setDocumentState(store, row.no, { state: 'queued', now });
  store.prepare('UPDATE document_generations SET failed_at = NULL WHERE generation_no = ?').run(row.next);
  return getJob(store, job.id);
}

function requeueAnew(store: Store, id: string, now: number): void {
  store
    .prepare(
      `UPDATE jobs SET state = 'queued', attempts = 0, crashes = 0, suspect = 0, run_at = ?, finished_at = NULL,
         error = NULL, error_code = NULL, lease_epoch = lease_epoch + 1, dispatched_until = 0, updated_at = ?,
         ${noteEvents(['retried'])}
       WHERE uuid = ${UUID}`,
    )
    .run(now, now, now, id);
}

/**
 * Cancels an unfinished job, even if a worker holds it. Its memory becomes `failed`, or `ready` if it has a vector; a
 * job at the step `reason` changes no memory. The document of a job that reads one is left as it is: the caller must
 * change it. Call inside a write.
 * @throws EngineError `not_found`; `conflict` if the job has ended
 */
export function cancelJob(store: Store, id: string, now: number): Job {
  const job = getJob(store, id);
  if (!isUnfinished(job.state)) {
    throw new EngineError('conflict', `a job that is ${job.state} cannot be cancelled`);
  }
  const row = store
    .prepare(
      `UPDATE jobs SET state = 'cancelled', finished_at = ?, lease_owner = NULL, lease_until = NULL,
         lease_epoch = lease_epoch + 1,
         updated_at = ?, ${noteEvents(['cancelled'])} WHERE uuid = ${UUID} RETURNING memory`,
    )
    .get(now, now, now, id) as { memory: number | null };
  if (job.step !== 'reason') markFailed(store, row.memory);
  return getJob(store, id);
}

/**
 * Deletes a dead or cancelled job from the ledger. Call inside a write.
 * @throws EngineError `not_found`; `conflict` if the job is in another state
 */
export function discardJob(store: Store, id: string): void {
  const job = getJob(store, id);
  if (job.state !== 'dead' && job.state !== 'cancelled') {
    throw new EngineError(
      'conflict',
      `a job that is ${job.state} cannot be discarded; only dead and cancelled ones can`,
    );
  }
  store.prepare(`DELETE FROM jobs WHERE uuid = ${UUID}`).run(id);
}

/**
 * Cancels the unfinished jobs of memories that are about to be deleted, and removes the memories from all their jobs.
 * Call inside a write.
 * @returns the number of the memories' jobs, ended ones included
 */
export function detachJobs(store: Store, memoryNos: readonly number[], now: number): number {
  const cancel = store.prepare(
    `UPDATE jobs SET state = 'cancelled', finished_at = ?, lease_owner = NULL, lease_until = NULL,
       lease_epoch = lease_epoch + 1,
       updated_at = ?, ${noteEvents(['cancelled'])} WHERE memory = ? AND state IN ${UNFINISHED}`,
  );
  for (const memoryNo of memoryNos) cancel.run(now, now, now, memoryNo);
  return changesOfEach(store.prepare('UPDATE jobs SET memory = NULL WHERE memory = ?'), memoryNos, (no) => [no]);
}

/**
 * Deletes at most `limit` jobs that were done or cancelled before `before` (Unix ms, excluded). Dead jobs stay. Call
 * inside a write.
 * @returns the number of deleted jobs
 */
export function purgeJobs(store: Store, before: number, limit: number): number {
  return store
    .prepare(
      `DELETE FROM jobs WHERE seq IN
         (SELECT seq FROM jobs INDEXED BY jobs_by_end
          WHERE state IN ('done', 'cancelled') AND finished_at > 0 AND finished_at < ? LIMIT ?)`,
    )
    .run(before, limit).changes;
}
