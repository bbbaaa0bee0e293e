import { renderTable, splitHeader } from './markdown-table.ts';

export interface TextCell {
  /** From 1. */
  readonly row: number;
  /** From 1. */
  readonly column: number;
  /** Not ''. */
  readonly text: string;
}

/** A table of which less is filled would be mostly bars, and could be thousands of times its content. */
const LEAST_FILLED = 0.2;
/** A small table may be as empty as it likes. */
const SMALL_AREA = 1_000;

/** The cells of a sheet, row by row, as Markdown: a table for each run of rows without an empty row in between. */
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

/** Rows of one cell before a table are its title and notes; a region of nothing else is a list of lines. */
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
  if (area > SMALL_AREA && filled < LEAST_FILLED * area) return rows.flatMap((row) => row.map(renderLoose)).join('\n');
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

/** A cell by its reference, such as AB12. */
function renderLoose({ row, column, text }: TextCell): string {
  let letters = '';
  for (let rest = column; rest > 0; rest = Math.floor((rest - 1) / 26)) {
    letters = String.fromCharCode(65 + ((rest - 1) % 26)) + letters;
  }
  return `${letters}${row}: ${text.replace(/\s+/g, ' ')}`;
}
