/**
 * Reads the visible text of a PDF page from its drawing operators. Unlike the text that pdf.js extracts, these tell
 * which text is drawn invisibly (see pdf-hidden-text.ts). PDF 1.7 (ISO 32000-1), sections 8 and 9, defines the
 * operators and their state.
 */

import type { PDFOperatorList } from 'pdfjs-dist/types/src/display/api.js';
import { piecesOfGlyphs, type GlyphPiece } from './pdf-glyphs.ts';
import { MIN_READABLE_SIZE, placeRun, type PageRuns, type Run } from './pdf-runs.ts';

/** The visible text of a PDF page, read from its drawing operators. */
export interface DrawnPage extends PageRuns {
  /**
   * Whether hidden text counts as the page's text because it probably comes from text recognition (OCR): there is
   * hidden text, and either no text on the page is visible, or an image is drawn with at least half of the page's area.
   */
  readonly isRecognised: boolean;
}

/**
 * Numeric codes, in the lists of pdf.js, of the drawing operators that are interpreted, by the operators' names (`OPS`
 * of pdf.js).
 */
export type OperatorCodes = Readonly<Record<keyof typeof OPERATORS, number>>;

/**
 * Reads the visible text of a page from its drawing operators. Text that is drawn invisibly, smaller than 1 point or
 * outside of the page counts as hidden.
 * @param list operators that draw the page without its annotations
 * @param codes numbers of the operators in `list`
 * @param view the page's box in points: left, bottom, right, top
 */
export function drawnText(list: PDFOperatorList, codes: OperatorCodes, view: readonly number[]): DrawnPage {
  const drawing: Drawing = {
    view,
    runs: [],
    stack: [],
    state: INITIAL_STATE,
    textMatrix: IDENTITY,
    lineMatrix: IDENTITY,
    hidden: 0,
    afterSpace: false,
    isAfterTransform: false,
    isOnImage: false,
  };
  const operators = new Map(
    Object.entries(OPERATORS).map(([name, operator]) => [codes[name as keyof typeof OPERATORS], operator]),
  );
  for (let index = 0; index < list.fnArray.length; index += 1) {
    const code = list.fnArray[index]!;
    operators.get(code)?.(drawing, (list.argsArray[index] ?? []) as unknown[]);
    drawing.isAfterTransform = code === codes.transform;
  }
  const { runs, hidden, isOnImage } = drawing;
  return {
    runs,
    isTextHidden: hidden > 0,
    isRecognised: hidden > 0 && (runs.length === 0 || isOnImage),
  };
}

/** A matrix [a, b, c, d, e, f], which maps coordinates (x, y) to (ax + cy + e, bx + dy + f). */
type Matrix = readonly [number, number, number, number, number, number];

const IDENTITY: Matrix = [1, 0, 0, 1, 0, 0];

/**
 * The part of PDF's graphics state that this file interprets: the matrix of coordinates and the settings of text. The
 * operator `save`, or the start of a form, stores it, and `restore`, or the end of the form, brings it back. Lengths
 * are in PDF's text space.
 */
interface TextState {
  /**
   * Current transformation matrix (CTM): from the coordinates of the drawing operators to the coordinates of the page.
   */
  readonly ctm: Matrix;
  readonly font: string;
  readonly size: number;
  /** Text rendering mode; 3 and 7 are invisible. */
  readonly mode: number;
  readonly charSpacing: number;
  readonly wordSpacing: number;
  /** Horizontal scaling of text as a factor; 1 for none. */
  readonly hScale: number;
  /** Distance along y by which `nextLine` moves to the next line: negative where lines go down. */
  readonly leading: number;
  /** Distance by which text is shifted up from its baseline. */
  readonly rise: number;
}

const INITIAL_STATE: TextState = {
  ctm: IDENTITY,
  font: '',
  size: 0,
  mode: 0,
  charSpacing: 0,
  wordSpacing: 0,
  hScale: 1,
  leading: 0,
  rise: 0,
};

/** The state of a page while its drawing operators are interpreted. */
interface Drawing {
  /** The page's box in points: left, bottom, right, top. */
  readonly view: readonly number[];
  readonly runs: Run[];
  readonly stack: TextState[];
  state: TextState;
  textMatrix: Matrix;
  lineMatrix: Matrix;
  /** Number of pieces of text on the page that are not visible. */
  hidden: number;
  /** Whether white space was drawn since the last visible piece of text. */
  afterSpace: boolean;
  /** Whether the operator before this one is `transform`. */
  isAfterTransform: boolean;
  /** Whether an image was drawn with at least half of the page's area (`coversPage`). */
  isOnImage: boolean;
}

/**
 * A function for each operator that changes the state of a drawing as the operator does. The names of the operators are
 * those of pdf.js.
 */
