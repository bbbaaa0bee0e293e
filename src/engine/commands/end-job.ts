import { findDocumentRow, releaseUpload } from '../store/documents.ts';
import * as ledger from '../store/jobs.ts';
import type { Job } from '../types.ts';
import { cancelDocument } from './accept-document.ts';
import { settleDocument } from './settle-document.ts';
import type { WriteContext } from './write-context.ts';

/** A document's job takes the reading with it; a chunk's may have been the last that its document waited for. */
export function cancelJob(context: WriteContext, { id }: { readonly id: string }): Job {
  const { store, now } = context;
  const job = ledger.getJob(store, id);
  if (job.kind === 'document' && job.step === 'ingest' && job.documentId !== null) {
    cancelDocument(context, { id: job.documentId });
    return ledger.getJob(store, id);
  }
  const cancelled = ledger.cancelJob(store, id, now);
  const documentNo = ledger.documentOfJob(store, id);
  if (documentNo !== null) settleDocument(store, documentNo, now);
  return cancelled;
}

/**
 * With a document's job goes its file: without the job nobody could read it again.
 * @returns the file's name in the uploads folder, to be removed once this is committed; '' for none
 */
export function discardJob({ store }: WriteContext, { id }: { readonly id: string }): string {
  const job = ledger.getJob(store, id);
  const documentNo = job.kind === 'document' ? ledger.documentOfJob(store, id) : null;
  ledger.discardJob(store, id);
  const next = documentNo === null ? null : (findDocumentRow(store, documentNo)?.next_no ?? null);
  return next === null ? '' : releaseUpload(store, next);
}
