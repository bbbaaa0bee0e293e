import { isSpaceless } from './index-text.ts';
import { isAscii, isCjk, tokens } from './words.ts';

/**
 * Whether we know how words of a question change: English is stemmed, and scripts without spaces are compared by pairs of characters.
 * In any other language a text may answer a question in other forms of its words, which are only guessed.
 */
export function knowsWordForms(question: string): boolean {
  const found = tokens(question);
  if (found.some((token) => isCjk(token) || isSpaceless(token))) return true;
  return (
    found.some((token) => ENGLISH.has(token)) && found.filter((token) => !isAscii(token)).length * 4 < found.length
  );
}

/** Words of grammar that nearly every English question has one of, and that are no words of other languages. */
const ENGLISH = new Set(
  `the of what who whom whose when where which why how does did is are were have with for from that this my your it to and
   do can could would should`.split(/\s+/),
);
