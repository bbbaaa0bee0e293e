import { removeUpload } from '../documents/uploads.ts';
import { listFailedUploads, listReadUploads, releaseUpload, type NamedUpload } from '../store/uploads.ts';
import type { Store } from '../store/open-store.ts';

/**
 * Removes the uploaded files whose reading is complete, at most 1,000 a call: they are not read again. It uses a write
 * transaction of its own.
 */
export function removeReadUploads(store: Store): void {
  remove(store, listReadUploads(store));
}

/**
 * Removes the uploaded files of documents whose reading failed for good before `before` (Unix ms), at most 1,000 a
 * call. It uses a write transaction of its own.
 */
export function removeFailedUploads(store: Store, before: number): void {
  remove(store, listFailedUploads(store, before));
}

/**
 * Removes files first and their names in the database afterwards, so that a crash in between leaves no file whose name
 * is lost. In PostgreSQL a file has rows instead, which are deleted with its name.
 */
function remove(store: Store, uploads: readonly NamedUpload[]): void {
  if (uploads.length === 0) return;
  for (const { upload } of uploads) removeUpload(store.path, upload);
  store.write(() => {
    for (const { generationNo } of uploads) releaseUpload(store, generationNo);
  });
}
