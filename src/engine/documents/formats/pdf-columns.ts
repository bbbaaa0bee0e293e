/**
 * Finds the columns of a PDF page, and the bands of text across columns, by the white space between segments (pieces of
 * lines).
 */

import { byBaseline, medianOf, type Segment } from './pdf-segments.ts';

/** Greatest depth to which a region of a page is split into columns and bands. */
const MAX_DEPTH = 6;
/** Least number of segments (pieces of lines) in a column. */
const MIN_COLUMN_LINES = 3;
/** Least width, in font sizes, of a segment that counts in the search for gutters (white space between columns). */
const MIN_LINE_WIDTH = 4;
/** Greatest number of gutters (white space between columns) that are tried for a region, the best ones first. */
const TRIED_GUTTERS = 4;

/**
 * Splits segments (pieces of lines) of one direction into regions in reading order. A region is a column, a band across
 * columns, or a whole table.
 * @param depth number of splits that led to these segments; 0 for those of a whole page
 */
export function splitRegions(segments: readonly Segment[], depth: number): (readonly Segment[])[] {
  if (segments.length === 0) return [];
  if (depth === MAX_DEPTH || segments.length < 2 * MIN_COLUMN_LINES) return [segments];
  const gutter = findGutter(segments);
  if (gutter === undefined) return [segments];
  return splitBands(segments, gutter).flatMap((band) => {
    if (band.isAcross) return splitRegions(band.segments, depth + 1);
    const [left, right] = sidesOf(band.segments, gutter);
    if (isTable(left, right)) return [band.segments];
    const columns = isMostlyRtl(band.segments) ? [right, left] : [left, right];
    return columns.flatMap((column) => splitRegions(column, depth + 1));
  });
}

/** The white space between two columns: its left and right end, in points. */
interface Gutter {
  readonly from: number;
  readonly to: number;
  /**
   * Number of segments on the side that has fewer, minus the number of segments that cross the gutter; the gutter with
   * the highest score is the best.
   */
  readonly score: number;
}

/**
 * Finds the gutter of a region: the vertical white space that separates the greatest number of lines, is crossed by the
 * fewest, and has columns of text on both sides. Returns undefined if there is none.
 */
function findGutter(segments: readonly Segment[]): Gutter | undefined {
  // A page number may stand in the middle of the white, so short segments do not count.
  const wide = segments.filter((segment) => segment.right - segment.left >= MIN_LINE_WIDTH * segment.size);
  const lefts = wide.map((segment) => segment.left).sort((a, b) => a - b);
  const rights = wide.map((segment) => segment.right).sort((a, b) => a - b);
  const leastWidth = medianOf(segments.map((segment) => segment.size)) * 0.5;
  const gutters: Gutter[] = [];
  // Between an end and the next start nothing begins or ends, so a fixed set of segments crosses each such stretch.
  let started = 0;
  for (let ended = 0; ended < rights.length; ended += 1) {
    const from = rights[ended]!;
    while (started < lefts.length && lefts[started]! < from) started += 1;
    const to = lefts[started];
    if (to === undefined) break;
    if (to - from < leastWidth || (rights[ended + 1] ?? Infinity) < to) continue;
    const before = ended + 1;
    const after = lefts.length - started;
    if (before < MIN_COLUMN_LINES || after < MIN_COLUMN_LINES) continue;
    gutters.push({ from, to, score: Math.min(before, after) - (started - before) });
  }
  return gutters
    .sort((a, b) => b.score - a.score)
    .slice(0, TRIED_GUTTERS)
    .find((gutter) => partsColumns(segments, gutter));
}

function partsColumns(segments: readonly Segment[], gutter: Gutter): boolean {
  const [left, right] = sidesOf(segments, gutter);
  const prose = Number(isProse(left)) + Number(isProse(right));
  return prose === 2 || (prose === 1 && alignedShare(left, right) < 0.7);
}

function sidesOf(segments: readonly Segment[], gutter: Gutter): [Segment[], Segment[]] {
  return [
    segments.filter((segment) => segment.right <= gutter.from),
    segments.filter((segment) => segment.left >= gutter.to),
  ];
}

/**
 * Tells whether segments (at least one) look like lines of running text in a column: half of them or more are at least
 * 0.6 times as wide as the wide ones (90 % quantile) and at least as wide as 15 letters. Cells of a table differ in
 * width and are short.
 */
function isProse(segments: readonly Segment[]): boolean {
  const widths = segments.map((segment) => segment.right - segment.left).sort((a, b) => a - b);
  const usual = widths[widths.length >> 1]!;
  const wide = widths[Math.floor(widths.length * 0.9)]!;
  const letterWidth = medianOf(segments.map((segment) => segment.size)) * 0.5;
  return usual >= 0.6 * wide && usual >= 15 * letterWidth;
}

function isTable(left: readonly Segment[], right: readonly Segment[]): boolean {
  if (left.length < MIN_COLUMN_LINES || right.length < MIN_COLUMN_LINES) return false;
  return !isProse(left) && !isProse(right) && alignedShare(left, right) >= 0.8;
}

/**
 * Takes the side of a gutter that has fewer segments, and returns the share of its segments that have a segment of the
 * other side on the same line: about 1 in a table; 0 if a side is empty.
 */
function alignedShare(left: readonly Segment[], right: readonly Segment[]): number {
  const [fewer, more] = left.length <= right.length ? [left, right] : [right, left];
  const baselines = more.map((segment) => segment.baseline).sort((a, b) => a - b);
  const aligned = [...fewer]
    .sort((a, b) => a.baseline - b.baseline)
    .reduce(
      ({ count, at }, segment) => {
        const tolerance = segment.size * 0.15;
        let next = at;
        while (next < baselines.length && baselines[next]! < segment.baseline - tolerance) next += 1;
        const isAligned = next < baselines.length && baselines[next]! <= segment.baseline + tolerance;
        return { count: count + Number(isAligned), at: next };
      },
      { count: 0, at: 0 },
    );
  return fewer.length === 0 ? 0 : aligned.count / fewer.length;
}

/** Consecutive segments from top to bottom that all cross the gutter (`isAcross`), or none of which does. */
interface Band {
  readonly isAcross: boolean;
  readonly segments: Segment[];
}

/**
 * Splits segments into bands from top to bottom: bands that cross the gutter, such as a title, and bands with text on
 * both sides of it.
 */
function splitBands(segments: readonly Segment[], gutter: Gutter): Band[] {
  const bands: Band[] = [];
  for (const segment of byBaseline(segments)) {
    const isAcross = segment.left < gutter.to && segment.right > gutter.from;
    const band = bands.at(-1);
    // A segment on the line of one that goes across belongs to it, such as the number at the end of a formula.
    const last = band?.segments.at(-1);
    const isOnItsLine =
      band?.isAcross === true && last !== undefined && last.baseline - segment.baseline <= 0.4 * last.size;
    if (band !== undefined && (band.isAcross === isAcross || isOnItsLine)) band.segments.push(segment);
    else bands.push({ isAcross, segments: [segment] });
  }
  return bands;
}

function isMostlyRtl(segments: readonly Segment[]): boolean {
  const runs = segments.flatMap((segment) => segment.runs);
  return runs.filter((run) => run.isRtl).length * 2 > runs.length;
}
