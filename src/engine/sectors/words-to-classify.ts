/**
 * The words of a text in the form that both classifiers of sectors use: in order, with the punctuation marks between
 * them, without accents and as written, and with classes such as `<feeling>` or `<past>`.
 */
import { isAscii, normalise } from '../text/words.ts';
import { WORD_CLASSES } from './patterns.ts';

/**
 * The words of a text, for the classifiers of sectors. For a text of more than 4,000 code units, these are the words of
 * its first and its last 2,000.
 */
export interface SectorWords {
  /** Words in lower case without accents, and the marks `.`, `!`, `?`, `,`, `:` and line feed, in order. */
  readonly words: readonly string[];
  /**
   * The words in lower case with their accents. It is the same list as `words` if no word has an accent, or if the two
   * lists cannot be matched one to one.
   */
  readonly written: readonly string[];
  /** The class of each word, such as `<past>`, in the order of `words`; undefined for a word without a class. */
  readonly classes: readonly (string | undefined)[];
  /** The folded text from which `words` was taken. */
  readonly folded: string;
  /** Whether the folded text is ASCII. */
  readonly isAscii: boolean;
}

/**
 * Number of UTF-16 code units that are examined at the beginning of a long text; the same number is examined at its
 * end.
 */
const EXAMINED_LENGTH = 2_000;

/**
 * Finds the words of a text and their classes. Of a text of more than 4,000 code units, the first and the last 2,000
 * are examined.
 */
export function sectorWordsOf(text: string): SectorWords {
  const examined =
    text.length <= 2 * EXAMINED_LENGTH ? text : `${text.slice(0, EXAMINED_LENGTH)}\n${text.slice(-EXAMINED_LENGTH)}`;
  const normalised = normalise(examined);
  const isPlain = isAscii(normalised);
  const folded = isPlain ? normalised : normalised.replaceAll('’', "'");
  const ascii = isPlain || isAscii(folded);
  const words = folded.match(ascii ? ASCII_WORD : WORD) ?? [];
  const accented = isPlain ? words : (examined.toLowerCase().normalize('NFC').replaceAll('’', "'").match(WORD) ?? []);
  const written = accented.length === words.length ? accented : words;
  const classes = words.map((word, index) => classOf(word, words[index - 1]));
  return { words, written, classes, folded, isAscii: ascii };
}

function classOf(word: string, previous: string | undefined): string | undefined {
  const first = word.charCodeAt(0);
  if (first >= 48 && first <= 57) return numberClass(word);
  const listed = CLASS_OF_WORD.get(word);
  const isPast =
    listed === '<past>' || (listed === undefined && word.length > 4 && word.endsWith('ed') && !word.includes('-'));
  // A participle is no event: "is stored", "to be used", "the shared drive".
  if (isPast) return previous !== undefined && NO_EVENT_AFTER.has(previous) ? undefined : '<past>';
  if (listed === undefined && word.length > 4 && word.endsWith('ing')) return '<ing>';
  return listed;
}

function numberClass(word: string): string {
  if (/^(?:19|20)\d\d$/.test(word)) return '<year>';
  if (/^\d{1,2}:\d\d$/.test(word)) return '<clock>';
  return /^\d{4}-\d\d-\d\d/.test(word) ? '<date>' : '<number>';
}

const CLASS_OF_WORD: ReadonlyMap<string, string> = new Map(
  Object.entries(WORD_CLASSES).flatMap(([name, list]) =>
    list
      .trim()
      .split(/\s+/)
      .map((word): [string, string] => [word, `<${name}>`]),
  ),
);
const NO_EVENT_AFTER: ReadonlySet<string> = new Set(
  'is are be been being get gets to am must can the a an this my your our their its no'.split(' '),
);
const ASCII_WORD = /[a-z]+(?:['-][a-z]+)*|\d[\d:-]*|[.!?,:\n]/g;
const WORD = /\p{L}+(?:['-]\p{L}+)*|\d[\d:-]*|[.!?,:\n]/gu;
