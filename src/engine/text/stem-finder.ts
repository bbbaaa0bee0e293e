import { stemmer } from 'stemmer';
import { type QueryTerms, searchableWords } from './index-text.ts';
import { stemIn } from './language-stems.ts';
import { createWordForms, type WordForms } from './word-forms.ts';
import { isAscii } from './words.ts';

/** Finds the words of a query in texts by their stems. */
export interface StemFinder {
  /** The query's words in order; of several words with one stem, the first. */
  readonly words: readonly string[];
  /** The index in `words` of the word with the stem of `word`, which is normalised; `NOWHERE` if there is none. */
  placeOf(word: string): number;
  /**
   * Calls `visit` for each word of a text that is one of the query's words, with its index in `words` and its ordinal
   * position in the text, counted from 0. Calls `visitForm` with the index of each of the query's words that any other
   * word of the text may be another form of. Neither may call `eachIn` of any finder, since all share one buffer.
   */
  eachIn(text: string, visit: (place: number, position: number) => void, visitForm?: (place: number) => void): void;
}

/** The result of `placeOf` for a word that is none of the query's words. */
export const NOWHERE = -1;

/**
 * Makes the words of a query ready to be found in texts.
 * @param wanted normalised words, as `queryTerms` gives them
 * @param language the language by whose stems the words of texts are compared with them; English where left out
 * @param forms other forms that stand for a word, by word
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
      else for (const [position, word] of searchableWords(text).entries()) visitFound(word, position);

      function visitFound(word: string, position: number): void {
        const place = placeOf(word);
        if (place !== NOWHERE) visit(place, position);
        else if (visitForm !== undefined) (forms ??= createWordForms(distinct)).placesOf(word).forEach(visitForm);
      }
    },
  };
}

/**
 * Visits the words of an ASCII text that begin like one of the query's words; of the others no string is made. The text
 * is read as bytes, which takes half the time that `charCodeAt` does.
 */
function eachAsciiWord(text: string, beginnings: Uint8Array, visit: (word: string, position: number) => void): void {
  const bytes = text.length <= asciiBytes.length ? asciiBytes : Buffer.allocUnsafe(text.length);
  const length = bytes.write(text, 'latin1');
  for (let at = 0, position = 0; at < length; position += 1) {
    let first = 0;
    while (at < length && (first = LETTER[bytes[at]!]!) === 0) at += 1;
    if (first === 0) return;
    const start = at++;
    const second = at < length ? LETTER[bytes[at]!]! : 0;
    const third = second > 0 && at + 1 < length ? LETTER[bytes[at + 1]!]! : 0;
    while (at < length && LETTER[bytes[at]!] !== 0) at += 1;
    if (beginnings[beginningBy(first, second, third)] === 1) visit(text.slice(start, at).toLowerCase(), position);
  }
}

/** The bytes of the text that is being read. One buffer is enough, since no visitor of a word reads another text. */
const asciiBytes = Buffer.alloc(16_384);

/**
 * Maps the code of each ASCII character to the lower-case letter or the digit, and to 0 where it separates words. `y`
 * and `i` count as one letter, since porter turns many a `y` into an `i`.
 */
const LETTER = Uint8Array.from({ length: 128 }, (_, code) => {
  const letter = String.fromCharCode(code).toLowerCase().replace('y', 'i');
  return /[a-z\d]/.test(letter) ? letter.charCodeAt(0) : 0;
});

/**
 * Stems a word as the index does: by Porter's algorithm ("An algorithm for suffix stripping", 1980), which removes
 * English endings. Only ASCII words of 3 to 64 characters are stemmed; any other word comes back unchanged.
 * @param word a word in lower case
 */
export function stemOf(word: string): string {
  if (!isAscii(word) || word.length > MAX_STEMMED) return word;
  let stem = stems.get(word);
  if (stem === undefined) {
    if (stems.size >= STEMS_KEPT) stems.clear();
    const kept = copyOf(word);
    stems.set(kept, (stem = stemmer(kept)));
  }
  return stem;
}

/** Copies a string, so that a cache can keep it: a slice would keep the whole text that it was cut from in memory. */
export function copyOf(piece: string): string {
  return Buffer.from(piece, 'utf16le').toString('utf16le');
}

/** Longest word that the index stems, in characters. */
const MAX_STEMMED = 64;
/** A cache, since texts and questions repeat their words and stemming one takes a microsecond. */
const stems = new Map<string, string>();
const STEMS_KEPT = 50_000;

/** Number of hash values of a word's beginning. */
const BEGINNINGS = 2 ** 13;
const LETTERS = [...new Set(LETTER)];

/**
 * A hash of the first three letters of a word. Few words of a text begin like one of the query's; the others need no
 * further look.
 */
function beginningOf(word: string): number {
  const letter = (place: number) => (place < word.length ? letterOf(word.charCodeAt(place)) : 0);
  return beginningBy(letter(0), letter(1), letter(2));
}

/**
 * Marks the beginnings of all words that may have this stem. A stem of three letters or more gives one beginning. A
 * shorter stem gives every beginning that starts with it: `be` is the stem of `being`.
 */
function noteBeginnings(beginnings: Uint8Array, stem: string): void {
  beginnings[beginningOf(stem)] = 1;
  if (stem.length > 2 || !isAscii(stem)) return;
  const first = letterOf(stem.charCodeAt(0));
  const seconds = stem.length > 1 ? [letterOf(stem.charCodeAt(1))] : LETTERS;
  for (const second of seconds) for (const third of LETTERS) beginnings[beginningBy(first, second, third)] = 1;
}

function letterOf(code: number): number {
  return code < LETTER.length ? LETTER[code]! : code;
}

function beginningBy(first: number, second: number, third: number): number {
  return ((first * 31 + second) * 31 + third) % BEGINNINGS;
}
