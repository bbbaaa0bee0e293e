import { isSpaceless } from './index-text.ts';
import { isCjk } from './words.ts';

/** Says which of a query's words a word of a text is probably another form of, in languages whose endings nobody has told us. */
export interface WordForms {
  /** The places, in the list of wanted words, of those that the word is like; empty for none. */
  placesOf(word: string): readonly number[];
}

/** Letters that two forms of a word begin with at least; Arabic and Hebrew write few vowels, so that their words are short. */
const MIN_COMMON = 4;
const MIN_COMMON_WITHOUT_VOWELS = 3;
/** The share of the longer word that both begin with at least. */
const MIN_COMMON_SHARE = 0.5;

interface Wanted {
  readonly place: number;
  readonly word: string;
}

/**
 * Two words are taken for forms of one when they begin alike for at least half of the longer one: город and города, kitap and kitabı,
 * كتاب and الكتاب. Some such pairs are none (Haus and Hausse), so that a form says less than the word itself.
 * @param wanted normalised words; short ones, those with digits and those of scripts without spaces have no other forms here
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

/** Arabic and Hebrew write the article, `and` and short prepositions as one word with the noun. */
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
