import { readMemories } from '../store/memories.ts';
import { withinBytes } from '../store/text-sizes.ts';
import type { Store } from '../store/open-store.ts';
import type { Memory } from '../types.ts';

/** Greatest number of bytes of text in one list of pairs; the pairs beyond it are left out. */
const LIST_BYTES = 4 * 1024 * 1024;

/**
 * Reads the memories of a list of pairs. A pair is left out if one of its memories has expired or does not exist, or
 * does not fit into the 4 MiB of text that a list may have; `isCut` tells whether memories did not fit.
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
