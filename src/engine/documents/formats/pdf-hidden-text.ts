import { constants, inflateSync } from 'node:zlib';
import type { PDFOperatorList } from 'pdfjs-dist/types/src/display/api.js';
import { LEAST_READABLE_SIZE, placeRun, type PageRuns, type Run } from './pdf-runs.ts';

/**
 * Text that is drawn in PDF's text rendering modes 3 and 7 is never seen. Under the image of a scanned page it is what a text
 * recogniser read, so it is the page's text; beside visible text it is there to be found by machines only, and is left out.
 *
 * pdf.js gives a page's text without these modes, and its list of drawing operators, which has them, costs as much again. So the
 * file is asked first whether it can hold such text at all.
 */

/** Beyond this much of inflated content a file is not searched but taken to hold hidden text. */
const SEARCHED_BYTES = 64 * 1024 * 1024;
const DICTIONARY_BYTES = 1024;

/**
 * Whether a content stream may switch to an invisible mode. Images are passed over; what is compressed in another way than
 * Flate, is encrypted or does not inflate may.
 */
export function mayHideText(file: Uint8Array): boolean {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  if (bytes.includes('/Encrypt')) return true;
  let budget = SEARCHED_BYTES;
  let at = 0;
  for (;;) {
    const keyword = bytes.indexOf('stream', at);
    if (keyword === -1) return false;
    const start = startOfData(bytes, keyword + 'stream'.length);
    const dictionary = bytes.toString('latin1', Math.max(at, keyword - DICTIONARY_BYTES), keyword);
    const end = bytes.indexOf('endstream', start);
    at = end === -1 ? bytes.length : end + 'endstream'.length;
    const content = contentOf(dictionary, bytes.subarray(start, end === -1 ? bytes.length : end), budget);
    if (content === 'unknown' || hasInvisibleMode(content)) return true;
    budget -= content.length;
  }
}

function startOfData(bytes: Buffer, afterKeyword: number): number {
  if (bytes[afterKeyword] === 0x0d && bytes[afterKeyword + 1] === 0x0a) return afterKeyword + 2;
  return bytes[afterKeyword] === 0x0a ? afterKeyword + 1 : afterKeyword;
}

const NOTHING = Buffer.alloc(0);

function contentOf(dictionary: string, data: Buffer, budget: number): Buffer | 'unknown' {
  const own = dictionary.slice(dictionary.lastIndexOf(' obj') + 1);
  if (/\/Subtype\s*\/Image\b/.test(own)) return NOTHING;
  const filters = /\/(?:Filter|F)\s*(\[[^\]]*\]|\/\w+)/.exec(own)?.[1];
  if (filters === undefined) return data.length <= budget ? data : 'unknown';
  if (!/^\[?\s*\/(?:FlateDecode|Fl)\s*\]?$/.test(filters)) return 'unknown';
  if (budget <= 0) return 'unknown';
  try {
    return inflateSync(data, { maxOutputLength: budget, finishFlush: constants.Z_SYNC_FLUSH });
  } catch {
    return 'unknown';
  }
}

const BLANKS = new Set([0x00, 0x09, 0x0a, 0x0c, 0x0d, 0x20]);

/** Looks for `3 Tr` and `7 Tr`, also where a name or a string happens to hold it: a false alarm costs time only. */
function hasInvisibleMode(content: Buffer): boolean {
  for (let at = content.indexOf('Tr'); at !== -1; at = content.indexOf('Tr', at + 2)) {
    let before = at - 1;
    while (before >= 0 && BLANKS.has(content[before]!)) before -= 1;
    if (before < at - 1 && (content[before] === 0x33 || content[before] === 0x37)) return true;
  }
  return false;
}

type Matrix = readonly [number, number, number, number, number, number];

interface TextState {
  readonly ctm: Matrix;
  readonly font: string;
  readonly size: number;
  readonly mode: number;
  readonly charSpacing: number;
  readonly wordSpacing: number;
  readonly hScale: number;
  readonly leading: number;
  readonly rise: number;
}

const INITIAL_STATE: TextState = {
  ctm: [1, 0, 0, 1, 0, 0],
  font: '',
  size: 0,
  mode: 0,
  charSpacing: 0,
  wordSpacing: 0,
  hScale: 1,
  leading: 0,
  rise: 0,
};

