import { listMemoryNosAfter } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { clearText, reindexText } from '../store/word-index/memory-text.ts';

/** Greatest number of memories that one write indexes. */
const SLICE = 200;

/**
 * Empties the word index and makes it again from the memories, in short writes. If it is interrupted, the remaining
 * memories are not found by their words until it is run again.
 * @param onProgress called after each slice with the number of memories done so far
 * @returns the number of all memories
 */
export function rebuildText(store: Store, onProgress: (done: number) => void = () => {}): number {
  store.write(() => clearText(store));
  return rewriteText(store, onProgress);
}

/**
 * Writes the words of all memories anew, in short writes, so that an index of an earlier version becomes one of this
 * version. If it is interrupted, the remaining memories keep the words that they had.
 * @param onProgress called after each slice with the number of memories done so far
 * @returns the number of all memories
 */
export function rewriteText(store: Store, onProgress: (done: number) => void = () => {}): number {
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

/**
 * Returns the `memoryNo` of the next memories of a rebuild, at most 200, above `after` (0 to begin), ascending; empty
 * at the end.
 */
export function memoryNosAfter(store: Store, after: number): number[] {
  return listMemoryNosAfter(store, after, SLICE);
}
