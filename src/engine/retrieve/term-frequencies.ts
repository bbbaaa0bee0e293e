import type { Store } from '../store/open-store.ts';
import { countMemories, countMemoriesAfter, lastMemory } from '../store/search.ts';
import { snapshotVersion } from '../store/snapshot.ts';
import { openWordSearch } from '../store/word-index/open-word-search.ts';
import { textRewrites } from '../store/word-index/rewrites.ts';

/** In how many memories of the file each word or phrase stands, in their order. */
export function termFrequencies(store: Store, texts: readonly string[]): number[] {
  return store.read(() => {
    const words = openWordSearch(store);
    return texts.map(words.frequencyOf);
  });
}

/** Inverse document frequency of words as BM25 has it, kept above 0 for those that half of the memories hold. */
export function raritiesOf(store: Store, words: readonly string[]): number[] {
  const memories = memoryCount(store);
  return termFrequencies(store, words).map((frequency) =>
    Math.log(1 + Math.max(0, memories - frequency + 0.5) / (frequency + 0.5)),
  );
}

/** What was counted on a connection, up to which memory, and of which state of the file that is the truth. */
interface Known {
  snapshot: string;
  rewriteNo: number;
  upTo: number;
  count: number;
}

const knownByStore = new WeakMap<Store, Known>();

/** How many memories the file holds, which the frequencies are measured by. Only those are counted that came since, unless some went. */
export function memoryCount(store: Store): number {
  const known = knownByStore.get(store) ?? { snapshot: '', rewriteNo: -1, upTo: 0, count: 0 };
  const snapshot = snapshotVersion(store);
  if (known.snapshot === snapshot) return known.count;
  const [rewriteNo, last] = [textRewrites.last(store), lastMemory(store)];
  const isKnown = known.rewriteNo === rewriteNo && known.upTo <= last;
  if (!isKnown) known.count = countMemories(store);
  else if (known.upTo < last) known.count += countMemoriesAfter(store, known.upTo);
  knownByStore.set(store, Object.assign(known, { snapshot, rewriteNo, upTo: last }));
  return known.count;
}
