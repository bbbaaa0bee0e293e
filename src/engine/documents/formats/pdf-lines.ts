import type { Run } from './pdf-runs.ts';
import { byBaseline, quantileOf, type Segment } from './pdf-segments.ts';

/**
 * A line of a PDF page. Lengths are in points. Coordinates are in a frame that is turned so that lines run from left to
 * right and follow each other downwards (`Run`); `baseline` grows upwards.
 */
export interface Line {
  /** Text of the line: that of its cells in reading order, with two blanks between cells. */
  readonly text: string;
  /** Parts of the line that wide gaps separate, as in a row of a table; a single part for running text. */
  readonly cells: readonly Cell[];
  readonly left: number;
  readonly right: number;
  readonly baseline: number;
  /** Font size that most of the line's text has, in points. */
  readonly size: number;
  /** Font that most of the line's text has, as pdf.js's id. */
  readonly font: string;
  /** Whether at least nine tenths of the line's text are in `font`. */
  readonly isUniform: boolean;
  /** Direction of the text in whole degrees, 0..359, counterclockwise. */
  readonly direction: number;
  /** Whether the line reads from right to left. */
  readonly isRtl: boolean;
  /** Column or band that contains the line; lines of one region refer to one object. */
  readonly region: Region;
}

/** A part of a line, with its left and right end in points. */
export interface Cell {
  readonly text: string;
  readonly left: number;
  readonly right: number;
}

/** The left and right end, in points, of a column or of a band across columns. */
interface Region {
  /** Left end of the column or band, in points: nine tenths of its lines begin there or farther right. */
  readonly left: number;
  /**
   * Right end of the column or band, in points: 85 % of its lines end there or farther left, so that single lines that
   * are too long do not count.
   */
  readonly right: number;
}

/** Joins the segments of one region, in any order, into lines from top to bottom. */
export function linesOfRegion(segments: readonly Segment[]): Line[] {
  const rows = joinRows(segments);
  const region = {
    left: quantileOf(
      rows.map((row) => row.left),
      0.1,
    ),
    right: quantileOf(
      rows.map((row) => row.right),
      0.85,
    ),
  };
  return rows.map((row) => lineOfRow(row, region));
}

function joinRows(segments: readonly Segment[]): Segment[] {
  const rows: Segment[] = [];
  for (const segment of byBaseline(segments)) {
    const row = rows.at(-1);
    if (row === undefined || row.baseline - segment.baseline > 0.4 * Math.max(row.size, segment.size)) {
      rows.push({ ...segment, runs: [...segment.runs] });
      continue;
    }
    row.runs.push(...segment.runs);
    row.left = Math.min(row.left, segment.left);
    row.right = Math.max(row.right, segment.right);
    if (segment.size > row.size * 1.05) {
      row.size = segment.size;
      row.baseline = segment.baseline;
    }
  }
  return rows;
}

function lineOfRow(row: Segment, region: Region): Line {
  const drawn = withoutRepeats([...row.runs].sort((a, b) => a.left - b.left));
  const isRtl = readsFromRight(drawn);
  const runs = isRtl ? fromRightToLeft(drawn) : drawn;
  const { font, size, isUniform } = dominantStyle(runs);
  const cells = joinCells(runs, row);
  return {
    text: cells.map((cell) => cell.text).join('  '),
    cells,
    left: row.left,
    right: row.right,
    baseline: row.baseline,
    size,
    font,
    isUniform,
    direction: runs[0]!.direction,
    isRtl,
    region,
  };
}

/**
 * Removes runs that repeat the run before: a text that is drawn twice, slightly shifted, to look bold is kept once. The
 * runs must be sorted from left to right.
 */
function withoutRepeats(runs: readonly Run[]): Run[] {
  return runs.filter((run, index) => {
    const previous = runs[index - 1];
    return (
      previous === undefined ||
      previous.text !== run.text ||
      previous.size !== run.size ||
      run.left - previous.left > Math.min(0.3 * run.size, 0.5 * (run.right - run.left))
    );
  });
}

function readsFromRight(runs: readonly Run[]): boolean {
  let rtl = 0;
  let ltr = 0;
  for (const run of runs) {
    if (run.isRtl) rtl += run.text.length;
    else if (/\p{L}/u.test(run.text)) ltr += run.text.length;
  }
  return rtl > 0 && rtl >= ltr;
}

/**
 * Returns the runs of a right-to-left line in reading order; they are given from left to right. Numbers and words of
 * another script keep their own order within the line.
 */
function fromRightToLeft(runs: readonly Run[]): Run[] {
  const ordered: Run[] = [];
  let leftToRight: Run[] = [];
  for (const run of [...runs].reverse()) {
    if (!run.isRtl && /[\p{L}\p{N}]/u.test(run.text)) {
      leftToRight.push(run);
      continue;
    }
    ordered.push(...leftToRight.reverse(), run);
    leftToRight = [];
  }
  return [...ordered, ...leftToRight.reverse()];
}

