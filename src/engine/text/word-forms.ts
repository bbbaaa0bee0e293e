import { isSpaceless } from './index-text.ts';
import { isCjk } from './words.ts';

/** Guesses which words of a text are other forms of a query's words, in languages without a stemmer here. */
export interface WordForms {
  /**
   * Lists the indexes, in the wanted words, of the words that `word`, a normalised word, is probably another form of;
   * empty if there are none.
   */
  placesOf(word: string): readonly number[];
}

/** Least number of letters in the common beginning of two forms. */
const MIN_COMMON = 4;
/**
 * Least number of letters in the common beginning of two forms in Arabic and Hebrew, whose words are short since they
 * write few vowels.
 */
const MIN_COMMON_WITHOUT_VOWELS = 3;
/** Least length of the common beginning of two forms, as a share of the longer one. */
const MIN_COMMON_SHARE = 0.5;

interface Wanted {
  readonly place: number;
  readonly word: string;
}

/**
 * Prepares the words of a query for guessing their other forms. Two words count as forms of one word if their common
 * beginning is at least half of the longer one and has at least four letters, or three in Arabic and Hebrew: город and
 * города, kitap and kitabı, كتاب and الكتاب. Some such pairs are not related (Haus and Hausse), so a form counts less
 * than the word itself.
 * @param wanted normalised words; those shorter than that beginning, those with digits and those of scripts without
 *    spaces get no other forms
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
 * Removes the article, `and` and short prepositions, which Arabic and Hebrew write as one word with the noun. A word is
 * returned unchanged if fewer than three letters would remain, and in any other script.
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
