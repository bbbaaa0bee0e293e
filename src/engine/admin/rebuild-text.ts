import { listMemoryNosAfter } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { clearText, reindexText } from '../store/word-index/memory-text.ts';

/** Most memories that one write indexes. */
const SLICE = 200;

/**
 * Makes the word index again from the memories, in short writes, after emptying it. If it is broken off, the words of
 * the other memories are not found until it is run again.
 * @param onProgress called after each slice with the number of memories done so far
 * @returns the number of all memories
 */
export function rebuildText(store: Store, onProgress: (done: number) => void = () => {}): number {
  store.write(() => clearText(store));
  let done = 0;
  for (let after = 0; ;) {
    const memoryNos = memoryNosAfter(store, after);
    const last = memoryNos.at(-1);
    if (last === undefined) return done;
    store.write(() => reindexText(store, memoryNos));
    onProgress((done += memoryNos.length));
    after = last;
  }
}

/** Returns the numbers of the next memories of a rebuild, above `after` (0 to begin), ascending; empty at the end. */
export function memoryNosAfter(store: Store, after: number): number[] {
  return listMemoryNosAfter(store, after, SLICE);
}
