import { EngineError } from '../errors.ts';
import { findDocumentRow } from '../store/documents.ts';
import { releaseUpload } from '../store/uploads.ts';
import { documentOfJob, hasNewerDocumentJob } from '../store/document-jobs.ts';
import * as control from '../store/job-control.ts';
import { getJob } from '../store/job-views.ts';
import type { Job } from '../types.ts';
import { cancelDocument } from './accept-document.ts';
import { settleDocument } from './settle-document.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Cancels a job. For a document's job at the step `ingest`, the reading of the document is cancelled. For the job of a
 * chunk, the document's job ends too if it waited for no other chunk.
 * @returns the job as it is now
 * @throws EngineError `not_found`; `conflict` for a job that has ended, and for a document's job at the step `settle`,
 *   without which nothing would tell that the document is ready
 */
export function cancelJob(context: WriteContext, { id }: { readonly id: string }): Job {
  const { store, now } = context;
  const job = getJob(store, id);
  if (job.kind === 'document' && job.step === 'ingest' && job.documentId !== null) {
    cancelDocument(context, { id: job.documentId });
    return getJob(store, id);
  }
  if (job.kind === 'document' && job.step === 'settle' && job.state === 'queued')
    throw new EngineError('conflict', 'this document was read, and its job only waits for those of its chunks');
  const cancelled = control.cancelJob(store, id, now);
  const documentNo = documentOfJob(store, id);
  if (documentNo !== null) settleDocument(store, documentNo, now);
  return cancelled;
}

/**
 * Deletes a job that is dead or cancelled. The uploaded file of a document is given up with its job: without the job
 * nobody could read the file again. A file that was handed in later for the same document stays, since a newer job
 * reads it.
 * @returns the file's name in the uploads folder, to be removed after the commit; '' if there is no file
 * @throws EngineError `not_found`; `conflict` for a job in another state
 */
export function discardJob({ store }: WriteContext, { id }: { readonly id: string }): string {
  const job = getJob(store, id);
  const documentNo = job.kind === 'document' ? documentOfJob(store, id) : null;
  control.discardJob(store, id);
  if (documentNo === null) return '';
  const next = findDocumentRow(store, documentNo)?.next_no ?? null;
  if (next === null || hasNewerDocumentJob(store, documentNo, job.jobNo)) return '';
  return releaseUpload(store, next);
}
