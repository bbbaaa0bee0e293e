import { LRUCache } from 'lru-cache';
import { countMemories, countMemoriesAfter, countText, lastMemory, snapshotVersion } from '../store/search.ts';
import type { Store } from '../store/open-store.ts';
import { countRewrites } from '../store/text.ts';
import { ftsString } from '../text/index-text.ts';
import type { Term } from './plan.ts';

/**
 * Words more frequent than this count as being exactly so frequent, since counting walks their postings and alone they are beyond
 * what a query scores.
 */
export const FREQUENCY_COUNTED = 20_000;
const TERMS_KEPT = 10_000;

/** A count over all memories up to a number. */
interface Count {
  count: number;
  upTo: number;
}

/** What was counted on a connection, and of which state of the file that is the truth. */
interface Known {
  snapshot: string;
  rewrites: number;
  /** The last memory of the snapshot. */
  last: number;
  readonly memories: Count;
  readonly byMatch: LRUCache<string, Count>;
}

const knownByStore = new WeakMap<Store, Known>();

/**
 * In how many memories of the file each term stands, in the order of the terms. Counting walks a term's postings, 1 ms for 20,000, so counts are
 * kept, and only what was added since is counted. They are exact at every snapshot, or equal queries on equal data would differ: where rows
 * were replaced or deleted, all is counted anew.
 */
export function termFrequencies(store: Store, terms: readonly Term[]): number[] {
  const { byMatch, last } = knownNow(store);
  return terms.map(({ match }) => {
    const known = byMatch.get(match) ?? { count: 0, upTo: 0 };
    if (known.count < FREQUENCY_COUNTED && known.upTo < last)
      known.count += countText(store, match, { after: known.upTo, limit: FREQUENCY_COUNTED - known.count });
    known.upTo = last;
    byMatch.set(match, known);
    return known.count;
  });
}

/** Inverse document frequency of words as BM25 has it, kept above 0 for those that half of the memories hold. */
export function raritiesOf(store: Store, wanted: readonly string[]): number[] {
  const memories = memoryCount(store);
  const frequencies = termFrequencies(
    store,
    wanted.map((text) => ({ text, match: ftsString(text) })),
  );
  return frequencies.map((frequency) => Math.log(1 + Math.max(0, memories - frequency + 0.5) / (frequency + 0.5)));
}

/** How many memories the file holds, which the frequencies are measured by. */
export function memoryCount(store: Store): number {
  const { memories, last } = knownNow(store);
  if (memories.upTo < last) {
    memories.count =
      memories.upTo === 0 ? countMemories(store) : memories.count + countMemoriesAfter(store, memories.upTo);
    memories.upTo = last;
  }
  return memories.count;
}

/** @returns what still holds at this snapshot */
function knownNow(store: Store): Known {
  const snapshot = snapshotVersion(store);
  const known = knownByStore.get(store);
  if (known?.snapshot === snapshot) return known;
  const rewrites = countRewrites(store);
  const last = lastMemory(store);
  if (known?.rewrites === rewrites && known.last <= last) {
    known.snapshot = snapshot;
    known.last = last;
    return known;
  }
  const byMatch = new LRUCache<string, Count>({ max: TERMS_KEPT });
  const fresh = { snapshot, rewrites, last, memories: { count: 0, upTo: 0 }, byMatch };
  knownByStore.set(store, fresh);
  return fresh;
}
