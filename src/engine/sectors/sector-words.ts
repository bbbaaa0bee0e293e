/**
 * The words of a text as both classifiers of sectors read them: folded, in order, with the marks between them and with
 * classes such as `<feeling>` or `<past>`.
 */
import { isAscii, normalise } from '../text/words.ts';
import { WORD_CLASSES } from './patterns.ts';

/** A text that was taken apart. Of a long text it has the beginning and the end. */
export interface SectorWords {
  /** Words in lower case without accents, and the marks `.`, `!`, `?`, `,`, `:` and line feed, in order. */
  readonly words: readonly string[];
  /** Words as they are written, with their accents; the same list as `words` where no word has any. */
  readonly written: readonly string[];
  /** The class of each of them, such as `<past>`; undefined for none. */
  readonly classes: readonly (string | undefined)[];
  /** The folded text that they were taken from. */
  readonly folded: string;
  /** Whether the text is ASCII after folding. */
  readonly isAscii: boolean;
}

/** Length of the beginning of a text, and of its end, that are examined, in UTF-16 code units. */
const EXAMINED_LENGTH = 2_000;

/** Takes a text apart. Of a long text the first and the last 2,000 code units are examined. */
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
