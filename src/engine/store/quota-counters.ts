/** How much a tenant's file holds, for its quota. */
import type { Store } from './open-store.ts';

/** Bytes of the pages in use, which a delete lowers at once. Both numbers stand in the file's header. */
export function usedBytes({ db }: Store): number {
  const [pages, free, size] = ['page_count', 'freelist_count', 'page_size'].map(
    (name) => db.pragma(name, { simple: true }) as number,
  ) as [number, number, number];
  return (pages - free) * size;
}

/** Highest number of a memory, one look into a B-tree; 0 if there is none. There are never more memories than this. */
export function highestMemoryNo({ db }: Store): number {
  return (db.prepare('SELECT coalesce(max(rowid), 0) AS no FROM memories').get() as { no: number }).no;
}

/** Number of memories, by a walk over the smallest index. */
export function countMemories({ db }: Store): number {
  return (db.prepare('SELECT count(*) AS memories FROM memories').get() as { memories: number }).memories;
}
