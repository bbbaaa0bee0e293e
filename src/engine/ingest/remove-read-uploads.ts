import { removeUpload } from '../documents/uploads.ts';
import { listReadUploads, releaseUpload } from '../store/documents.ts';
import type { Store } from '../store/open-store.ts';

/** Removes the files of documents that were read. First the file, then its name: a crash between leaves no file that nobody knows. */
export function removeReadUploads(store: Store): void {
  const read = listReadUploads(store);
  if (read.length === 0) return;
  for (const { upload } of read) removeUpload(store.path, upload);
  store.write(() => {
    for (const { generationNo } of read) releaseUpload(store, generationNo);
  });
}
