/** After so many rows, or so many characters, the header is repeated: whichever chunk a row falls into, its columns have names. */
const ROWS_PER_HEADER = 50;
const CHARACTERS_PER_HEADER = 4_000;
/** A header that is itself long is repeated less often: rows come to this many times its length, so that the text stays linear. */
const HEADERS_SHARE = 4;

/** Rows as Markdown tables of about 50 rows, each under the header again, with a blank line between them. */
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
 * The first row as a header where it looks like one: names, no numbers, none of them missing. Else columns have numbers, since
 * Markdown knows no table without a header.
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

function isNumeric(cell: string): boolean {
  return /^\s*[-+]?[\d.,\s]+%?\s*$/.test(cell) || /^\s*\d{4}-\d{2}-\d{2}/.test(cell);
}

function renderRow(cells: readonly string[]): string {
  return `| ${cells.map(escapeCell).join(' | ')} |`;
}

/** On one line, its own bars escaped. */
function escapeCell(cell: string): string {
  return /[|\s]/.test(cell) ? cell.trim().replace(/\s+/g, ' ').replaceAll('|', '\\|') : cell;
}
