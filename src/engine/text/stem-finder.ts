import { stemmer } from 'stemmer';
import { type QueryTerms, searchableWords } from './index-text.ts';
import { stemIn } from './language-stems.ts';
import { createWordForms, type WordForms } from './word-forms.ts';
import { isAscii } from './words.ts';

/** Finds the words of a query in texts, by comparing stems. */
export interface StemFinder {
  /** The query's words in order; of several words with one stem, only the first. */
  readonly words: readonly string[];
  /**
   * Returns the index in `words` of the word that has the stem of `word`, a normalised word, or one of whose given
   * forms has it; `NOWHERE` (-1) if there is none.
   */
  placeOf(word: string): number;
  /**
   * Calls `visit` for each word of a text that is one of the query's words, in the order of the text, with the word's
   * index in `words`. For any other word of the text that may be another form of some of the query's words, it calls
   * `visitForm` with the index of each of these. Neither callback may call `eachIn` of any finder, since all finders
   * share one buffer.
   */
  eachIn(text: string, visit: (place: number) => void, visitForm?: (place: number) => void): void;
}

/** The result of `placeOf` for a word that is not one of the query's words. */
export const NOWHERE = -1;

/**
 * Makes a finder for the words of a query.
 * @param wanted normalised words of `queryTerms`
 * @param language language by whose stems words are compared; English if left out
 * @param forms for a word of `wanted`, other forms that count as this word
 */
export function createStemFinder(
  wanted: Iterable<string>,
  { language, forms: otherForms }: Pick<QueryTerms, 'language' | 'forms'> = {},
): StemFinder {
  const stemmed = language === undefined ? stemOf : (word: string) => stemIn(language, word);
  const byStem = new Map<string, number>();
  const distinct: string[] = [];
  const beginnings = new Uint8Array(BEGINNINGS);
  for (const word of wanted) {
    const stem = stemmed(word);
    if (byStem.has(stem)) continue;
    byStem.set(stem, distinct.push(word) - 1);
    noteBeginnings(beginnings, stem);
  }
  for (const [word, others] of otherForms ?? []) {
    for (const stem of others.map(stemmed)) {
      if (byStem.has(stem)) continue;
      byStem.set(stem, byStem.get(stemmed(word))!);
      noteBeginnings(beginnings, stem);
    }
  }
  const places = new Map<string, number>();
  let forms: WordForms | undefined;
  const placeOf = (word: string) => {
    if (beginnings[beginningOf(word)] === 0) return NOWHERE;
    let place = places.get(word);
    if (place === undefined) places.set(word, (place = byStem.get(stemmed(word)) ?? NOWHERE));
    return place;
  };
  return {
    words: distinct,
    placeOf,
    eachIn(text, visit, visitForm) {
      if (isAscii(text)) eachAsciiWord(text, beginnings, visitFound);
      else searchableWords(text).forEach(visitFound);

      function visitFound(word: string): void {
        const place = placeOf(word);
        if (place !== NOWHERE) visit(place);
        else if (visitForm !== undefined) (forms ??= createWordForms(distinct)).placesOf(word).forEach(visitForm);
      }
    },
  };
}

/**
 * Calls `visit` for the words of an ASCII text whose first letters are like those of one of the query's words. No
 * string is created for other words. The text is read as bytes, which takes half the time of `charCodeAt`.
 * @param beginnings for each hash of first letters (`beginningOf`), 1 if a word of the query may begin so, else 0
 */
function eachAsciiWord(text: string, beginnings: Uint8Array, visit: (word: string) => void): void {
  const bytes = text.length <= asciiBytes.length ? asciiBytes : Buffer.allocUnsafe(text.length);
  const length = bytes.write(text, 'latin1');
  let at = 0;
  while (at < length) {
    let first = 0;
    while (at < length && (first = LETTER[bytes[at]!]!) === 0) at += 1;
    if (first === 0) return;
    const start = at++;
    const second = at < length ? LETTER[bytes[at]!]! : 0;
    const third = second > 0 && at + 1 < length ? LETTER[bytes[at + 1]!]! : 0;
    while (at < length && LETTER[bytes[at]!] !== 0) at += 1;
    if (beginnings[beginningBy(first, second, third)] === 1) visit(text.slice(start, at).toLowerCase());
  }
}

