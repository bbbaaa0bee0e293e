/**
 * Finds offsets (in UTF-16 code units) at which a text may be cut into chunks: at sentences, words and graphemes,
 * outside of code and table rows that must not be cut.
 */

import { sentences } from '../text/sentences.ts';
import type { Boundaries } from './boundaries.ts';
import { TIED } from './line-marks.ts';
import type { Span } from './span-list.ts';
import { isBlank } from './text-lines.ts';

/**
 * Tells whether a chunk from `from` to `to` may be cut at an offset inside it: the cut must not separate a line from
 * the one before if they are tied, nor split a code block or table row that is completely in the chunk.
 */
export function mayCutAt(boundaries: Boundaries, offset: number, from: number, to: number): boolean {
  return boundaries.strength(offset) !== TIED && wholeWithin(boundaries, offset, from, to) === undefined;
}

/**
 * Returns the code block or table row that a cut at an offset would split, if it is completely between `from` and `to`;
 * else undefined, since one that reaches further is split anyway.
 */
export function wholeWithin(boundaries: Boundaries, offset: number, from: number, to: number): Span | undefined {
  const whole = boundaries.wholeAround(offset);
  return whole !== undefined && whole.start >= from && whole.end <= to ? whole : undefined;
}

/** Returns the offsets at which sentences start, in rising order, that are after `from` and at most `to`. */
export function sentenceStarts(text: string, from: number, to: number): number[] {
  // One more character shows whether the last sentence starts in lower case and so is no new sentence.
  return sentences(text.slice(from, to + 2))
    .map((sentence) => from + sentence.start)
    .filter((offset) => offset > from && offset <= to && !isSplitAt(text, offset));
}

/**
 * Tells whether a word starts at an offset before the end of the text: the character there is not blank, and the one
 * before it is. False at the start of the text.
 */
export function isWordStart(text: string, offset: number): boolean {
  return isBlank(text.charCodeAt(offset - 1)) && !isBlank(text.charCodeAt(offset));
}

/**
 * Number of UTF-16 code units before the limit of a cut that are split into words or graphemes. It is bounded, since a
 * single grapheme may have megabytes.
 */
const SEGMENTED_BEFORE = 512;
/**
 * Number of UTF-16 code units after the limit of a cut that are split into words or graphemes together with those
 * before it. It is also the length in which the beginning of an overlap is searched for between words or graphemes.
 */
export const SEGMENTED_AFTER = 64;
const wordSegmenter = new Intl.Segmenter('und', { granularity: 'word' });
const graphemeSegmenter = new Intl.Segmenter('und', { granularity: 'grapheme' });

/**
 * Returns the last offset after `after`, and at most `limit`, that is between two words (also in scripts without
 * blanks), else between two graphemes. Returns undefined if there is none. Only the 512 code units before `limit` are
 * searched, or fewer if `start` is nearer.
 * @param start an offset between two graphemes
 */
export function lastSegmentBreak(text: string, start: number, after: number, limit: number): number | undefined {
  const from = Math.max(start, limit - SEGMENTED_BEFORE);
  const near = text.slice(from, limit + SEGMENTED_AFTER);
  for (const segmenter of [wordSegmenter, graphemeSegmenter]) {
    let last = after;
    for (const segment of segmenter.segment(near)) {
      const offset = from + segment.index;
      if (offset > limit) break;
      if (offset > Math.max(from, after) && !isSplitAt(text, offset)) last = offset;
    }
    if (last > after) return last;
  }
  return undefined;
}

/**
 * Returns the last offset after `after`, and at most `limit`, at which no character is split. If `limit` splits the
 * first character after `after`, it returns `limit + 1`. A surrogate pair counts as one character, and so does \r\n.
 */
export function lastCharacterBreak(text: string, after: number, limit: number): number {
  if (!isSplitAt(text, limit)) return limit;
  return limit - 1 > after ? limit - 1 : limit + 1;
}

/** Tells whether an offset lies inside a surrogate pair, or between a carriage return and its line feed. */
export function isSplitAt(text: string, offset: number): boolean {
  const before = text.charCodeAt(offset - 1);
  const after = text.charCodeAt(offset);
  return ((before & 0xfc00) === 0xd800 && (after & 0xfc00) === 0xdc00) || (before === 13 && after === 10);
}

/**
 * Returns the offset of the first character in `from` ≤ offset < `to` that is not white space (`isBlank`); undefined if
 * there is none.
 */
export function firstVisible(text: string, from: number, to: number): number | undefined {
  for (let offset = from; offset < to; offset++) if (!isBlank(text.charCodeAt(offset))) return offset;
  return undefined;
}
