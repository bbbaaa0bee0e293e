import { noteSettled } from '../store/documents.ts';
import { hasUnfinishedChunks, listUnsettled, settleDocumentJob } from '../store/jobs.ts';
import type { Store } from '../store/open-store.ts';

/**
 * Ends a document that has nothing left to wait for: every chunk is embedded and linked, or its job has given up. Call inside a write
 * whenever a chunk's job may have been the last.
 * @returns whether it ended now
 */
export function settleDocument(store: Store, documentNo: number, now: number): boolean {
  if (!settleDocumentJob(store, documentNo, now)) return false;
  noteSettled(store, documentNo, now);
  return true;
}

/** The document of each of these jobs, once the jobs have ended. */
export function settleDocumentsOf(
  store: Store,
  claims: readonly { readonly document: number | null }[],
  now: number,
): void {
  const documents = [...new Set(claims.flatMap(({ document }) => document ?? []))].filter(
    (documentNo) => !hasUnfinishedChunks(store, documentNo),
  );
  if (documents.length === 0) return;
  store.write(() => {
    for (const documentNo of documents) settleDocument(store, documentNo, now);
  });
}

const LOOKED_AT_MOST = 200;

/** Documents whose last chunk ended unnoticed, as where a worker died just then. */
export function settleForgotten(store: Store, now: number): void {
  const unsettled = listUnsettled(store, LOOKED_AT_MOST);
  if (unsettled.length === 0) return;
  store.write(() => {
    for (const documentNo of unsettled) settleDocument(store, documentNo, now);
  });
}
