import type { Boundaries } from './boundaries.ts';
import {
  isWordStart,
  lastCharacterBreak,
  lastSegmentBreak,
  mayCutAt,
  sentenceStarts,
  wholeWithin,
} from './cut-points.ts';
import { BLOCK, GROUP, LINE, SECTION, TIED } from './line-marks.ts';
import type { TokenEstimate } from './token-estimate.ts';

/**
 * Finds the best offset for a chunk to end. The chunk's size is only estimated: the caller must count its tokens.
 * @param start where the chunk starts, including repeated text
 * @param own where the chunk's new text starts: `start`, or after it
 * @param limit offset after `own`, before the text's end, at which the chunk is full by the estimate
 * @param fits tells whether a code block or table row from `start` to `end` would fit into a chunk of its own
 * @returns an offset after `own`. It is at most `limit`, unless a row or code that begins at `own` ends later, or
 *   `limit` splits the first character. It is undefined if such a row or code does not fit after the repeated text
 */
export type ChunkEndFinder = (
  start: number,
  own: number,
  limit: number,
  fits: (start: number, end: number) => boolean,
) => number | undefined;

/**
 * A chunk may end before a section only if its new text fills at least this share of the tokens that it may have. The
 * same share applies to any line if no sentence and no word starts late enough.
 */
const SECTION_FILL = 1 / 3;
/** A chunk may end between sentences only if its new text fills at least this share of the tokens that it may have. */
const SENTENCE_FILL = 3 / 4;
/** A chunk may end between words only if its new text fills at least this share of the tokens that it may have. */
const WORD_FILL = 7 / 8;
/**
 * Least share (0..1) of its possible tokens that a chunk's new text must fill before the chunk may end at a line, by
 * how well the text may be cut before that line (3..11). A line that is tied to the one before never ends a chunk; a
 * wrapped line does so only where a sentence or a word starts.
 */
const MIN_FILLS: ReadonlyMap<number, number> = new Map([
  [LINE, 2 / 3],
  [GROUP, 1 / 2],
  [BLOCK, 1 / 2],
  ...[0, 1, 2, 3, 4, 5].map((outer) => [SECTION + outer, SECTION_FILL] as const),
]);

/**
 * Creates the function that finds where a chunk of one text ends. In this order it prefers the line at which the text
 * may best be cut, the last sentence and the last word, if the chunk is full enough there; then the best line at which
 * it is a third full, the last place between two words or graphemes, and the last character.
 */
export function createChunkEndFinder(text: string, boundaries: Boundaries, estimate: TokenEstimate): ChunkEndFinder {
  return (start, own, limit, fits) => {
    const cutWhole = boundaries.wholeAround(limit);
    if (cutWhole !== undefined && cutWhole.start >= own && fits(cutWhole.start, cutWhole.end)) {
      if (cutWhole.start > own) return endBeforeWhole(own, cutWhole.start);
      return start < own ? undefined : cutWhole.end;
    }
    const offsetAt = fillOf(own, limit);
    return (
      bestLine(own, limit, offsetAt) ??
      lastSentence(own, offsetAt(SENTENCE_FILL), limit) ??
      lastWord(own, offsetAt(WORD_FILL), limit) ??
      bestLine(own, limit, () => offsetAt(SECTION_FILL)) ??
      lastSegmentBreak(text, own, own, limit) ??
      lastCharacterBreak(text, own, limit)
    );
  };

  /**
   * Returns the offset at which a chunk ends if code or a table row that must not be cut starts at `limit`: there, or
   * at an earlier line if a heading above belongs to the code or row. The chunk may then be nearly empty, but a heading
   * at its end would be worse.
   */
  function endBeforeWhole(own: number, limit: number): number {
    return bestLine(own, limit, fillOf(own, limit)) ?? bestLine(own, limit, () => own) ?? limit;
  }

  /**
   * Returns a function that converts a share (0..1) to an offset: the text from `own` to that offset has this share of
   * the tokens from `own` to `limit`.
   */
  function fillOf(own: number, limit: number): (share: number) => number {
    const tokens = estimate.between(own, limit);
    return (share) => estimate.after(own, tokens * share);
  }

  /**
   * Returns the start of the line with the highest strength after `own` and up to `limit` at which the chunk is full
   * enough (`MIN_FILLS`); of equally strong lines the last. Returns undefined if there is none.
   */
  function bestLine(own: number, limit: number, offsetAt: (share: number) => number): number | undefined {
    const least = Array.from(MIN_FILLS, ([strength, fill]) => [strength, Math.max(own + 1, offsetAt(fill))] as const);
    const leastOf = new Map(least);
    const earliest = Math.min(...leastOf.values());
    let best: number | undefined;
    let bestStrength = TIED;
    for (let offset = limit; offset >= earliest; offset--) {
      const strength = boundaries.strength(offset);
      if (strength <= bestStrength || offset < (leastOf.get(strength) ?? Infinity)) continue;
      if (wholeWithin(boundaries, offset, own, limit) !== undefined) continue;
      best = offset;
      bestStrength = strength;
    }
    return best;
  }

  function lastSentence(own: number, least: number, limit: number): number | undefined {
    const starts = sentenceStarts(text, Math.max(own, least), limit);
    return starts.findLast((offset) => mayCutAt(boundaries, offset, own, limit));
  }

  function lastWord(own: number, least: number, limit: number): number | undefined {
    for (let offset = limit; offset > own && offset >= least; offset--) {
      if (isWordStart(text, offset) && mayCutAt(boundaries, offset, own, limit)) return offset;
    }
    return undefined;
  }
}
