import { cancelDocumentJobs, isAwaitingChunks } from '../store/document-jobs.ts';
import { dropNextGeneration } from '../store/document-generations.ts';
import { setDocumentState } from '../store/documents.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Ends the reading of a document that waits, is running or has failed, and gives up what it has stored so far. The
 * document is left in the given state; in place of `ready`, it is `processing` while a job still waits for chunks of
 * what queries find.
 * @returns the number of cancelled jobs
 */
export function dropReading({ store, now }: WriteContext, documentNo: number, state: 'cancelled' | 'ready'): number {
  const jobs = cancelDocumentJobs(store, documentNo, { which: 'reading', now });
  dropNextGeneration(store, documentNo);
  const isSettled = state !== 'ready' || !isAwaitingChunks(store, documentNo);
  setDocumentState(store, documentNo, { state: isSettled ? state : 'processing', now });
  return jobs;
}
