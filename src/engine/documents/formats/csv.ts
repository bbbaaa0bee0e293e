import type { CsvError } from 'csv-parse/sync';
import { decodeText } from '../decode-text.ts';
import { DocumentError } from '../document-error.ts';
import type { FormatParser } from '../parsed-document.ts';
import { bareDocument } from './bare-document.ts';
import { renderTable, splitHeader } from './markdown-table.ts';

/** Greatest number of rows of a file, header included; a larger file is refused. */
const MAX_ROWS = 200_000;

/**
 * Reads a file of rows and separated cells (CSV) as Markdown tables, which repeat their header. The separator is a
 * comma, semicolon, tab or bar, as the first lines show; it is a tab if the extension is tsv. Empty rows are left out.
 * @throws DocumentError `document_too_large` for more than 200,000 rows; `corrupt_document` if the rows cannot be
 *   separated; `unsupported_encoding`
 */
export const readCsv: FormatParser = async (bytes, { charset, extension }) => {
  const { text, ...told } = await decodeText(bytes, charset);
  const rows = await parseRows(text, extension === 'tsv' ? '\t' : delimiterOf(text));
  if (rows.length > MAX_ROWS) {
    throw new DocumentError('document_too_large', `The table has more than ${MAX_ROWS} rows: split the file.`);
  }
  if (rows.length === 0) return bareDocument('', told);
  const table = splitHeader(rows);
  return bareDocument(renderTable(table.header, table.rows), told);
};

async function parseRows(text: string, delimiter: string): Promise<string[][]> {
  const { parse, CsvError: ParseError } = await import('csv-parse/sync');
  const options = {
    delimiter,
    relaxColumnCount: true,
    relaxQuotes: true,
    skipEmptyLines: true,
    skipRecordsWithEmptyValues: true,
    to: MAX_ROWS + 1,
  };
  try {
    return parse(text, options);
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    // A quote that nothing closes is a character like any other: inches, or an apostrophe of a kind.
    if (UNCLOSED.has(error.code)) return parse(text, { ...options, quote: false });
    throw new DocumentError('corrupt_document', 'The rows of the table cannot be told apart.', { cause: error });
  }
}

const UNCLOSED = new Set<CsvError['code']>([
  'CSV_QUOTE_NOT_CLOSED',
  'CSV_INVALID_CLOSING_QUOTE',
  'INVALID_OPENING_QUOTE',
]);

/** Number of characters at the start of a file from which its separator is determined. */
const JUDGED_CHARACTERS = 20_000;
/** Number of lines at the start of a file from which its separator is determined. */
const JUDGED_LINES = 20;
const DELIMITERS = [',', ';', '\t', '|'] as const;

/**
 * Returns the separator with the highest rating: 100 times the share of lines (0..1) that have as many cells as the
 * first line, plus the number of cells of the first line, at most 50. Returns a comma if no separator occurs in the
 * first line.
 */
function delimiterOf(text: string): string {
  const start = text.slice(0, JUDGED_CHARACTERS).replace(/"[^"]*"/g, '');
  const lines = start.split('\n', JUDGED_LINES).filter((line) => line.trim() !== '');
  let best: { readonly delimiter: string; readonly rating: number } = { delimiter: ',', rating: 0 };
  for (const delimiter of DELIMITERS) {
    const cells = lines.map((line) => line.split(delimiter).length);
    const [columns = 1] = cells;
    const alike = cells.filter((count) => count === columns).length / cells.length;
    const rating = columns > 1 ? alike * 100 + Math.min(columns, 50) : 0;
    if (rating > best.rating) best = { delimiter, rating };
  }
  return best.delimiter;
}
