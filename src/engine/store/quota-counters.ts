/** How much a tenant's file holds, for its quota. */
import type { Store } from './open-store.ts';

/** Reads how many bytes of the file's pages are in use; a delete lowers that at once. It reads the header alone. */
export function usedBytes(store: Store): number {
  const { bytes } = store
    .prepare(
      `SELECT (page_count - freelist_count) * page_size AS bytes
       FROM pragma_page_count, pragma_freelist_count, pragma_page_size`,
    )
    .get() as { bytes: number };
  return bytes;
}

/** Highest number of a memory, one look into a B-tree; 0 if there is none. There are never more memories than this. */
export function highestMemoryNo(store: Store): number {
  return (store.prepare('SELECT coalesce(max(seq), 0) AS no FROM memories').get() as { no: number }).no;
}

/** Counts all memories, by a walk over the smallest index: the time grows with their number. */
export function countMemories(store: Store): number {
  return (store.prepare('SELECT count(*) AS memories FROM memories').get() as { memories: number }).memories;
}
