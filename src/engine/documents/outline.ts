import { boundariesOf } from './boundaries.ts';
import type { TextKind } from './parsed-document.ts';

/** Longest heading text, in UTF-16 units. */
const MAX_HEADING_LENGTH = 200;
/** Most headings in an outline. */
const MAX_OUTLINE_LENGTH = 200;

/** A heading in a document's outline. */
export interface Heading {
  /** Level from 1 to 6. */
  readonly level: number;
  /** Words of the heading on one line, without Markdown's marks; at most 200 UTF-16 units, never ''. */
  readonly text: string;
}

/**
 * Returns a document's headings in order, at most 200. Of more headings the outermost are kept, so that the outline
 * reaches the document's end. Headings without words are left out. Only Markdown has headings: for another kind of text
 * the outline is empty.
 */
export function outlineOf(text: string, kind: TextKind): Heading[] {
  if (kind !== 'markdown') return [];
  const { nextHeading, headingLevel } = boundariesOf(text, kind);
  const counts = [0, 0, 0, 0, 0, 0, 0];
  for (let offset = nextHeading(0); offset < text.length; offset = nextHeading(offset + 1)) {
    const level = headingLevel(offset);
    counts[level] = (counts[level] ?? 0) + 1;
  }
  const room = roomPerLevel(counts);
  const outline: Heading[] = [];
  for (let offset = nextHeading(0); offset < text.length; offset = nextHeading(offset + 1)) {
    if (outline.length === MAX_OUTLINE_LENGTH) break;
    const level = headingLevel(offset);
    if ((room[level] ?? 0) === 0) continue;
    room[level] = (room[level] ?? 0) - 1;
    const heading = headingText(text, offset);
    if (heading !== '') outline.push({ level, text: heading });
  }
  return outline;
}

/**
 * Returns how many headings of each level the outline takes, counted from the document's start: outer levels first,
 * until it is full. The levels, from 1 to 6, are the indexes of `counts` and of the result.
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
 * UTF-16 units; '' if it has none. A heading must start there.
 */
export function headingText(text: string, offset: number): string {
  const source = text.slice(offset, offset + LONGEST_SOURCE);
  const atx = /^[ \t]*#{1,6}(?:[ \t]+([^\n]*))?(?:\n|$)/.exec(source);
  const words =
    atx === null ? source.replace(/\n[ \t]*(?:=+|-+)[ \t\r]*(?:\n[^]*)?$/, '') : closedHeading(atx[1] ?? '');
  return shorten(plainText(words));
}

/**
 * Number of characters of a heading's source that are read, which bounds the regular expressions. They have room for
 * twice the longest setext heading and its underline.
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
