import type { Boundaries } from './boundaries.ts';
import { SEGMENTED_AFTER, isWordStart, lastSegmentBreak, mayCutAt, sentenceStarts, wholeWithin } from './cut-points.ts';
import { LINE, TIED } from './line-marks.ts';
import type { TokenEstimate } from './token-estimate.ts';

/**
 * Finds the best offset for an overlap to begin. An overlap is the end of a chunk that the next chunk repeats.
 * @param start offset at which the first of the two chunks starts
 * @param reach earliest offset, after `start`, at which the overlap may begin, by an estimate of its tokens
 * @param end offset at which the first of the two chunks ends
 * @returns an offset from `reach` to `end`; `end` if there is no good offset, so that nothing is repeated
 */
export type OverlapFinder = (start: number, reach: number, end: number) => number;

/**
 * Creates the function that finds where the overlap of two chunks of one text begins. In this order it prefers the line
 * at which the text may best be cut, the first sentence, the first word and, within the next 64 code units, the last
 * place between two words or else two graphemes. It never reaches above the last heading in it, with which it then
 * begins, and never begins within a table row or code block that is completely in the chunk.
 */
export function createOverlapFinder(text: string, boundaries: Boundaries, estimate: TokenEstimate): OverlapFinder {
  return (start, reach, end) => {
    const whole = wholeWithin(boundaries, reach, start, end);
    const from = Math.max(whole?.end ?? reach, lastHeading(reach, end));
    if (from >= end || boundaries.headingLevel(from) > 0) return from;
    const to = Math.max(from, estimate.after(from, estimate.between(from, end) / 2));
    return (
      firstLine(start, from, to, end) ??
      firstSentence(start, from, end) ??
      firstWord(start, from, to, end) ??
      segmentBreakBetween(start, from, to, end)
    );
  };

  /**
   * Returns the start of the line before which the text may best be cut, from `from` to `to`, both included, and before
   * `end`; of several equally good lines the first. Returns undefined if every line there is tied to the one before or
   * continues it.
   */
  function firstLine(start: number, from: number, to: number, end: number): number | undefined {
    let best: number | undefined;
    let bestStrength = TIED;
    for (let offset = from; offset <= to && offset < end; offset++) {
      const strength = boundaries.strength(offset);
      if (strength < LINE || strength <= bestStrength) continue;
      if (wholeWithin(boundaries, offset, start, end) !== undefined) continue;
      best = offset;
      bestStrength = strength;
    }
    return best;
  }

  function firstSentence(start: number, from: number, end: number): number | undefined {
    return sentenceStarts(text, from, end - 1).find((offset) => mayCutAt(boundaries, offset, start, end));
  }

  function firstWord(start: number, from: number, to: number, end: number): number | undefined {
    for (let offset = from; offset <= to && offset < end; offset++) {
      if (isWordStart(text, offset) && mayCutAt(boundaries, offset, start, end)) return offset;
    }
    return undefined;
  }

  function segmentBreakBetween(start: number, from: number, to: number, end: number): number {
    if (to <= from) return end;
    const offset = lastSegmentBreak(text, start, from, Math.min(to, from + SEGMENTED_AFTER)) ?? end;
    return wholeWithin(boundaries, offset, start, end) === undefined ? offset : end;
  }

  function lastHeading(from: number, end: number): number {
    for (let offset = end - 1; offset >= from; offset--) if (boundaries.headingLevel(offset) > 0) return offset;
    return from;
  }
}
