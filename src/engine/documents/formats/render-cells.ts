import { renderTable, splitHeader } from './markdown-table.ts';

/** A cell of a sheet that has content, with its text as it is displayed. */
export interface TextCell {
  /** Row number from 1. */
  readonly row: number;
  /** Column number from 1. */
  readonly column: number;
  /** Text of the cell, never ''. */
  readonly text: string;
}

/**
 * Least share of filled cells in a large table that is rendered as a table. An emptier one would consist mainly of `|`,
 * and could be thousands of times as long as its content.
 */
const MIN_FILLED = 0.2;
/** Greatest number of cells, empty ones included, of a table to which `MIN_FILLED` does not apply. */
const SMALL_AREA = 1_000;

/**
 * Renders the cells of a sheet as Markdown. Consecutive rows form a region, and an empty row ends it. The rows of a
 * single cell at the top of a region, such as a title and notes, become lines of text; from its first row of several
 * cells on, all its rows become one table. A large table with few filled cells becomes lines such as `AB12: text`.
 * @param cells cells with content in the order of rows, and of columns within a row; '' is returned if there are none
 */
export function renderCells(cells: readonly TextCell[]): string {
  return regionsOf(cells).map(renderRegion).join('\n\n');
}

type Row = readonly TextCell[];

function regionsOf(cells: readonly TextCell[]): Row[][] {
  const regions: Row[][] = [];
  let row: TextCell[] = [];
  for (const cell of cells) {
    const last = row.at(-1)?.row ?? -1;
    if (cell.row === last) {
      row.push(cell);
      continue;
    }
    row = [cell];
    if (cell.row === last + 1) regions.at(-1)!.push(row);
    else regions.push([row]);
  }
  return regions;
}

/**
 * Renders consecutive rows. Rows of a single cell before the first row of several cells become lines of text, such as
 * the title and notes of the table that follows.
 */
function renderRegion(region: readonly Row[]): string {
  const head = region.findIndex((row) => row.length > 1);
  const lines = (head < 0 ? region : region.slice(0, head)).map((row) => row[0]!.text.replace(/\s+/g, ' '));
  const table = head < 0 ? [] : region.slice(head);
  return [lines.join('\n'), renderRows(table)].filter((block) => block !== '').join('\n\n');
}

function renderRows(rows: readonly Row[]): string {
  if (rows.length === 0) return '';
  const used = new Set<number>();
  let filled = 0;
  for (const row of rows) {
    for (const { column } of row) used.add(column);
    filled += row.length;
  }
  const area = rows.length * used.size;
  if (area > SMALL_AREA && filled < MIN_FILLED * area) return rows.flatMap((row) => row.map(renderCellLine)).join('\n');
  const columns = [...used].sort((a, b) => a - b);
  const places = new Map(columns.map((column, place) => [column, place]));
  const grid = rows.map((row) => fill(row, places));
  const table = splitHeader(grid);
  return renderTable(table.header, table.rows);
}

function fill(row: Row, places: ReadonlyMap<number, number>): string[] {
  const texts: string[] = [];
  for (const { column, text } of row) {
    const place = places.get(column)!;
    while (texts.length <= place) texts.push('');
    texts[place] = text;
  }
  return texts;
}

/**
 * Renders a cell of a large, mostly empty table as one line: its reference, then its text with blanks folded (`AB12:
 * text`).
 */
function renderCellLine({ row, column, text }: TextCell): string {
  let letters = '';
  for (let rest = column; rest > 0; rest = Math.floor((rest - 1) / 26)) {
    letters = String.fromCharCode(65 + ((rest - 1) % 26)) + letters;
  }
  return `${letters}${row}: ${text.replace(/\s+/g, ' ')}`;
}
