import { stemOf } from './stem-finder.ts';
import { STOP_WORDS } from './stop-words.ts';
import { isCjk, words } from './words.ts';

/** The words of a text, counted by stem and in total. */
export interface WordCounts {
  /** Number of occurrences by stem, without stop words. */
  readonly counts: ReadonlyMap<string, number>;
  /** Number of words, stop words included; approximate for CJK. */
  readonly length: number;
}

/**
 * What an element of `words` that is CJK adds to the number of words. A CJK word has about two characters, for which
 * `words` gives about four elements: the characters and the pairs of neighbours.
 */
const CJK_PIECE = 0.25;

/** Counts the words of a text by their English stems. */
export function countWords(text: string): WordCounts {
  const counts = new Map<string, number>();
  let length = 0;
  for (const word of words(text)) {
    length += isCjk(word) ? CJK_PIECE : 1;
    if (STOP_WORDS.has(word)) continue;
    const stem = stemOf(word);
    counts.set(stem, (counts.get(stem) ?? 0) + 1);
  }
  return { counts, length };
}
