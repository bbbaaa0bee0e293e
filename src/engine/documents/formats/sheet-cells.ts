import { childrenNamed, decodeXml, parseXml, type XmlElement } from '../xml.ts';

/** A cell of a sheet as it is in the file. */
export interface Cell {
  /** Row number from 1. */
  readonly row: number;
  /** Column number from 1. */
  readonly column: number;
  /**
   * Type in the file: `s` (index of a shared string), `inlineStr`, `str` (text of a formula), `b` (0 or 1), `e`
   * (error), `d` (date as text), `n` (number, also if the file states no type).
   */
  readonly type: string;
  /** Index of the cell's style, from 0, in the result of `cellFormats`. */
  readonly style: number;
  /** The cell's element, which contains its value. */
  readonly element: XmlElement;
}

/**
 * Number of characters of rows that are parsed at a time, since the tree of a whole sheet takes thirty times as much
 * memory as its text.
 */
const PIECE_CHARACTERS = 500_000;
/** Greatest column number that Excel allows. */
const MAX_COLUMNS = 16_384;

/**
 * Reads the cells of a sheet's XML part in the order of the file. Cells that are written as one tag without content, of
 * which a coloured sheet may have millions, are skipped before anything is parsed.
 * @throws DocumentError `corrupt_document` if the XML is not well-formed, `document_too_complex` beyond the limits, or
 *   `unsupported_encoding`
 */
export function* readCells(bytes: Uint8Array): Generator<Cell> {
  const xml = decodeXml(bytes).replace(BLANK_CELL, '');
  let row = 0;
  for (const piece of piecesOf(xml)) {
    for (const element of childrenNamed(parseXml(Buffer.from(`<rows>${piece}</rows>`)), 'row')) {
      row = Number(element.attributes.get('r')) || row + 1;
      yield* cellsOfRow(element, row);
    }
  }
}

const BLANK_CELL = /<(?:\w{1,20}:)?c(?:\s[^<>]*)?\/>/g;
const ROW_START = /<(?:\w{1,20}:)?row[\s>/]/g;
const ROW_END = /<\/(?:\w{1,20}:)?row\s*>|<(?:\w{1,20}:)?row(?:\s[^<>]*)?\/>/g;

/**
 * Cuts a sheet's XML into parts of whole rows with about 500,000 characters each. What precedes the first row and
 * follows the last is dropped.
 */
function* piecesOf(xml: string): Generator<string> {
  ROW_START.lastIndex = 0;
  let start = ROW_START.exec(xml)?.index ?? xml.length;
  let end = start;
  for (const match of xml.matchAll(ROW_END)) {
    end = match.index + match[0].length;
    if (end - start < PIECE_CHARACTERS) continue;
    yield xml.slice(start, end);
    start = end;
  }
  if (end > start) yield xml.slice(start, end);
}

function* cellsOfRow(element: XmlElement, row: number): Generator<Cell> {
  let column = 0;
  for (const cell of childrenNamed(element, 'c')) {
    column = columnOf(cell.attributes.get('r') ?? '') ?? column + 1;
    const type = cell.attributes.get('t') ?? 'n';
    yield { row, column, type, style: Number(cell.attributes.get('s') ?? 0), element: cell };
  }
}

/**
 * Returns the column number, from 1, of a reference such as AB12, at most 16,384; undefined if it does not begin with
 * capital letters.
 */
function columnOf(reference: string): number | undefined {
  const letters = /^[A-Z]{1,3}/.exec(reference)?.[0];
  if (letters === undefined) return undefined;
  let column = 0;
  for (const letter of letters) column = column * 26 + letter.charCodeAt(0) - 64;
  return Math.min(column, MAX_COLUMNS);
}
