/**
 * Words of the word index that a thread keeps in memory beyond the snapshot in which it read them, as most commits of a
 * tenant change no words: a query reinforces what it finds. They are valid as long as the state of the index is the one
 * in which they were read.
 */

import { LRUCache } from 'lru-cache';
import type { Doclist } from '../word-index/doclists.ts';

/** The number of a term's rows, and the size of its blocks in bytes. */
export interface Facts {
  readonly rows: number;
  readonly bytes: number;
}

/** Facts of a term that is in no row. */
export const NOWHERE: Facts = { rows: 0, bytes: 0 };

interface KeptWord {
  readonly facts: Facts;
  /** Doclists with the term's rows; undefined if they were not read. */
  readonly lists: readonly Doclist[] | undefined;
}

/** Cache of the words of one tenant's index, for the state that `enter` named last. */
export interface KeptWords {
  /**
   * Drops the words if the index is in another state than at the last call. Call it for each snapshot, before the other
   * methods.
   * @param state state of the index, which each change of words changes
   */
  enter(state: string): void;
  find(key: string): KeptWord | undefined;
  keep(key: string, word: KeptWord): void;
}

/** Greatest size of all words that a thread keeps, for all tenants together, in bytes. */
const MOST_BYTES = 16_777_216;
/** What a kept word takes at most, beside its rows, in bytes. */
const WORD_BYTES = 400;

/** The words of all tenants of this thread, each under the number of a state of its tenant's index. */
const words = new LRUCache<string, KeptWord>({
  maxSize: MOST_BYTES,
  sizeCalculation: ({ facts, lists }) => WORD_BYTES + (lists === undefined ? 0 : facts.bytes),
});
let statesSoFar = 0;

/** Makes what keeps the words of one tenant. */
export function createKeptWords(): KeptWords {
  let [present, stateNo] = ['', 0];
  return {
    enter(state) {
      // The words of the state before are never found again, and are dropped as those that were not used for longest.
      if (state !== present) [present, stateNo] = [state, (statesSoFar += 1)];
    },
    find: (key) => words.get(`${stateNo} ${key}`),
    keep: (key, word) => void words.set(`${stateNo} ${key}`, word),
  };
}
