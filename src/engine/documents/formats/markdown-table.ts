/** Number of rows after which the header is repeated, so that the columns have names in every chunk. */
const ROWS_PER_HEADER = 50;
/** Number of characters of rows after which the header is repeated, so that the columns have names in every chunk. */
const CHARACTERS_PER_HEADER = 4_000;
/**
 * Least length of the rows between two headers, as a multiple of the header's length. It keeps the length of the output
 * linear even if the header is long.
 */
const HEADERS_SHARE = 4;

/**
 * Renders rows as several Markdown tables, each with the same header, separated by blank lines. A table has about 50
 * rows or 4,000 characters, and more if the header is long. Without rows, only the header is rendered. Rows are not
 * padded to the header's length.
 */
export function renderTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const head = `${renderRow(header)}\n${renderRow(header.map(() => '---'))}`;
  const tables: string[] = [];
  let lines: string[] = [head];
  let characters = 0;
  for (const row of rows) {
    const isLong = lines.length > ROWS_PER_HEADER || characters > CHARACTERS_PER_HEADER;
    if (isLong && characters > HEADERS_SHARE * head.length) {
      tables.push(lines.join('\n'));
      lines = [head];
      characters = 0;
    }
    const line = renderRow(row);
    lines.push(line);
    characters += line.length;
  }
  return [...tables, lines.join('\n')].join('\n\n');
}

/**
 * Separates the header from the rows below it. The first row is the header if more rows follow and none of its cells is
 * empty, a number or a date. Otherwise the header has the numbers of the columns from 1, since Markdown tables need a
 * header, and all rows are returned as rows.
 */
export function splitHeader(rows: readonly (readonly string[])[]): {
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
} {
  const [first = [], ...rest] = rows;
  const isHeader = first.length > 0 && first.every((cell) => cell.trim() !== '' && !isNumeric(cell));
  if (isHeader && rest.length > 0) return { header: first, rows: rest };
  let columns = 0;
  for (const row of rows) columns = Math.max(columns, row.length);
  return { header: Array.from({ length: columns }, (_, index) => String(index + 1)), rows };
}

/** Greatest length of a cell that may be a number, in characters. */
const NUMBER_CHARACTERS = 64;

function isNumeric(cell: string): boolean {
  const text = cell.trim();
  if (/^\d{4}-\d{2}-\d{2}/.test(text)) return true;
  return text.length <= NUMBER_CHARACTERS && /^[-+]?[\d.,\s]+%?$/.test(text);
}

function renderRow(cells: readonly string[]): string {
  return `| ${cells.map(escapeCell).join(' | ')} |`;
}

/** Converts a cell to one line with single blanks, and escapes its `|`; other Markdown marks are kept. */
function escapeCell(cell: string): string {
  return /[|\s]/.test(cell) ? cell.trim().replace(/\s+/g, ' ').replaceAll('|', '\\|') : cell;
}
