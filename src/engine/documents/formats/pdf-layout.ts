import { splitRegions } from './pdf-columns.ts';
import { linesOfRegion, type Line } from './pdf-lines.ts';
import type { Run } from './pdf-runs.ts';
import { joinSegments } from './pdf-segments.ts';

/**
 * Returns a PDF page's lines in reading order. Runs (pieces of text in one font) that are drawn one after another on a
 * line are joined into segments, columns are found by the white space between segments and read one by one, and the
 * segments on one line of a column become a line. Lines in the main direction (of the longest text) come first. It
 * takes n log n time in the number of runs.
 */
export function orderLines(runs: readonly Run[]): Line[] {
  return groupByDirection(runs).flatMap((group) => {
    const segments = joinSegments(group);
    return splitRegions(segments, 0).flatMap(linesOfRegion);
  });
}

/**
 * Groups runs by the direction of their text. The group with the longest text comes first, so a turned note at the
 * margin is read last.
 */
function groupByDirection(runs: readonly Run[]): Run[][] {
  const groups = new Map<number, { runs: Run[]; characters: number }>();
  for (const run of runs) {
    const group = groups.get(run.direction) ?? { runs: [], characters: 0 };
    groups.set(run.direction, group);
    group.runs.push(run);
    group.characters += run.text.length;
  }
  return [...groups.values()].sort((a, b) => b.characters - a.characters).map((group) => group.runs);
}
