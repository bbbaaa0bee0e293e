import { boundariesOf } from './boundaries.ts';
import type { TextKind } from './parsed-document.ts';

/** Greatest length of a heading's text, in UTF-16 code units; a longer one is cut. */
const MAX_HEADING_LENGTH = 200;
/** Greatest number of headings in an outline. */
const MAX_OUTLINE_LENGTH = 200;
/** Number of headings without words after which an outline ends: only a file that is made to hold us up has more. */
const MAX_BLANK = 10_000;

/** A heading in a document's outline. */
export interface Heading {
  /** Level from 1 to 6. */
  readonly level: number;
  /** Words of the heading on one line, without Markdown's marks; cut to 200 UTF-16 code units, never ''. */
  readonly text: string;
}

/**
 * Returns a document's headings in order, at most 200. If there are more, outer levels have priority. Of the first
 * level that does not fit as a whole the first headings are kept, so headings of that level are missing towards the
 * document's end, and deeper levels altogether. Headings without words are left out. Only Markdown has headings: for
 * another kind of text the outline is empty.
 */
export function outlineOf(text: string, kind: TextKind): Heading[] {
  if (kind !== 'markdown') return [];
  const { nextHeading, headingLevel } = boundariesOf(text, kind);
  const counts = [0, 0, 0, 0, 0, 0, 0];
  let blank = 0;
  const found: { readonly level: number; readonly offset: number }[] = [];
  for (let offset = nextHeading(0); offset < text.length; offset = nextHeading(offset + 1)) {
    const level = headingLevel(offset);
    // No more of a level are taken than an outline has, so a document of headings alone needs little memory.
    if (counts[level]! === MAX_OUTLINE_LENGTH) continue;
    if (headingText(text, offset) !== '') {
      counts[level]! += 1;
      found.push({ level, offset });
    } else if (++blank === MAX_BLANK) break;
  }
  const room = roomPerLevel(counts);
  return found
    .filter(({ level }) => room[level]!-- > 0)
    .map(({ level, offset }) => ({ level, text: headingText(text, offset) }));
}

/**
 * Returns the number of headings of each level that the outline takes, counted from the start of the document: outer
 * levels first, until the outline is full. The levels 1..6 are indexes of `counts` and of the result.
 */
function roomPerLevel(counts: readonly number[]): number[] {
  let left = MAX_OUTLINE_LENGTH;
  return counts.map((count) => {
    const room = Math.min(count, left);
    left -= room;
    return room;
  });
}

/**
 * Returns the words of the heading that starts at an offset, on one line, without Markdown's marks and cut to 200
 * UTF-16 code units; '' if it has none. A heading must start at that offset.
 */
export function headingText(text: string, offset: number): string {
  const source = text.slice(offset, offset + LONGEST_SOURCE);
  const atx = /^[ \t]*#{1,6}(?:[ \t]+([^\n]*))?(?:\n|$)/.exec(source);
  const words =
    atx === null ? source.replace(/\n[ \t]*(?:=+|-+)[ \t\r]*(?:\n[^]*)?$/, '') : closedHeading(atx[1] ?? '');
  return shorten(plainText(words));
}

/**
 * Number of characters of a heading's source that are read, which limits the time of the regular expressions. It is
 * more than twice the length of the longest setext heading with its underline.
 */
const LONGEST_SOURCE = 1_000;

function closedHeading(words: string): string {
  return words.replace(/(?:^|[ \t])#+[ \t\r]*$/, '');
}

function plainText(markdown: string): string {
  return markdown
    .replace(/!?\[([^[\]]*)\](?:\([^()\n]*\)|\[[^[\]]*\])/g, '$1')
    .replace(/<\/?[a-z][^<>]*>|<!--[^<>]*-->/gi, '')
    .replace(/`+/g, '')
    .replace(/(?<![\\\p{L}\p{N}])[*_]+(?=\S)|(?<=[^\s\\])[*_]+(?![\p{L}\p{N}*_])|~~/gu, '')
    .replace(/\\([!-/:-@[-`{-~])/g, '$1')
    .replace(/\s+/g, ' ')
    .trim();
}

function shorten(words: string): string {
  return words.length <= MAX_HEADING_LENGTH
    ? words
    : words.slice(0, MAX_HEADING_LENGTH).replace(/[\uD800-\uDBFF]$|\s+$/, '');
}
