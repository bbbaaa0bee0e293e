import type { TextContent, TextItem } from 'pdfjs-dist/types/src/display/api.js';

/**
 * A piece of a PDF page's text in one font. Its coordinates are in a frame that is turned so that the text runs from
 * left to right and lines follow each other downwards. Lengths are in points; `baseline` grows upwards, as in PDF.
 */
export interface Run {
  readonly text: string;
  /**
   * Direction of the text in whole degrees, 0..359, counterclockwise. Coordinates of runs with different directions
   * cannot be compared.
   */
  readonly direction: number;
  readonly left: number;
  readonly right: number;
  readonly baseline: number;
  /** Size of the font as it is drawn, in points. */
  readonly size: number;
  /** Font by pdf.js's id, which is not its name. */
  readonly font: string;
  readonly isRtl: boolean;
  /** Whether white space was drawn between this run and the previously drawn one. */
  readonly afterSpace: boolean;
}

/** Least font size of text that is read, in points. Smaller text is there for machines, not for people. */
export const MIN_READABLE_SIZE = 1;

/** The visible text of a page. */
export interface PageRuns {
  /** Runs in drawing order. */
  readonly runs: Run[];
  /** Whether text was left out because people cannot see it. */
  readonly isTextHidden: boolean;
}

/**
 * Returns the text that pdf.js found on a page, in drawing order. Text smaller than 1 point is left out as hidden; text
 * without a finite position is left out, too.
 */
export function runsOfTextContent(content: TextContent): PageRuns {
  const runs: Run[] = [];
  let isTextHidden = false;
  let afterSpace = false;
  for (const item of content.items) {
    if (!('str' in item)) continue;
    if (item.str.trim() === '') {
      afterSpace ||= item.str !== '';
      continue;
    }
    const run = runOfItem(item, content.styles[item.fontName]?.vertical === true, afterSpace);
    if (run.size < MIN_READABLE_SIZE) isTextHidden = true;
    else if (Number.isFinite(run.left + run.right + run.baseline + run.size)) runs.push(run);
    afterSpace = false;
  }
  return { runs, isTextHidden };
}

function runOfItem(item: TextItem, isVertical: boolean, afterSpace: boolean): Run {
  const [a, b, c, d, x, y] = item.transform as [number, number, number, number, number, number];
  const [length, size] = isVertical
    ? [item.height, item.width]
    : [item.width, Math.hypot(c, d) || item.height || Math.hypot(a, b)];
  return placeRun({
    text: item.str,
    x,
    y,
    angle: (Math.atan2(b, a) * 180) / Math.PI - (isVertical ? 90 : 0),
    length,
    size,
    font: item.fontName,
    isRtl: item.dir === 'rtl',
    afterSpace,
  });
}

/** A piece of text at its position on the page, in points. */
export interface DrawnText {
  readonly text: string;
  /** Horizontal position at which the text's baseline starts on the page, in points; `y` is the vertical one. */
  readonly x: number;
  readonly y: number;
  /** Direction in which the text advances, in degrees counterclockwise; any number. */
  readonly angle: number;
  /** Length of the text along its direction, in points. */
  readonly length: number;
  readonly size: number;
  readonly font: string;
  readonly isRtl: boolean;
  readonly afterSpace: boolean;
}

/**
 * Converts a drawn text to a run, with coordinates in the frame of its direction. The direction is rounded to whole
 * degrees, and to a multiple of 90 if it is within 3 degrees of it.
 */
export function placeRun({ x, y, angle, length, ...drawn }: DrawnText): Run {
  const direction = snapDirection(angle);
  const [cos, sin] = cosAndSin(direction);
  const left = x * cos + y * sin;
  return {
    text: drawn.text,
    direction,
    left,
    right: left + length,
    baseline: y * cos - x * sin,
    size: drawn.size,
    font: drawn.font,
    isRtl: drawn.isRtl,
    afterSpace: drawn.afterSpace,
  };
}

/**
 * Greatest difference between a direction and a multiple of 90 degrees at which the direction is rounded to that
 * multiple, so that the lines of a page that was scanned slightly askew still have one direction.
 */
const SNAPPED_DEGREES = 3;

function snapDirection(angle: number): number {
  const right = Math.round(angle / 90) * 90;
  const snapped = Math.abs(angle - right) <= SNAPPED_DEGREES ? right : Math.round(angle);
  return ((snapped % 360) + 360) % 360;
}

function cosAndSin(direction: number): readonly [number, number] {
  switch (direction) {
    case 0:
      return [1, 0];
    case 90:
      return [0, 1];
    case 180:
      return [-1, 0];
    case 270:
      return [0, -1];
    default: {
      const radians = (direction * Math.PI) / 180;
      return [Math.cos(radians), Math.sin(radians)];
    }
  }
}
