/** Reads a page of memories in slices, so that only a slice is in memory while a reader takes in the page. */

import type { Memory } from '../types.ts';
import { readMemories } from './memories.ts';
import type { Store } from './open-store.ts';
import { createPastReader } from './past-memories.ts';
import { withinBytes } from './text-sizes.ts';

/** Greatest number of memories in one slice of a page: reading them takes about a millisecond. */
const SLICE_MEMORIES = 128;
/** Greatest number of bytes of a slice, as `withinBytes` counts them. A slice has at least one memory. */
const SLICE_BYTES = 512 * 1024;

/** A slice of a page: its memories, and the numbers of the memories that follow on the page. */
export interface MemorySlice {
  readonly items: readonly Memory[];
  /** Numbers of the memories in `items`, in their order. */
  readonly memoryNos: readonly number[];
  readonly rest: readonly number[];
}

/**
 * Reads the first memories of a list of numbers, in its order: at most 128, with at most 512 KiB of texts, values and
 * metadata together, but at least one. Memories that were erased since are left out. With `recorded`, call inside a
 * read.
 * @param recorded reads the memories as they were recorded at this time (Unix ms); as they are now if left out
 */
export function readMemorySlice(
  store: Store,
  memoryNos: readonly number[],
  now: number,
  recorded?: number,
): MemorySlice {
  const first = memoryNos.slice(0, SLICE_MEMORIES);
  const past = recorded === undefined ? undefined : createPastReader(store, recorded);
  const taken = past?.within(first, SLICE_BYTES) ?? withinBytes(store, first, SLICE_BYTES);
  const memories = past?.read(taken, now) ?? readMemories(store, taken, now);
  const found = taken.filter((memoryNo) => memories.has(memoryNo));
  return {
    items: found.map((memoryNo) => memories.get(memoryNo)!),
    memoryNos: found,
    rest: memoryNos.slice(taken.length),
  };
}