export interface DrawnPage extends PageRuns {
  /** Something is drawn invisibly, and nothing is there to be seen or it lies on the image of a page. */
  readonly isRecognised: boolean;
}

/** As pdf.js names its operators. */
export type OperatorCodes = Readonly<
  Record<
    | 'save'
    | 'restore'
    | 'transform'
    | 'beginText'
    | 'setFont'
    | 'setTextRenderingMode'
    | 'setCharSpacing'
    | 'setWordSpacing'
    | 'setHScale'
    | 'setLeading'
    | 'setTextRise'
    | 'moveText'
    | 'setLeadingMoveText'
    | 'setTextMatrix'
    | 'nextLine'
    | 'showText'
    | 'paintFormXObjectBegin'
    | 'paintFormXObjectEnd',
    number
  >
>;

/**
 * The visible text of a page, read from its operators.
 * @param view the page's box: left, bottom, right, top
 */
export function drawnText(list: PDFOperatorList, codes: OperatorCodes, view: readonly number[]): DrawnPage {
  const runs: Run[] = [];
  const stack: TextState[] = [];
  let state = INITIAL_STATE;
  let textMatrix: Matrix = INITIAL_STATE.ctm;
  let lineMatrix: Matrix = INITIAL_STATE.ctm;
  let hidden = 0;
  let afterSpace = false;
  let isOnImage = false;
  const moveLine = (x: number, y: number) => {
    lineMatrix = multiply(lineMatrix, [1, 0, 0, 1, x, y]);
    textMatrix = lineMatrix;
  };
  for (let index = 0; index < list.fnArray.length; index += 1) {
    const args = (list.argsArray[index] ?? []) as unknown[];
    const number = (at: number) => Number(args[at] ?? 0);
    switch (list.fnArray[index]) {
      case codes.save:
        stack.push(state);
        break;
      case codes.restore:
        // Images are never decoded and leave nothing but their place, which is set up and given up at once.
        isOnImage ||= list.fnArray[index - 1] === codes.transform && coversPage(state.ctm, view);
        state = stack.pop() ?? state;
        break;
      case codes.transform:
        state = { ...state, ctm: multiply(state.ctm, matrixOf(args)) };
        break;
      case codes.paintFormXObjectBegin:
        stack.push(state);
        if (args[0] != null) state = { ...state, ctm: multiply(state.ctm, matrixOf(args[0] as unknown[])) };
        break;
      case codes.paintFormXObjectEnd:
        state = stack.pop() ?? state;
        break;
      case codes.beginText:
        textMatrix = lineMatrix = INITIAL_STATE.ctm;
        break;
      case codes.setFont:
        state = { ...state, font: String(args[0]), size: number(1) };
        break;
      case codes.setTextRenderingMode:
        state = { ...state, mode: number(0) };
        break;
      case codes.setCharSpacing:
        state = { ...state, charSpacing: number(0) };
        break;
      case codes.setWordSpacing:
        state = { ...state, wordSpacing: number(0) };
        break;
      case codes.setHScale:
        state = { ...state, hScale: number(0) / 100 };
        break;
      case codes.setLeading:
        state = { ...state, leading: -number(0) };
        break;
      case codes.setTextRise:
        state = { ...state, rise: number(0) };
        break;
      case codes.setLeadingMoveText:
        state = { ...state, leading: number(1) };
        moveLine(number(0), number(1));
        break;
      case codes.moveText:
        moveLine(number(0), number(1));
        break;
      case codes.nextLine:
        moveLine(0, state.leading);
        break;
      case codes.setTextMatrix:
        textMatrix = lineMatrix = matrixOf(args[0] instanceof Object ? Array.from(args[0] as number[]) : args);
        break;
      case codes.showText: {
        const shown = showGlyphs(args[0] as readonly unknown[], state);
        const isInvisible = state.mode === 3 || state.mode === 7;
        for (const piece of isInvisible ? [] : shown.pieces) {
          const run = runOfPiece(piece, state, textMatrix, afterSpace);
          if (run.size < LEAST_READABLE_SIZE || !isOnPage(run, view)) {
            hidden += 1;
            continue;
          }
          runs.push(run);
          afterSpace = false;
        }
        if (isInvisible) hidden += shown.pieces.length;
        else afterSpace ||= shown.endsInSpace;
        textMatrix = multiply(textMatrix, [1, 0, 0, 1, shown.advance, 0]);
        break;
      }
      default:
    }
  }
  return {
    runs,
    isTextHidden: hidden > 0,
    isRecognised: hidden > 0 && (runs.length === 0 || isOnImage),
  };
}

