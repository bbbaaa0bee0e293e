import { stemmer } from 'stemmer';
import { isAscii } from './words.ts';

/** Says of the words of a text which of a query's words they are, by their stems. */
export interface StemFinder {
  /** The query's words, one of each stem, in order. */
  readonly words: readonly string[];
  /** The place of the word in `words`, or `NOWHERE`. */
  placeOf(word: string): number;
}

export const NOWHERE = -1;

/** @param wanted normalised words, as `words` gives them */
export function createStemFinder(wanted: Iterable<string>): StemFinder {
  const byStem = new Map<string, number>();
  const distinct: string[] = [];
  const beginnings = new Uint8Array(BEGINNINGS);
  for (const word of wanted) {
    const stem = stemOf(word);
    if (byStem.has(stem)) continue;
    byStem.set(stem, distinct.push(word) - 1);
    beginnings[beginningOf(word)] = 1;
  }
  const known = new Map<string, number>();
  return {
    words: distinct,
    placeOf(word) {
      if (beginnings[beginningOf(word)] === 0) return NOWHERE;
      let place = known.get(word);
      if (place === undefined) known.set(word, (place = byStem.get(stemOf(word)) ?? NOWHERE));
      return place;
    },
  };
}

/** As the index stems: porter, from three letters to 64, English only by its endings. */
export function stemOf(word: string): string {
  return isAscii(word) && word.length <= STEMMED_MOST ? stemmer(word) : word;
}

const STEMMED_MOST = 64;

const BEGINNINGS = 1024;

/** A hash of the first two letters, which stemming never changes: nine words of ten begin otherwise and need no look. */
function beginningOf(word: string): number {
  return (word.charCodeAt(0) * 31 + (word.length > 1 ? word.charCodeAt(1) : 0)) % BEGINNINGS;
}
