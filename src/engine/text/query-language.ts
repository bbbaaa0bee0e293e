import { isSpaceless } from './index-text.ts';
import { isAscii, isCjk, termsIn } from './words.ts';

/** How other forms of a question's words are known in texts. */
export type WordFormsKnown = 'stemmed' | 'pairs' | 'guessed';

/**
 * How other forms of a question's words are known: English is stemmed, and scripts without spaces are compared by pairs
 * of characters. In any other language a text may answer in other forms of the question's words, which are only
 * guessed.
 */
export function wordFormsOf(question: string): WordFormsKnown {
  const terms = termsIn(question);
  if (terms.some((term) => isCjk(term) || isSpaceless(term))) return 'pairs';
  return areEnglish(terms) ? 'stemmed' : 'guessed';
}

/**
 * Whether a question is in English: it has a common English word of grammar, and fewer than a quarter of its words are
 * not ASCII. A few keywords alone are not known to be English.
 */
export function isEnglish(question: string): boolean {
  return areEnglish(termsIn(question));
}

function areEnglish(terms: readonly string[]): boolean {
  return terms.some((term) => ENGLISH.has(term)) && terms.filter((term) => !isAscii(term)).length * 4 < terms.length;
}

/**
 * Words of grammar of which nearly every English question has one. Most are no words of other languages; a few are,
 * such as `is` and `of` in Dutch.
 */
const ENGLISH = new Set(
  `the of what who whom whose when where which why how does did is are were have with for from that this my your
   it to and do can could would should`.split(/\s+/),
);
