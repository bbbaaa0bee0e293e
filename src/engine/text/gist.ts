import { sentences } from './sentences.ts';
import { STOP_WORDS, words } from './words.ts';

/** A gist has at most so many UTF-16 code units. */
export const MAX_GIST_LENGTH = 200;
/** A gist is looked for at the beginning of a text only. */
const SEARCHED_LENGTH = 4_000;
const SEARCHED_SENTENCES = 8;
const INFORMATIVE_WORDS = 3;

/**
 * The first sentence that says something, on one line and without Markdown marks, cut at a word's edge. Greetings, headings
 * of a word or two and a repetition of the title are passed over if something better follows.
 * @returns at most `MAX_GIST_LENGTH` code units; '' for a blank text
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

/** Cuts between words, or between characters where one word fills the line; never inside a surrogate pair. */
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
