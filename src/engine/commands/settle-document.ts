import { noteSettled } from '../store/documents.ts';
import { hasUnfinishedChunks, listUnsettled, settleDocumentJob } from '../store/document-jobs.ts';
import type { Store } from '../store/open-store.ts';

/**
 * Ends the job of a document that has nothing left to wait for: every chunk is embedded and linked, or its job has
 * given up. Call it inside a write, whenever the job of a chunk has ended that may have been the last.
 * @returns whether the job ended now
 */
export function settleDocument(store: Store, documentNo: number, now: number): boolean {
  if (!settleDocumentJob(store, documentNo, now)) return false;
  noteSettled(store, documentNo, now);
  return true;
}

/**
 * Ends the jobs of the documents whose chunks these claims were about, if no other chunk's job is left. Claims without
 * a document are passed over. It writes in a transaction of its own, where there is something to end.
 */
export function settleDocumentsOf(
  store: Store,
  claims: readonly { readonly documentNo: number | null }[],
  now: number,
): void {
  const documents = [...new Set(claims.flatMap(({ documentNo: document }) => document ?? []))].filter(
    (documentNo) => !hasUnfinishedChunks(store, documentNo),
  );
  if (documents.length === 0) return;
  store.write(() => {
    for (const documentNo of documents) settleDocument(store, documentNo, now);
  });
}

/** Most documents that `settleForgotten` looks at in one call. */
const MAX_LOOKED_AT = 200;

/**
 * Ends the jobs of documents whose last chunk ended unnoticed, as a worker died just then. It looks at 200 documents at
 * most.
 */
export function settleForgotten(store: Store, now: number): void {
  const unsettled = listUnsettled(store, MAX_LOOKED_AT);
  if (unsettled.length === 0) return;
  store.write(() => {
    for (const documentNo of unsettled) settleDocument(store, documentNo, now);
  });
}
