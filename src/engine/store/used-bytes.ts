import type { Store } from './open-store.ts';

/**
 * Returns the number of bytes in those pages of a tenant's file that hold data, from the file's header alone. A delete
 * lowers it at once.
 */
export function usedBytes(store: Store): number {
  const { bytes } = store
    .prepare(
      `SELECT (page_count - freelist_count) * page_size AS bytes
       FROM pragma_page_count, pragma_freelist_count, pragma_page_size`,
    )
    .get() as { bytes: number };
  return bytes;
}
