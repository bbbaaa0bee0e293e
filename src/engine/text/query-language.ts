import { isAscii, isCjk, isSpaceless, termsIn } from './words.ts';

/**
 * How inflected forms of a question's words are recognised in texts: `stemmed`: by equal stems; `pairs`: by pairs of
 * characters; `guessed`: by equal beginnings, and in the languages of `language-stems.ts` also by equal stems.
 */
export type WordFormsKnown = 'stemmed' | 'pairs' | 'guessed';

/**
 * Returns how inflected forms of a question's words are recognised: `pairs` for a question with any word in a script
 * without spaces, `stemmed` for English, and `guessed` for any other language.
 */
export function wordFormsOf(question: string): WordFormsKnown {
  const terms = termsIn(question);
  if (terms.some((term) => isCjk(term) || isSpaceless(term))) return 'pairs';
  return areEnglish(terms) ? 'stemmed' : 'guessed';
}

/**
 * Tells whether a question is in English: it has a common English word of grammar, and fewer than a quarter of its
 * words are not ASCII. False for a few keywords without such a word, even if they are English.
 */
export function isEnglish(question: string): boolean {
  return areEnglish(termsIn(question));
}

function areEnglish(terms: readonly string[]): boolean {
  return terms.some((term) => ENGLISH.has(term)) && terms.filter((term) => !isAscii(term)).length * 4 < terms.length;
}

/**
 * Words of grammar, one of which nearly every English question has. Few of them are also words of other languages, such
 * as `is` and `of` in Dutch.
 */
const ENGLISH = new Set(
  `the of what who whom whose when where which why how does did is are were have with for from that this my your
   it to and do can could would should`.split(/\s+/),
);