function dominantStyle(runs: readonly Run[]): { font: string; size: number; isUniform: boolean } {
  const weights = new Map<string, { run: Run; characters: number }>();
  let characters = 0;
  for (const run of runs) {
    const key = `${run.font} ${run.size.toFixed(1)}`;
    const style = weights.get(key) ?? { run, characters: 0 };
    weights.set(key, style);
    style.characters += run.text.length;
    characters += run.text.length;
  }
  const main = [...weights.values()].reduce((best, style) => (style.characters > best.characters ? style : best));
  let inFont = 0;
  for (const style of weights.values()) if (style.run.font === main.run.font) inFont += style.characters;
  return { font: main.run.font, size: main.run.size, isUniform: inFont >= 0.9 * characters };
}

/** Greatest gap within a word, in font sizes; a wider one becomes a blank. */
const WORD_GAP = 0.15;
/** Greatest gap between two ideographs of one word, in font sizes. */
const IDEOGRAPH_GAP = 0.6;
/** Greatest gap within a cell, in font sizes; a wider one separates two cells. */
const CELL_GAP = 1.5;

function joinCells(runs: readonly Run[], row: Segment): Cell[] {
  const cells: { parts: string[]; left: number; right: number }[] = [];
  let previous: Run | undefined;
  for (const run of runs) {
    const cell = cells.at(-1);
    if (cell === undefined || previous === undefined || gapBetween(previous, run) > CELL_GAP * row.size) {
      cells.push({ parts: [run.text], left: run.left, right: run.right });
    } else {
      cell.parts.push(glueBetween(previous, run, row), run.text);
      cell.left = Math.min(cell.left, run.left);
      cell.right = Math.max(cell.right, run.right);
    }
    previous = run;
  }
  return cells.map(({ parts, left, right }) => ({ text: cleanText(parts.join('')), left, right }));
}

function gapBetween(previous: Run, run: Run): number {
  return Math.max(run.left - previous.right, previous.left - run.right);
}

function glueBetween(previous: Run, run: Run, row: Segment): string {
  if (previous.text.endsWith(' ') || run.text.startsWith(' ')) return '';
  const gap = gapBetween(previous, run) / Math.min(previous.size, run.size);
  const isIdeographic = ENDS_IDEOGRAPHIC.test(previous.text) && STARTS_IDEOGRAPHIC.test(run.text);
  if (isIdeographic) return gap > IDEOGRAPH_GAP ? ' ' : '';
  if (STARTS_WITH_MARK.test(run.text) || ENDS_IN_LONE_MARK.test(previous.text)) return '';
  // Files draw the end of right-to-left text first, so a blank before a run says nothing there.
  if ((run.afterSpace && !run.isRtl) || gap > WORD_GAP || changesScript(previous, run)) return ' ';
  return isExponent(previous, run, row) ? '^' : '';
}

/**
 * Matches an accent or vowel sign at the start of a text. If it is drawn separately, it belongs to the letter before
 * it.
 */
const STARTS_WITH_MARK = /^\p{M}/u;
/** Matches a text that consists of accents or vowel signs only, which were drawn before the letter they belong to. */
const ENDS_IN_LONE_MARK = /^\p{M}+$/u;

const LETTER_OR_DIGIT = /[\p{L}\p{N}]/u;

/**
 * Tells whether two runs differ in writing direction and so are two words. Their distance does not tell it: pdf.js
 * counts a blank at the end of right-to-left text as part of its width, so the next word seems to touch it.
 */
function changesScript(previous: Run, run: Run): boolean {
  return run.isRtl !== previous.isRtl && LETTER_OR_DIGIT.test(run.text) && LETTER_OR_DIGIT.test(previous.text);
}

/**
 * Tells whether a run is a superscript number after a word or number, as in 10^3 or a footnote's mark. In the text, a
 * `^` separates such a number from the word.
 */
function isExponent(previous: Run, run: Run, row: Segment): boolean {
  return (
    run.size < 0.85 * row.size &&
    run.baseline > row.baseline + 0.15 * row.size &&
    previous.baseline < run.baseline - 0.1 * row.size &&
    /^[-−]?\d+$/.test(run.text) &&
    /[\p{L}\p{N})\]]$/u.test(previous.text)
  );
}

const IDEOGRAPHIC = '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\u3001-\\u303f\\uff01-\\uff60ー';
const ENDS_IDEOGRAPHIC = new RegExp(`[${IDEOGRAPHIC}]$`, 'u');
const STARTS_IDEOGRAPHIC = new RegExp(`^[${IDEOGRAPHIC}]`, 'u');
const SPACE_BETWEEN_IDEOGRAPHS = new RegExp(`(?<=[${IDEOGRAPHIC}]) (?=[${IDEOGRAPHIC}])`, 'gu');

/**
 * Converts a text to well-formed Unicode on one line with single blanks, without control characters; bullets of symbol
 * fonts become bullet characters.
 */
function cleanText(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\uf0b7\uf0a7\uf076\uf0d8]/g, '•')
    .replace(/\p{Cc}+|\s+/gu, ' ')
    .replace(SPACE_BETWEEN_IDEOGRAPHS, '')
    .trim();
}

/** Tells whether two texts must be joined without a blank: the first ends, and the second begins, with an ideograph. */
export function joinsWithoutSpace(before: string, after: string): boolean {
  return ENDS_IDEOGRAPHIC.test(before) && STARTS_IDEOGRAPHIC.test(after);
}
