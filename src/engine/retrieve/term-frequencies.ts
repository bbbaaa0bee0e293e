import type { Store } from '../store/open-store.ts';
import { countMemories, countText, snapshotVersion } from '../store/search.ts';
import type { Term } from './plan.ts';

/**
 * Words more frequent than this count as being exactly so frequent, since counting walks their postings and alone they are beyond
 * what a query scores.
 */
export const FREQUENCY_COUNTED = 20_000;
const TERMS_KEPT = 10_000;

interface Known {
  snapshot: string;
  memories: number | undefined;
  readonly byMatch: Map<string, number>;
}

const knownByStore = new WeakMap<Store, Known>();

/**
 * In how many memories of the file each term stands, in the order of the terms. Counting walks a term's postings, so counts are kept
 * for as long as nothing is committed; keeping them longer would let equal queries on equal data differ.
 */
export function termFrequencies(store: Store, terms: readonly Term[]): number[] {
  const known = knownAt(store, snapshotVersion(store));
  return terms.map(({ match }) => {
    let frequency = known.byMatch.get(match);
    if (frequency === undefined) {
      frequency = countText(store, match, FREQUENCY_COUNTED);
      if (known.byMatch.size < TERMS_KEPT) known.byMatch.set(match, frequency);
    }
    return frequency;
  });
}

/** How many memories the file holds, which the frequencies are measured by; kept as long, since it sums over every user. */
export function memoryCount(store: Store): number {
  const known = knownAt(store, snapshotVersion(store));
  return (known.memories ??= countMemories(store));
}

function knownAt(store: Store, snapshot: string): Known {
  let known = knownByStore.get(store);
  if (known === undefined) knownByStore.set(store, (known = { snapshot, memories: undefined, byMatch: new Map() }));
  if (known.snapshot !== snapshot) {
    known.snapshot = snapshot;
    known.memories = undefined;
    known.byMatch.clear();
  }
  return known;
}
