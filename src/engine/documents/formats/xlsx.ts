import type { DocumentWarning } from '../../types.ts';
import { DocumentError } from '../document-error.ts';
import { type FormatParser, PARSE_LIMITS } from '../parsed-document.ts';
import type { PageStart } from '../../ports.ts';
import { childNamed, childrenNamed, textOf, type XmlElement } from '../xml.ts';
import type { ZipArchive } from '../zip.ts';
import { bareDocument, tooMuchText } from './bare-document.ts';
import { renderCells } from './render-cells.ts';
import { cellFormats, type CellFormat, formatNumber } from './cell-format.ts';
import {
  damaged,
  findMainPart,
  openOfficeArchive,
  readPart,
  readRelationships,
  relationshipId,
} from './office-archive.ts';
import { readCoreProperties } from './office-properties.ts';
import { type Cell, readCells } from './sheet-cells.ts';

/**
 * Greatest number of cells with content in all visible sheets. A workbook with more is refused, as it is a database
 * rather than a document.
 */
const MAX_CELLS = 200_000;

/**
 * Reads a workbook: each sheet is a page below its name, with its cells as Markdown tables. Values are formatted as
 * Excel displays them, if that is cheap to determine: dates in ISO form, percentages, results of formulas as last
 * computed. Hidden sheets, and sheets that cannot be read, are left out with a warning.
 * @throws DocumentError `corrupt_document` if every sheet is damaged, `document_too_large` for too many sheets, cells
 *   or characters; other errors of `openOfficeArchive`
 */
export const readXlsx: FormatParser = async (bytes, { onPage }) => {
  const zip = await openOfficeArchive(bytes);
  const workbook = await readWorkbook(zip);
  const parts: string[] = [];
  const pages: PageStart[] = [];
  const warnings: DocumentWarning[] = [];
  let length = 0;
  let cells = 0;
  for (const [index, sheet] of workbook.sheets.entries()) {
    const page = index + 1;
    const read = sheet.isHidden ? HIDDEN : await readSheet(zip, sheet.part, workbook, MAX_CELLS - cells);
    if ('code' in read) {
      warnings.push({ ...read, page });
    } else {
      const text = `## ${sheet.name}\n\n${read.text}${read.text === '' ? '' : '\n\n'}`;
      pages.push({ page, start: length });
      parts.push(read.cells === 0 ? '' : text);
      length += read.cells === 0 ? 0 : text.length;
      cells += read.cells;
    }
    if (length > PARSE_LIMITS.textCharacters) throw tooMuchText();
    onPage?.(page, workbook.sheets.length);
  }
  if (
    workbook.sheets.length > 0 &&
    warnings.filter(({ code }) => code === 'page_unreadable').length === workbook.sheets.length
  ) {
    throw damaged();
  }
  return bareDocument(parts.join(''), { ...(await readCoreProperties(zip)), pages, warnings });
};

const HIDDEN: DocumentWarning = { code: 'hidden_text_dropped', message: 'A hidden sheet was left out.' };

interface Workbook {
  readonly sheets: readonly { readonly name: string; readonly part: string; readonly isHidden: boolean }[];
  /** The workbook's table of strings; cells refer to them by index. */
  readonly strings: readonly string[];
  /** Formats of cell styles; cells refer to them by index. */
  readonly formats: readonly CellFormat[];
  /** Whether days are counted from 1904 instead of 1900. */
  readonly is1904: boolean;
}

async function readWorkbook(zip: ZipArchive): Promise<Workbook> {
  const main = await findMainPart(zip);
  const root = await readPart(zip, main);
  const relationships = await readRelationships(zip, main);
  const targetOf = (type: string) => relationships.find((relationship) => relationship.type === type)?.target ?? '';
  const targets = new Map(relationships.map(({ id, target }) => [id, target]));
  const list = childNamed(root, 'sheets');
  const sheets = (list === undefined ? [] : childrenNamed(list, 'sheet')).map(({ attributes }) => ({
    name: (attributes.get('name') ?? '').replace(/\s+/g, ' '),
    part: targets.get(relationshipId(attributes)) ?? '',
    isHidden: /hidden/i.test(attributes.get('state') ?? ''),
  }));
  if (sheets.length > PARSE_LIMITS.pages) {
    throw new DocumentError('document_too_large', `The workbook has more than ${PARSE_LIMITS.pages} sheets.`);
  }
  return {
    sheets,
    strings: readStrings(await readPart(zip, targetOf('sharedStrings'))),
    formats: cellFormats(await readPart(zip, targetOf('styles'))),
    is1904: /^(?:1|true)$/.test(childNamed(root, 'workbookPr')?.attributes.get('date1904') ?? ''),
  };
}

function readStrings(root: XmlElement | undefined): string[] {
  return root === undefined ? [] : childrenNamed(root, 'si').map(richText);
}

/** Joins the runs of a cell's rich text, without the phonetic readings (furigana) that Japanese text may have. */
function richText(item: XmlElement): string {
  return [item, ...childrenNamed(item, 'r')]
    .flatMap((run) => childrenNamed(run, 't'))
    .map(textOf)
    .join('');
}

async function readSheet(
  zip: ZipArchive,
  part: string,
  workbook: Workbook,
  most: number,
): Promise<{ readonly text: string; readonly cells: number } | DocumentWarning> {
  try {
    const bytes = await zip.read(part);
    if (bytes === undefined) throw damaged();
    // A sheet that holds only a chart has no cells.
    const cells = [];
    let characters = 0;
    for (const cell of readCells(bytes)) {
      const text = textOfCell(cell, workbook);
      if (text === '') continue;
      if (cells.length === most) throw tooLarge();
      // Any number of cells may share one long text.
      characters += text.length;
      if (characters > PARSE_LIMITS.textCharacters) throw tooMuchText();
      cells.push({ row: cell.row, column: cell.column, text });
    }
    return { text: renderCells(cells), cells: cells.length };
  } catch (error) {
    if (!(error instanceof DocumentError) || error.code !== 'corrupt_document') throw error;
    return { code: 'page_unreadable', message: 'A sheet is damaged.' };
  }
}

function textOfCell({ type, style, element }: Cell, { strings, formats, is1904 }: Workbook): string {
  const value = textOf(childNamed(element, 'v')).trim();
  switch (type) {
    case 's':
      return (strings[Number(value)] ?? '').trim();
    case 'inlineStr': {
      const inline = childNamed(element, 'is');
      return inline === undefined ? '' : richText(inline).trim();
    }
    case 'b':
      return value === '' ? '' : value === '1' ? 'TRUE' : 'FALSE';
    case 'n':
      return formatNumber(value, formats[style] ?? 'general', is1904);
    default:
      return value;
  }
}

function tooLarge(): DocumentError {
  return new DocumentError(
    'document_too_large',
    `The workbook has more than ${MAX_CELLS} cells with content: split it, or export what matters.`,
  );
}
