import type { Run } from './pdf-runs.ts';

/** Runs that were drawn one after another on one line, in points of the frame of their direction (see Run). */
export interface Segment {
  readonly runs: Run[];
  left: number;
  right: number;
  /** Baseline of the largest run: an exponent does not move its line. */
  baseline: number;
  /** Size of the largest run. */
  size: number;
}

/**
 * Largest gap between two runs of a segment, in font sizes. A wider gap may be the white between two columns or two
 * cells.
 */
const SEGMENT_GAP = 1;
/**
 * Largest distance of a run from its segment's baseline, in font sizes; exponents and indices stay below it. Two runs
 * may overlap by this distance, too.
 */
const LINE_SHIFT = 0.5;

/** Joins runs of one direction, given in drawing order, that follow each other on one line. */
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

/** Sorts segments from top to bottom. Segments at one height stay in drawing order. */
export function byBaseline(segments: readonly Segment[]): Segment[] {
  return [...segments].sort((a, b) => b.baseline - a.baseline);
}

/** Returns the median, the upper one of two; 0 for an empty list. */
export function medianOf(values: readonly number[]): number {
  return quantileOf(values, 0.5);
}

/** Returns the value below which a share of the values lies, from 0 to less than 1; 0 for an empty list. */
export function quantileOf(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(share * values.length)] ?? 0;
}
