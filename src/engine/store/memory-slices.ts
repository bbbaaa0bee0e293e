/** Pages of memories, read a slice at a time, so that no more of a page is in memory than its reader can take. */
import type { Memory, MemoryFilter } from '../types.ts';
import { compileFilter } from './filter.ts';
import { readMemories, withinBytes } from './memories.ts';
import type { Store } from './open-store.ts';
import { readMemoriesAsOf } from './revisions.ts';

/** Most memories of a slice: reading them takes about a millisecond. */
const SLICE_MEMORIES = 128;
/** Bytes of text after which a slice ends; it holds at least one memory. */
const SLICE_BYTES = 512 * 1024;

/** Some memories of a page, and the numbers of those that follow them on the page. */
export interface MemorySlice {
  readonly items: readonly Memory[];
  /** Number of each item. */
  readonly memoryNos: readonly number[];
  readonly rest: readonly number[];
}

/**
 * Lists the numbers of a page of the memories that pass a filter with the defaults of `compileFilter`, highest first.
 * No text is read. The table of memories is read first, as its order is the order of the page.
 */
export function listMemoryNos(
  store: Store,
  filter: MemoryFilter,
  page: { readonly limit: number; readonly offset: number },
  now: number,
): number[] {
  const where = compileFilter(filter, now);
  return store
    .prepare(
      `SELECT m.seq FROM memories m CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE ${where.sql} ORDER BY m.seq DESC LIMIT ? OFFSET ?`,
    )
    .pluck()
    .all(...where.parameters, page.limit, page.offset) as number[];
}

/**
 * Reads the first memories of a list of numbers, in its order. Memories that were erased since are left out.
 * @param recorded reads them as they were recorded at this time (Unix ms); as they are, if left out
 */
export function readMemorySlice(
  store: Store,
  memoryNos: readonly number[],
  now: number,
  recorded?: number,
): MemorySlice {
  const taken = withinBytes(store, memoryNos.slice(0, SLICE_MEMORIES), SLICE_BYTES);
  const memories =
    recorded === undefined ? readMemories(store, taken, now) : readMemoriesAsOf(store, taken, { at: recorded, now });
  const found = taken.filter((memoryNo) => memories.has(memoryNo));
  return {
    items: found.map((memoryNo) => memories.get(memoryNo)!),
    memoryNos: found,
    rest: memoryNos.slice(taken.length),
  };
}
