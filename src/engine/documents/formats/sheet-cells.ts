import { childrenNamed, decodeXml, parseXml, type XmlElement } from '../xml.ts';

export interface Cell {
  /** From 1. */
  readonly row: number;
  /** From 1. */
  readonly column: number;
  /** As the file says: s, inlineStr, str, b, e, d; n for none. */
  readonly type: string;
  /** Index of its format. */
  readonly style: number;
  readonly element: XmlElement;
}

/** Rows are parsed in pieces of this many characters: the tree of a whole sheet takes thirty times its text. */
const PIECE_CHARACTERS = 500_000;
/** What Excel allows. */
const COLUMNS_MOST = 16_384;

/**
 * Cells of a sheet in the order of the file. Cells without content, which a coloured sheet has by the million, never become a tree.
 * @throws DocumentError as `parseXml`
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

/** Whole rows. */
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

/** Of a reference such as AB12. */
function columnOf(reference: string): number | undefined {
  const letters = /^[A-Z]{1,3}/.exec(reference)?.[0];
  if (letters === undefined) return undefined;
  let column = 0;
  for (const letter of letters) column = column * 26 + letter.charCodeAt(0) - 64;
  return Math.min(column, COLUMNS_MOST);
}
