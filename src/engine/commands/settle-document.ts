import { noteSettled } from '../store/document-generations.ts';
import { hasUnfinishedChunks, listForgotten, settleDocumentJob } from '../store/document-jobs.ts';
import type { Store } from '../store/open-store.ts';

/**
 * Ends the job of a document once no job of its chunks is left: each chunk is embedded and linked, or its job has given
 * up or was cancelled. Call it inside a write transaction whenever the job of a chunk has ended.
 * @returns whether the document's job ended now
 */
export function settleDocument(store: Store, documentNo: number, now: number): boolean {
  if (!settleDocumentJob(store, documentNo, now)) return false;
  noteSettled(store, documentNo, now);
  return true;
}

/**
 * Ends the jobs of the documents to which the chunks of these claims belong, for each document of which no chunk has an
 * unfinished job. Claims without a document are skipped. It opens a write transaction, its own, only if there is such a
 * document.
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

/** Greatest number of waiting documents that one call of `settleForgotten` examines; each takes some 5 µs. */
const MAX_LOOKED_AT = 10_000;
/** Greatest number of documents whose jobs one call of `settleForgotten` ends. */
const MAX_SETTLED = 200;

/**
 * Ends the jobs of documents whose last chunk has ended, but whose worker died before it ended the document's job: of
 * at most 200 of the first 10,000 that wait for their chunks. It opens a write transaction, its own, only if there are
 * any.
 */
export function settleForgotten(store: Store, now: number): void {
  const forgotten = store.read(() => listForgotten(store, { looked: MAX_LOOKED_AT, limit: MAX_SETTLED }));
  if (forgotten.length === 0) return;
  store.write(() => {
    for (const documentNo of forgotten) settleDocument(store, documentNo, now);
  });
}
