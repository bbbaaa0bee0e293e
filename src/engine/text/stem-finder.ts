import { stemmer } from 'stemmer';
import { searchableWords } from './index-text.ts';
import { createWordForms, type WordForms } from './word-forms.ts';
import { isAscii } from './words.ts';

/** Says of the words of a text which of a query's words they are, by their stems. */
export interface StemFinder {
  /** The query's words, one of each stem, in order. */
  readonly words: readonly string[];
  /** The place of the word in `words`, or `NOWHERE`. */
  placeOf(word: string): number;
  /**
   * Calls `visit` for each word of a text that is one of the query's words, with its place in `words` and its position in the text,
   * counted from 0; calls `visitForm` for each that is only like one, as another form of it may be.
   */
  eachIn(text: string, visit: (place: number, position: number) => void, visitForm?: (place: number) => void): void;
}

export const NOWHERE = -1;

/** @param wanted normalised words, as `queryTerms` gives them */
export function createStemFinder(wanted: Iterable<string>): StemFinder {
  const byStem = new Map<string, number>();
  const distinct: string[] = [];
  const beginnings = new Uint8Array(BEGINNINGS);
  for (const word of wanted) {
    const stem = stemOf(word);
    if (byStem.has(stem)) continue;
    byStem.set(stem, distinct.push(word) - 1);
    noteBeginnings(beginnings, stem);
  }
  const known = new Map<string, number>();
  let forms: WordForms | undefined;
  const placeOf = (word: string) => {
    if (beginnings[beginningOf(word)] === 0) return NOWHERE;
    let place = known.get(word);
    if (place === undefined) known.set(word, (place = byStem.get(stemOf(word)) ?? NOWHERE));
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
 * What `words` gives, but only those that begin as one of the query's do: of the others no string is made. Read as bytes, which takes half the
 * time that `charCodeAt` does.
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

/** Of one text at a time: nothing that is told of a word reads another text. */
const asciiBytes = Buffer.alloc(16_384);

/** Of each ASCII letter the small one, of a digit itself, 0 of all that separates words. Porter makes an `i` of many a `y`: they count as one. */
const LETTER = Uint8Array.from({ length: 128 }, (_, code) => {
  const letter = String.fromCharCode(code).toLowerCase().replace('y', 'i');
  return /[a-z\d]/.test(letter) ? letter.charCodeAt(0) : 0;
});

/** As the index stems: porter, from three letters to 64, English only by its endings. */
export function stemOf(word: string): string {
  if (!isAscii(word) || word.length > STEMMED_MOST) return word;
  let stem = stems.get(word);
  if (stem === undefined) {
    if (stems.size >= STEMS_KEPT) stems.clear();
    const kept = copyOf(word);
    stems.set(kept, (stem = stemmer(kept)));
  }
  return stem;
}

/** The same characters. A piece of a text keeps all of the text in memory, and who keeps the piece must not. */
export function copyOf(piece: string): string {
  return Buffer.from(piece, 'utf16le').toString('utf16le');
}

const STEMMED_MOST = 64;
/** Texts and questions are made of the same words again and again, and a stem takes a microsecond. */
const stems = new Map<string, string>();
const STEMS_KEPT = 50_000;

const BEGINNINGS = 2 ** 13;
const LETTERS = [...new Set(LETTER)];

/** A hash of the first three letters: few words of a text begin like one of the query's, and the others need no look. */
function beginningOf(word: string): number {
  const letter = (place: number) => (place < word.length ? letterOf(word.charCodeAt(place)) : 0);
  return beginningBy(letter(0), letter(1), letter(2));
}

/** Words of a stem of three letters or more begin with these; those of a shorter one with it: `be` is the stem of `being`. */
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
