import { isCjk, isSpaceless } from './words.ts';

/**
 * Guesses which words of a text are inflected forms of a query's words, from equal beginnings. It serves any language
 * that writes spaces between words, but matters most where there is no stemmer.
 */
export interface WordForms {
  /**
   * Returns the query's words of which `word` (a normalised word) is probably another form, as indexes in the list that
   * `createWordForms` got; a query's word that is equal to `word` may be among them. Empty if there are none.
   */
  placesOf(word: string): readonly number[];
}

/** Two words count as forms of one word only if at least this number of their first letters are equal. */
const MIN_COMMON = 4;
/**
 * The limit that replaces `MIN_COMMON` for Arabic and Hebrew, whose written words are short, since they have few
 * vowels.
 */
const MIN_COMMON_WITHOUT_VOWELS = 3;
/**
 * Two words count as forms of one word only if their common beginning is at least this share of the longer word's
 * length.
 */
const MIN_COMMON_SHARE = 0.5;

interface Wanted {
  readonly place: number;
  readonly word: string;
}

/**
 * Prepares the words of a query for guessing their other forms. Two words count as forms of one word if their common
 * beginning is at least half of the longer word and has at least four letters, or three in Arabic and Hebrew: город and
 * города, kitap and kitabı, كتاب and الكتاب. Some such pairs are not related (Haus and Hausse), so a form should count
 * less than the word itself.
 * @param wanted normalised words. No other forms are found for short words, words with digits and words of scripts
 *   without spaces.
 */
export function createWordForms(wanted: readonly string[]): WordForms {
  const byBeginning = new Map<string, Wanted[]>();
  for (const [place, whole] of wanted.entries()) {
    const word = withoutArticle(whole);
    if (isCjk(word) || isSpaceless(word) || word.length < minCommonOf(word) || HAS_DIGIT.test(word)) continue;
    const beginning = beginningOf(word);
    const alike = byBeginning.get(beginning);
    if (alike === undefined) byBeginning.set(beginning, [{ place, word }]);
    else alike.push({ place, word });
  }
  return {
    placesOf(whole) {
      if (byBeginning.size === 0) return NONE;
      const word = withoutArticle(whole);
      const alike = byBeginning.get(beginningOf(word));
      return alike === undefined ? NONE : alike.filter((other) => areForms(other.word, word)).map(({ place }) => place);
    },
  };
}

const NONE: readonly number[] = [];

function beginningOf(word: string): string {
  return word.slice(0, MIN_COMMON_WITHOUT_VOWELS);
}

function areForms(wanted: string, word: string): boolean {
  const length = Math.min(wanted.length, word.length);
  let common = 0;
  while (common < length && wanted.charCodeAt(common) === word.charCodeAt(common)) common += 1;
  return common >= minCommonOf(wanted) && common >= MIN_COMMON_SHARE * Math.max(wanted.length, word.length);
}

function minCommonOf(word: string): number {
  return isWithoutVowels(word) ? MIN_COMMON_WITHOUT_VOWELS : MIN_COMMON;
}

/**
 * Removes the article, the word for “and” and short prepositions from an Arabic or Hebrew word, which are written as
 * one word with the noun. The word is returned unchanged if fewer than three letters would remain, and in any other
 * script.
 */
function withoutArticle(word: string): string {
  if (!isWithoutVowels(word)) return word;
  const bare = word.replace(ARTICLE, '');
  return bare.length >= MIN_COMMON_WITHOUT_VOWELS ? bare : word;
}

function isWithoutVowels(word: string): boolean {
  return word.charCodeAt(0) >= 0x0590 && WITHOUT_VOWELS.test(word);
}

const WITHOUT_VOWELS = /^[\p{Script=Arabic}\p{Script=Hebrew}]/u;
const ARTICLE = /^(?:[وف]?(?:[بك]?ال|لل)|[וש]?[הבלכמ])/u;
const HAS_DIGIT = /\p{N}/u;
