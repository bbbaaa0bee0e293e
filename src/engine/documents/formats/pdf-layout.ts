import type { Run } from './pdf-runs.ts';

/** A line of a page in reading order; where it stands is told in the frame of its direction (see Run). */
export interface Line {
  readonly text: string;
  /** Its parts where wide gaps stand between them, as in a row of a table; one for running text. */
  readonly cells: readonly Cell[];
  readonly left: number;
  readonly right: number;
  readonly baseline: number;
  /** Of the font in which most of it is set. */
  readonly size: number;
  readonly font: string;
  /** All of it stands in `font`. */
  readonly isUniform: boolean;
  readonly direction: number;
  /** Reads from right to left. */
  readonly isRtl: boolean;
  readonly region: Region;
}

export interface Cell {
  readonly text: string;
  readonly left: number;
  readonly right: number;
}

/** A column, or a band across columns. */
export interface Region {
  readonly left: number;
  /** Where most of its lines end or end before: one line that is too long says nothing about the others. */
  readonly right: number;
}

/**
 * Puts a page's text into reading order: pieces drawn one after another on a line are joined, columns are found by the white
 * between them and read one by one, and what stands on one line in a column becomes a line. n log n in the number of runs.
 */
export function orderLines(runs: readonly Run[]): Line[] {
  return groupByDirection(runs).flatMap((group) => {
    const segments = joinSegments(group);
    return splitRegions(segments, 0).flatMap(linesOfRegion);
  });
}

/** Most of a page runs in one direction, which comes first; a note along the margin is read after it. */
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

// ── Segments: what was drawn in one go on one line ─────────────────────────────────────────────────────────────────

interface Segment {
  readonly runs: Run[];
  left: number;
  right: number;
  /** Of its largest run: an exponent does not move its line. */
  baseline: number;
  size: number;
}

/** In multiples of the font size. A wider gap may be the white between two columns or two cells. */
const SEGMENT_GAP = 1;
/** Exponents and indices stand off the line by less. */
const LINE_SHIFT = 0.5;

