import { sentences } from './sentences.ts';
import { words } from './words.ts';
import { STOP_WORDS } from './stop-words.ts';

/** Greatest length of a gist (one sentence that stands for a text), in UTF-16 code units. */
export const MAX_GIST_LENGTH = 200;
/**
 * Length of the beginning of a text that is searched for its gist, in UTF-16 code units. `SEARCHED_SENTENCES` bounds
 * the number of sentences.
 */
const SEARCHED_LENGTH = 4_000;
const SEARCHED_SENTENCES = 8;
/** Number of distinct words, without stop words and greetings, from which a sentence counts as informative. */
const INFORMATIVE_WORDS = 3;

/**
 * Returns the first informative sentence of a text, on one line, without the Markdown mark at its start. Greetings,
 * headings of a word or two and a repetition of the title are skipped, unless the first 8 sentences have nothing else.
 * A sentence of more than 200 (`MAX_GIST_LENGTH`) UTF-16 code units is cut, between words where possible, and ends with
 * `…`.
 * @returns '' for a blank text
 */
export function gistOf(content: string, title = ''): string {
  const candidates = sentences(content.slice(0, SEARCHED_LENGTH))
    .slice(0, SEARCHED_SENTENCES)
    .map((sentence) => plainLine(sentence.text.slice(0, MAX_GIST_LENGTH * 4)))
    .filter((line) => line !== '');
  const titleLine = plainLine(title.slice(0, MAX_GIST_LENGTH * 4)).toLowerCase();
  const gist =
    candidates.find((line) => isInformative(line) && line.toLowerCase() !== titleLine) ?? candidates[0] ?? '';
  return cutAtWord(gist, MAX_GIST_LENGTH);
}

function isInformative(line: string): boolean {
  const content = words(line).filter((word) => !STOP_WORDS.has(word) && !GREETINGS.has(word));
  return new Set(content).size >= INFORMATIVE_WORDS;
}

function plainLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim().replace(LINE_MARK, '').trim();
}

/**
 * Shortens a text to at most `length` UTF-16 code units, the ellipsis included. A longer text is cut after the last
 * word that fits, or inside a word if the cut after a word would leave less than half. A text that fits is returned
 * unchanged. A surrogate pair is never split.
 */
function cutAtWord(text: string, length: number): string {
  if (text.length <= length) return text;
  const room = text.slice(0, length);
  const blank = room.lastIndexOf(' ');
  const cut = blank > length / 2 ? blank : length - 1;
  return `${text.slice(0, cut).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

const LINE_MARK = /^(?:#{1,6}|[-*+>•]|\d{1,3}[.)])\s/;
const GREETINGS: ReadonlySet<string> = new Set(
  'hi hello hey dear thanks thank ok okay yes yeah sure great good morning afternoon evening everyone all'.split(' '),
);
