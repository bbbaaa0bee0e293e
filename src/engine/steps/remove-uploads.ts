import { removeUpload } from '../documents/uploads.ts';
import { listFailedUploads, listReadUploads, releaseUpload, type NamedUpload } from '../store/uploads.ts';
import type { Store } from '../store/open-store.ts';

/**
 * Removes the uploaded files whose reading is complete, at most 1,000 a call: they are not read again. It uses a write
 * transaction of its own.
 */
export function removeReadUploads(store: Store): void {
  remove(store, () => listReadUploads(store));
}

/**
 * Removes the uploaded files of documents whose reading failed for good before `before` (Unix ms), at most 1,000 a
 * call. It uses a write transaction of its own.
 */
export function removeFailedUploads(store: Store, before: number): void {
  remove(store, () => listFailedUploads(store, before));
}

/**
 * Clears the names that `list` finds in the database, and removes the files after the commit. They are listed in it,
 * since a document that is to be read again keeps its file. A file whose name is cleared when the process is killed is
 * swept away later. In PostgreSQL a file has rows instead, which are deleted with its name.
 */
function remove(store: Store, list: () => readonly NamedUpload[]): void {
  if (list().length === 0) return;
  const released = store.write(() => list().map(({ generationNo }) => releaseUpload(store, generationNo)));
  for (const name of released) removeUpload(store.path, name);
}
