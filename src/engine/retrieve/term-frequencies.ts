import type { Store } from '../store/open-store.ts';
import { countMemories, countMemoriesAfter, lastMemory } from '../store/memory-counts.ts';
import { isKnownSnapshot, snapshotVersion } from '../store/snapshot.ts';
import { openWordSearch } from '../store/word-index/open-word-search.ts';
import { textRewrites } from '../store/word-index/rewrite-log.ts';

/**
 * Returns the document frequency of each word or phrase: the number of memories in the file that contain it, in the
 * order of `texts`.
 */
export function termFrequencies(store: Store, texts: readonly string[]): number[] {
  return store.read(() => {
    const words = openWordSearch(store);
    words.expect(texts, 'count');
    return texts.map(words.frequencyOf);
  });
}

/**
 * Computes the inverse document frequency of each word, in the order of `words`: as in BM25, but above 0 even for a
 * word that is in half of the memories or in all of them.
 */
export function raritiesOf(store: Store, words: readonly string[]): number[] {
  const memories = memoryCount(store);
  return termFrequencies(store, words).map((frequency) =>
    Math.log(1 + Math.max(0, memories - frequency + 0.5) / (frequency + 0.5)),
  );
}

/** A cached number of memories, with the state of the file in which they were counted. */
interface CountedState {
  /** Version of the snapshot on which the memories were counted: while it is equal, nothing was written. */
  snapshot: string;
  /** Number of the last rewrite of a text that had happened when the memories were counted. */
  rewriteNo: number;
  /** `memoryNo` of the last memory that was counted. */
  upTo: number;
  count: number;
}

const countedByStore = new WeakMap<Store, CountedState>();

/**
 * Prefetches, for a database behind a network, what `memoryCount` reads if memories were added. The reads are sent in
 * the round trip that tells whether anything was written. If it is known that nothing was, there are no reads.
 */
export function prefetchMemoryCount(store: Store): void {
  const { upTo = 0, snapshot } = countedByStore.get(store) ?? {};
  if (isKnownSnapshot(store, snapshot)) return;
  store.ahead?.readSpeculatively(
    () => lastMemory(store),
    () => upTo > 0 && countMemoriesAfter(store, upTo),
  );
}

/**
 * Returns the number of memories in the file, to be compared with term frequencies. Only memories that were added since
 * the last call are counted, unless a text was rewritten or removed meanwhile.
 */
export function memoryCount(store: Store): number {
  const counted = countedByStore.get(store) ?? { snapshot: '', rewriteNo: -1, upTo: 0, count: 0 };
  const snapshot = snapshotVersion(store);
  if (counted.snapshot === snapshot) return counted.count;
  const [rewriteNo, last] = [textRewrites.last(store), lastMemory(store)];
  const isUsable = counted.rewriteNo === rewriteNo && counted.upTo <= last;
  if (!isUsable) counted.count = countMemories(store);
  else if (counted.upTo < last) counted.count += countMemoriesAfter(store, counted.upTo);
  countedByStore.set(store, Object.assign(counted, { snapshot, rewriteNo, upTo: last }));
  return counted.count;
}
