import { readMemories, withinBytes } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import type { Memory } from '../types.ts';

/** Most text of one list of pairs in bytes; the pairs beyond it are left out. */
const LIST_BYTES = 4 * 1024 * 1024;

/**
 * Reads the memories of a list of pairs. A pair is left out where one of its memories has expired, or lies beyond the
 * text that one list may have, which `isCut` tells.
 */
export function readPairs<Pair extends { readonly earlier: number; readonly later: number }>(
  store: Store,
  pairs: readonly Pair[],
  now: number,
) {
  const numbers = [...new Set(pairs.flatMap(({ earlier, later }) => [earlier, later]))];
  const taken = withinBytes(store, numbers, LIST_BYTES);
  const memories = readMemories(store, taken, now);
  const living = (memoryNo: number): Memory | undefined => {
    const memory = memories.get(memoryNo);
    return memory === undefined || (memory.expiresAt !== null && memory.expiresAt <= now) ? undefined : memory;
  };
  const items = pairs.flatMap((pair) => {
    const [earlier, later] = [living(pair.earlier), living(pair.later)];
    return earlier === undefined || later === undefined ? [] : [{ ...pair, earlier, later }];
  });
  return { items, isCut: taken.length < numbers.length };
}