/**
 * Buffer for the bytes of the text that is being searched. One buffer suffices for all finders, since no callback
 * searches another text.
 */
const asciiBytes = Buffer.alloc(16_384);

/**
 * Maps the code of each ASCII character to the code of its lower-case letter or digit, and to 0 if the character
 * separates words. `y` and `i` count as one letter, since the Porter stemmer often turns a `y` into an `i`.
 */
const LETTER = Uint8Array.from({ length: 128 }, (_, code) => {
  const letter = String.fromCharCode(code).toLowerCase().replace('y', 'i');
  return /[a-z\d]/.test(letter) ? letter.charCodeAt(0) : 0;
});

/**
 * Stems a word as the index does, by Porter's algorithm ("An algorithm for suffix stripping", 1980), which removes
 * English endings. Only ASCII words of 3 to 64 characters are stemmed; any other word is returned unchanged.
 * @param word a word in lower case
 */
export function stemOf(word: string): string {
  if (!isAscii(word) || word.length > MAX_STEMMED) return word;
  let stem = stems.get(word);
  if (stem === undefined) {
    if (stems.size >= MAX_CACHED_STEMS) stems.clear();
    const copied = copyOf(word);
    stems.set(copied, (stem = stemmer(copied)));
  }
  return stem;
}

/** Copies a string, so that a cache can keep it: a slice would keep the whole text from which it was cut in memory. */
export function copyOf(piece: string): string {
  return Buffer.from(piece, 'utf16le').toString('utf16le');
}

/** Greatest length of a word that the index stems, in characters. */
const MAX_STEMMED = 64;
/** Cache of stems by word, as texts and questions repeat their words and stemming one takes a microsecond. */
const stems = new Map<string, string>();
/** Number of stems at which the cache is emptied. */
const MAX_CACHED_STEMS = 50_000;

/** Number of different hash values for the first three letters of a word (see `beginningOf`). */
const BEGINNINGS = 2 ** 13;
const LETTERS = [...new Set(LETTER)];

/**
 * Returns a hash of the first three letters of a word, 0..`BEGINNINGS` - 1. Few words of a text begin like one of the
 * query's words, so the other words need not be stemmed.
 */
function beginningOf(word: string): number {
  const letter = (place: number) => (place < word.length ? letterOf(word.charCodeAt(place)) : 0);
  return beginningBy(letter(0), letter(1), letter(2));
}

/**
 * Sets the flag in `beginnings` for the beginning of every word that may have this stem. A stem of three letters or
 * more begins like its words, except that the Dutch stemmer makes one vowel of two (`jar` is the stem of `jaar`). A
 * shorter stem sets a flag for every beginning that starts with it, as `be` is the stem of `being`.
 */
function noteBeginnings(beginnings: Uint8Array, stem: string): void {
  beginnings[beginningOf(stem)] = 1;
  if (!isAscii(stem)) return;
  const first = letterOf(stem.charCodeAt(0));
  if (stem.length > 2) {
    const second = letterOf(stem.charCodeAt(1));
    beginnings[beginningBy(first, second, second)] = 1;
    return;
  }
  const seconds = stem.length > 1 ? [letterOf(stem.charCodeAt(1))] : LETTERS;
  for (const second of seconds) for (const third of LETTERS) beginnings[beginningBy(first, second, third)] = 1;
}

function letterOf(code: number): number {
  return code < LETTER.length ? LETTER[code]! : code;
}

function beginningBy(first: number, second: number, third: number): number {
  return ((first * 31 + second) * 31 + third) % BEGINNINGS;
}
