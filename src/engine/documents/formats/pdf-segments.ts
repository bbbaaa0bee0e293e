import type { Run } from './pdf-runs.ts';

/**
 * Runs (pieces of text in one font) that were drawn one after another on one line, without wide gaps. Coordinates are
 * in points, in the frame of their direction (`Run`).
 */
export interface Segment {
  readonly runs: Run[];
  left: number;
  right: number;
  /**
   * Baseline of the segment: that of its run with the largest font, since smaller runs such as exponents are above or
   * below the line.
   */
  baseline: number;
  /** Font size of the segment, in points: that of its run with the largest font. */
  size: number;
}

/** Greatest gap between two runs of a segment, in font sizes. A wider gap may separate two columns or two cells. */
const SEGMENT_GAP = 1;
/**
 * Greatest distance of a run from its segment's baseline, in font sizes; exponents and indices have a smaller one. Two
 * consecutive runs may also overlap by this amount.
 */
const LINE_SHIFT = 0.5;

/**
 * Joins runs into segments. A run joins the segment of the run that was drawn just before it if both are on one line
 * and the gap between them is at most `SEGMENT_GAP`; else it begins a new segment. So one line may have several
 * segments.
 * @param runs runs of one direction, in drawing order
 * @returns segments in drawing order
 */
export function joinSegments(runs: readonly Run[]): Segment[] {
  const segments: Segment[] = [];
  let current: Segment | undefined;
  for (const run of runs) {
    if (current !== undefined && continuesSegment(current, run)) {
      current.runs.push(run);
      current.left = Math.min(current.left, run.left);
      current.right = Math.max(current.right, run.right);
      if (run.size > current.size * 1.05) {
        current.size = run.size;
        current.baseline = run.baseline;
      }
    } else {
      current = { runs: [run], left: run.left, right: run.right, baseline: run.baseline, size: run.size };
      segments.push(current);
    }
  }
  return segments;
}

function continuesSegment(segment: Segment, run: Run): boolean {
  const size = Math.max(segment.size, run.size);
  if (Math.abs(run.baseline - segment.baseline) > LINE_SHIFT * size) return false;
  if (isNext(run.left - segment.right, size)) return true;
  const isRtl = run.isRtl || segment.runs.at(-1)!.isRtl;
  return isRtl && isNext(segment.left - run.right, size);
}

function isNext(gap: number, size: number): boolean {
  return gap <= SEGMENT_GAP * size && gap >= -LINE_SHIFT * size;
}

/** Sorts segments (pieces of lines) from top to bottom. Segments at equal heights stay in drawing order. */
export function byBaseline(segments: readonly Segment[]): Segment[] {
  return [...segments].sort((a, b) => b.baseline - a.baseline);
}

/** Returns the median; of two middle values the upper one; 0 for an empty list. */
export function medianOf(values: readonly number[]): number {
  return quantileOf(values, 0.5);
}

/** Returns the quantile of the values at a share (0 to less than 1); 0 for an empty list. */
export function quantileOf(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(share * values.length)] ?? 0;
}
