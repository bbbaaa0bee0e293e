import { boundariesOf } from './boundaries.ts';
import type { TextKind } from './parsed-document.ts';

export const MAX_HEADING_LENGTH = 200;
const MAX_OUTLINE_LENGTH = 200;

export interface Heading {
  /** 1..6 */
  readonly level: number;
  /** Plain, one line, at most MAX_HEADING_LENGTH UTF-16 units. */
  readonly text: string;
}

/**
 * A document's headings in order, at most 200: where there are more, the outermost, so that the outline reaches the document's end.
 * Empty for anything but Markdown.
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

/** How many headings of each level go in: all of the outer ones, then as many as are left room for, from the start. */
function roomPerLevel(counts: readonly number[]): number[] {
  let left = MAX_OUTLINE_LENGTH;
  return counts.map((count) => {
    const room = Math.min(count, left);
    left -= room;
    return room;
  });
}

/** The words of the heading that starts at an offset, without Markdown's marks; '' where it has none. */
export function headingText(text: string, offset: number): string {
  const source = text.slice(offset, offset + LONGEST_SOURCE);
  const atx = /^[ \t]*#{1,6}(?:[ \t]+([^\n]*))?(?:\n|$)/.exec(source);
  const words =
    atx === null ? source.replace(/\n[ \t]*(?:=+|-+)[ \t\r]*(?:\n[^]*)?$/, '') : closedHeading(atx[1] ?? '');
  return shorten(plainText(words));
}

/** Twice the longest setext heading and its underline; bounds the regexes. */
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