function joinSegments(runs: readonly Run[]): Segment[] {
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

// ── Regions: columns and what stands across them ───────────────────────────────────────────────────────────────────

const MAX_DEPTH = 6;
/** Fewer lines on a side make no column. */
const LEAST_COLUMN_LINES = 3;
/** In multiples of the font size. */
const LEAST_LINE_WIDTH = 4;
const TRIED_GUTTERS = 4;

function splitRegions(segments: readonly Segment[], depth: number): (readonly Segment[])[] {
  if (segments.length === 0) return [];
  if (depth === MAX_DEPTH || segments.length < 2 * LEAST_COLUMN_LINES) return [segments];
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

interface Gutter {
  readonly from: number;
  readonly to: number;
  readonly score: number;
}

/** The white from top to bottom that parts most lines and is crossed by fewest, if columns of text stand at its sides. */
function findGutter(segments: readonly Segment[]): Gutter | undefined {
  // A page number may stand in the middle of the white.
  const wide = segments.filter((segment) => segment.right - segment.left >= LEAST_LINE_WIDTH * segment.size);
  const lefts = wide.map((segment) => segment.left).sort((a, b) => a - b);
  const rights = wide.map((segment) => segment.right).sort((a, b) => a - b);
  const leastWidth = medianOf(segments.map((segment) => segment.size)) * 0.5;
  const gutters: Gutter[] = [];
  // Between an end and the next start nothing begins or ends, so each such stretch is crossed by a fixed set of segments.
  let started = 0;
  for (let ended = 0; ended < rights.length; ended += 1) {
    const from = rights[ended]!;
    while (started < lefts.length && lefts[started]! < from) started += 1;
    const to = lefts[started];
    if (to === undefined) break;
    if (to - from < leastWidth || (rights[ended + 1] ?? Infinity) < to) continue;
    const before = ended + 1;
    const after = lefts.length - started;
    if (before < LEAST_COLUMN_LINES || after < LEAST_COLUMN_LINES) continue;
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

/** Cells of a table differ in width and are short; lines of a column nearly fill it. */
function isProse(segments: readonly Segment[]): boolean {
  const widths = segments.map((segment) => segment.right - segment.left).sort((a, b) => a - b);
  const usual = widths[widths.length >> 1]!;
  const wide = widths[Math.floor(widths.length * 0.9)]!;
  const letterWidth = medianOf(segments.map((segment) => segment.size)) * 0.5;
  return usual >= 0.6 * wide && usual >= 15 * letterWidth;
}

function isTable(left: readonly Segment[], right: readonly Segment[]): boolean {
  if (left.length < LEAST_COLUMN_LINES || right.length < LEAST_COLUMN_LINES) return false;
  return !isProse(left) && !isProse(right) && alignedShare(left, right) >= 0.8;
}

/** Of the side with fewer segments, how many have another one on the same line: all of them in a table. */
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

interface Band {
  readonly isAcross: boolean;
  readonly segments: Segment[];
}

/** From top to bottom: what crosses the gutter, such as a title, and what stands at its sides. */
function splitBands(segments: readonly Segment[], gutter: Gutter): Band[] {
  const bands: Band[] = [];
  for (const segment of byBaseline(segments)) {
    const isAcross = segment.left < gutter.to && segment.right > gutter.from;
    const band = bands.at(-1);
    // What stands on the line of a segment that goes across belongs to it, such as the number at the end of a formula.
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

// ── Lines ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function linesOfRegion(segments: readonly Segment[]): Line[] {
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

/** Bold that is made by drawing a text twice, a little apart, is one text. */
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

/** Numbers and words of another script keep their own order inside the line. */
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

/** In multiples of the font size: narrower gaps stand inside words, wider ones between cells. */
const WORD_GAP = 0.15;
const IDEOGRAPH_GAP = 0.6;
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
  // Of what is read from the right the file draws the end first, so the blank before it there says nothing here.
  if ((run.afterSpace && !run.isRtl) || gap > WORD_GAP || changesScript(previous, run)) return ' ';
  return isExponent(previous, run, row) ? '^' : '';
}

/** Accents and vowel signs that are drawn on their own belong to the letters beside them. */
const STARTS_WITH_MARK = /^\p{M}/u;
const ENDS_IN_LONE_MARK = /^\p{M}+$/u;

const LETTER_OR_DIGIT = /[\p{L}\p{N}]/u;

/** pdf.js counts a blank at the end of right-to-left text to its width, so the next word seems to touch it. */
function changesScript(previous: Run, run: Run): boolean {
  return run.isRtl !== previous.isRtl && LETTER_OR_DIGIT.test(run.text) && LETTER_OR_DIGIT.test(previous.text);
}

/** A number that stands raised after a word or number, kept apart from it: 10^3, and a footnote's mark after a word. */
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

/** Well-formed text on one line: bullets of symbol fonts by their own character, no control characters, single blanks. */
function cleanText(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\uf0b7\uf0a7\uf076\uf0d8]/g, '•')
    .replace(/\p{Cc}+|\s+/gu, ' ')
    .replace(SPACE_BETWEEN_IDEOGRAPHS, '')
    .trim();
}

/** Whether a text goes on without a blank where a line ends: between ideographs. */
export function joinsWithoutSpace(before: string, after: string): boolean {
  return ENDS_IDEOGRAPHIC.test(before) && STARTS_IDEOGRAPHIC.test(after);
}

/** From top to bottom; what was drawn first stays first where two stand at one height. */
function byBaseline(segments: readonly Segment[]): Segment[] {
  return [...segments].sort((a, b) => b.baseline - a.baseline);
}

function medianOf(values: readonly number[]): number {
  return quantileOf(values, 0.5);
}

/** 0 of nothing. */
export function quantileOf(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(share * values.length)] ?? 0;
}
