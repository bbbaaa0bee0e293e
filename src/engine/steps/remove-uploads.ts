import { removeUpload } from '../documents/uploads.ts';
import { listFailedUploads, listReadUploads, releaseUpload, type NamedUpload } from '../store/documents.ts';
import type { Store } from '../store/open-store.ts';

/** Removes the files of documents that were read. */
export function removeReadUploads(store: Store): void {
  remove(store, listReadUploads(store));
}

/** Removes the files of documents whose reading had given up by then. */
export function removeFailedUploads(store: Store, before: number): void {
  remove(store, listFailedUploads(store, before));
}

/** First the file, then its name: a crash between leaves no file that nobody knows. */
function remove(store: Store, uploads: readonly NamedUpload[]): void {
  if (uploads.length === 0) return;
  for (const { upload } of uploads) removeUpload(store.path, upload);
  store.write(() => {
    for (const { generationNo } of uploads) releaseUpload(store, generationNo);
  });
}
