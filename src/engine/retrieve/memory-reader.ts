import { hasTags } from '../store/bounds.ts';
import type { Store } from '../store/open-store.ts';
import { createPastReader } from '../store/past-memories.ts';
import { withinBytes } from '../store/text-sizes.ts';
import type { Memory, MemoryQuery } from '../types.ts';

/** Reads memories by `memoryNo`, all in the present state or all in the state that was recorded at one past time. */
export interface MemoryReader {
  /**
   * Reads memories. Those that were erased, unknown numbers, and memories that lack a tag to which the caller's key is
   * bound are left out; in a past state, a memory that was stored later has its first state.
   */
  read(memoryNos: readonly number[]): ReadonlyMap<number, Memory>;
  /**
   * Returns as many of the first numbers as have memories of at most `bytes` together (texts, values and metadata), in
   * the state that `read` reads; at least the first number.
   */
  within(memoryNos: readonly number[], bytes: number): readonly number[];
}

/** Store of the memories, and the function that reads them from it in their present state. */
interface PresentReader {
  readonly store: Store;
  readonly readMemories: (store: Store, memoryNos: readonly number[], now: number) => ReadonlyMap<number, Memory>;
}

/**
 * Makes a reader of memories in their recorded state at the time `asOf.recorded`, or in their present state if that is
 * not set. Use it only on the snapshot on which it was made.
 * @param now time for which salience and strength are computed, Unix ms
 */
export function createMemoryReader(
  { store, readMemories }: PresentReader,
  { asOf, filter: { withinTags = [] } }: Pick<MemoryQuery, 'asOf' | 'filter'>,
  now: number,
): MemoryReader {
  const at = asOf?.recorded;
  // A memory may have lost a tag since the filter found it, while a language model was waited for.
  const held = (memories: ReadonlyMap<number, Memory>) =>
    withinTags.length === 0 ? memories : new Map([...memories].filter(([, { tags }]) => hasTags(tags, withinTags)));
  if (at === undefined)
    return {
      read: (memoryNos) => held(readMemories(store, memoryNos, now)),
      within: (memoryNos, bytes) => withinBytes(store, memoryNos, bytes),
    };
  const past = createPastReader(store, at);
  return {
    read: (memoryNos) => held(past.read(memoryNos, now)),
    within: past.within,
  };
}