interface Piece {
  readonly text: string;
  readonly isRtl: boolean;
  /** In text space. */
  readonly start: number;
  readonly end: number;
}

interface Glyph {
  readonly unicode: string;
  readonly width: number;
  readonly isSpace: boolean;
}

/** A shown string in pieces that are parted by its wide gaps, as a string may hold a whole row of a table. */
function showGlyphs(
  shown: readonly unknown[],
  state: TextState,
): { pieces: Piece[]; advance: number; endsInSpace: boolean } {
  const pieces: Piece[] = [];
  let letters: string[] = [];
  let start = 0;
  let end = 0;
  let at = 0;
  const finish = () => {
    if (letters.length > 0) pieces.push({ ...logicalText(letters), start, end });
    letters = [];
  };
  for (const entry of shown) {
    if (typeof entry === 'number') {
      at -= (entry / 1000) * state.size * state.hScale;
      continue;
    }
    const glyph = entry as Glyph;
    const width = (glyph.width / 1000) * state.size * state.hScale;
    if (glyph.unicode.trim() !== '') {
      const gap = at - end;
      if (letters.length > 0 && gap > state.size) finish();
      else if (letters.length > 0 && gap > 0.15 * state.size) letters.push(' ');
      if (letters.length === 0) start = at;
      letters.push(glyph.unicode);
      end = at + width;
    }
    at += width + (state.charSpacing + (glyph.isSpace ? state.wordSpacing : 0)) * state.hScale;
  }
  finish();
  return { pieces, advance: at, endsInSpace: at - end > 0.15 * Math.abs(state.size) };
}

const RIGHT_TO_LEFT = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
const LEFT_TO_RIGHT = /[\p{L}\p{N}]/u;

/**
 * Right-to-left text is drawn in the order of the eye. It is turned round glyph by glyph, since one glyph may stand for two
 * letters, and numbers and foreign words in it are turned back.
 */
function logicalText(letters: readonly string[]): { text: string; isRtl: boolean } {
  if (!letters.some((letter) => RIGHT_TO_LEFT.test(letter))) return { text: letters.join(''), isRtl: false };
  const ordered: string[] = [];
  let foreign: string[] = [];
  for (const letter of letters.toReversed()) {
    if (
      !RIGHT_TO_LEFT.test(letter) &&
      (LEFT_TO_RIGHT.test(letter) || (foreign.length > 0 && /[.,:/%-]/.test(letter)))
    ) {
      foreign.push(letter);
      continue;
    }
    ordered.push(...foreign.reverse(), letter);
    foreign = [];
  }
  return { text: [...ordered, ...foreign.reverse()].join('').normalize('NFKC'), isRtl: true };
}

function runOfPiece(piece: Piece, state: TextState, textMatrix: Matrix, afterSpace: boolean): Run {
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

/** Text that is turned is not looked for beyond the edges. False for places that are no numbers. */
function isOnPage(run: Run, view: readonly number[]): boolean {
  if (!Number.isFinite(run.left + run.right + run.baseline + run.size)) return false;
  const [left = 0, bottom = 0, right = 0, top = 0] = view;
  return (
    run.direction !== 0 || (run.right >= left && run.left <= right && run.baseline >= bottom && run.baseline <= top)
  );
}

/** An image fills the unit square of its coordinates. */
function coversPage(ctm: Matrix, view: readonly number[]): boolean {
  const [left = 0, bottom = 0, right = 0, top = 0] = view;
  return Math.abs(ctm[0] * ctm[3] - ctm[1] * ctm[2]) >= 0.5 * (right - left) * (top - bottom);
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