const OPERATORS = {
  save(drawing) {
    drawing.stack.push(drawing.state);
  },
  restore(drawing) {
    // Images are never decoded. They leave nothing but their place, which is set up and given up at once.
    drawing.isOnImage ||= drawing.isAfterTransform && coversPage(drawing.state.ctm, drawing.view);
    drawing.state = drawing.stack.pop() ?? drawing.state;
  },
  transform(drawing, args) {
    change(drawing, { ctm: multiply(drawing.state.ctm, matrixOf(args)) });
  },
  paintFormXObjectBegin(drawing, args) {
    drawing.stack.push(drawing.state);
    if (args[0] != null) change(drawing, { ctm: multiply(drawing.state.ctm, matrixOf(args[0] as unknown[])) });
  },
  paintFormXObjectEnd(drawing) {
    drawing.state = drawing.stack.pop() ?? drawing.state;
  },
  beginText(drawing) {
    drawing.textMatrix = drawing.lineMatrix = IDENTITY;
  },
  setFont: (drawing, args) => change(drawing, { font: String(args[0]), size: numberAt(args, 1) }),
  setTextRenderingMode: (drawing, args) => change(drawing, { mode: numberAt(args, 0) }),
  setCharSpacing: (drawing, args) => change(drawing, { charSpacing: numberAt(args, 0) }),
  setWordSpacing: (drawing, args) => change(drawing, { wordSpacing: numberAt(args, 0) }),
  setHScale: (drawing, args) => change(drawing, { hScale: numberAt(args, 0) / 100 }),
  setLeading: (drawing, args) => change(drawing, { leading: -numberAt(args, 0) }),
  setTextRise: (drawing, args) => change(drawing, { rise: numberAt(args, 0) }),
  setLeadingMoveText(drawing, args) {
    change(drawing, { leading: numberAt(args, 1) });
    moveLine(drawing, numberAt(args, 0), numberAt(args, 1));
  },
  moveText: (drawing, args) => moveLine(drawing, numberAt(args, 0), numberAt(args, 1)),
  nextLine: (drawing) => moveLine(drawing, 0, drawing.state.leading),
  setTextMatrix(drawing, args) {
    const values = args[0] instanceof Object ? Array.from(args[0] as number[]) : args;
    drawing.textMatrix = drawing.lineMatrix = matrixOf(values);
  },
  showText,
} satisfies Record<string, (drawing: Drawing, args: readonly unknown[]) => void>;

function change(drawing: Drawing, changes: Partial<TextState>): void {
  drawing.state = { ...drawing.state, ...changes };
}

function moveLine(drawing: Drawing, x: number, y: number): void {
  drawing.lineMatrix = multiply(drawing.lineMatrix, [1, 0, 0, 1, x, y]);
  drawing.textMatrix = drawing.lineMatrix;
}

function showText(drawing: Drawing, args: readonly unknown[]): void {
  const { state, textMatrix } = drawing;
  const shown = piecesOfGlyphs(args[0] as readonly unknown[], state);
  const isInvisible = state.mode === 3 || state.mode === 7;
  for (const piece of isInvisible ? [] : shown.pieces) {
    const run = runOfPiece(piece, state, textMatrix, drawing.afterSpace);
    if (run.size < MIN_READABLE_SIZE || !isOnPage(run, drawing.view)) {
      drawing.hidden += 1;
      continue;
    }
    drawing.runs.push(run);
    drawing.afterSpace = false;
  }
  if (isInvisible) drawing.hidden += shown.pieces.length;
  else drawing.afterSpace ||= shown.endsInSpace;
  drawing.textMatrix = multiply(textMatrix, [1, 0, 0, 1, shown.advance, 0]);
}

function runOfPiece(piece: GlyphPiece, state: TextState, textMatrix: Matrix, afterSpace: boolean): Run {
  const placed = multiply(state.ctm, multiply(textMatrix, [1, 0, 0, 1, piece.start, state.rise]));
  return placeRun({
    text: piece.text,
    x: placed[4],
    y: placed[5],
    angle: (Math.atan2(placed[1], placed[0]) * 180) / Math.PI,
    length: (piece.end - piece.start) * Math.hypot(placed[0], placed[1]),
    size: Math.abs(state.size) * Math.hypot(placed[2], placed[3]),
    font: state.font,
    isRtl: piece.isRtl,
    afterSpace,
  });
}

/**
 * Tells whether any part of a run is on the page. The answer is always true for turned text, and always false for
 * coordinates that are not finite.
 */
function isOnPage(run: Run, view: readonly number[]): boolean {
  if (!Number.isFinite(run.left + run.right + run.baseline + run.size)) return false;
  const [left = 0, bottom = 0, right = 0, top = 0] = view;
  return (
    run.direction !== 0 || (run.right >= left && run.left <= right && run.baseline >= bottom && run.baseline <= top)
  );
}

/**
 * Tells whether an image has at least half of the page's area; where it lies is not checked. An image fills the unit
 * square, which the matrix maps to the page.
 */
function coversPage(ctm: Matrix, view: readonly number[]): boolean {
  const [left = 0, bottom = 0, right = 0, top = 0] = view;
  return Math.abs(ctm[0] * ctm[3] - ctm[1] * ctm[2]) >= 0.5 * (right - left) * (top - bottom);
}

function numberAt(args: readonly unknown[], index: number): number {
  return Number(args[index] ?? 0);
}

function matrixOf(values: readonly unknown[]): Matrix {
  const [a = 1, b = 0, c = 0, d = 1, e = 0, f = 0] = values.map(Number);
  return [a, b, c, d, e, f];
}

function multiply(m: Matrix, n: Matrix): Matrix {
  return [
    m[0] * n[0] + m[2] * n[1],
    m[1] * n[0] + m[3] * n[1],
    m[0] * n[2] + m[2] * n[3],
    m[1] * n[2] + m[3] * n[3],
    m[0] * n[4] + m[2] * n[5] + m[4],
    m[1] * n[4] + m[3] * n[5] + m[5],
  ];
}
