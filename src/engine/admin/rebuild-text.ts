import { listSeqsAfter } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { clearText, reindexText } from '../store/word-index/memory-text.ts';

const SLICE = 200;

/**
 * Makes the full-text rows again from the memories, in short writes. Broken off, it leaves words that no query finds until it is
 * run again.
 * @param onProgress told after each slice how many memories are done
 * @returns how many there were
 */
export function rebuildText(store: Store, onProgress: (done: number) => void = () => {}): number {
  store.write(() => clearText(store));
  let done = 0;
  for (let after = 0; ;) {
    const seqs = seqsAfter(store, after);
    const last = seqs.at(-1);
    if (last === undefined) return done;
    store.write(() => reindexText(store, seqs));
    onProgress((done += seqs.length));
    after = last;
  }
}

/** The next memories to work on, in order of number. */
export function seqsAfter(store: Store, after: number): number[] {
  return listSeqsAfter(store, after, SLICE);
}
