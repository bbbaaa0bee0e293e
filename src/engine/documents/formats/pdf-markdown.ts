import type { Omission } from '../../types.ts';
import { BULLET, LEADER, blocksOfPages, isShort, type Block } from './pdf-blocks.ts';
import { headingLevels } from './pdf-headings.ts';
import { joinsWithoutSpace, type Cell, type Line } from './pdf-lines.ts';
import { withoutRunningHeads } from './pdf-running-heads.ts';
import type { DocumentStyle, PdfPage } from './pdf-style.ts';

/**
 * Renders each PDF page as Markdown: paragraphs, headings, lists, code and tables from the page's lines, then its
 * appendix (notes and form fields). Running headers and footers are kept only on the first page that has them; page
 * numbers are left out.
 * @returns one text for each page, '' for an empty one, and what was left out
 */
export function renderPages(
  pages: readonly PdfPage[],
  style: DocumentStyle,
): { readonly texts: readonly string[]; readonly omissions: readonly Omission[] } {
  const bodies = withoutRunningHeads(pages);
  const words = wordsOfHyphenatedTexts(bodies);
  const blocks = blocksOfPages(bodies, style);
  const levelOf = headingLevels(blocks.flat(), style);
  const texts = pages.map((page, index) =>
    [renderBlocks(blocks[index]!, levelOf, words), ...page.appendix].filter((text) => text !== '').join('\n\n'),
  );
  return { texts, omissions: runningHeads(pages, bodies) };
}

/**
 * Counts the lines of the pages that are not in their bodies (running headers and footers), as an omission; an empty
 * list if there are none.
 */
function runningHeads(pages: readonly PdfPage[], bodies: readonly (readonly Line[])[]): Omission[] {
  const kept = new Set(bodies.flat());
  const left = pages.flatMap(({ lines }) => lines.filter((line) => !kept.has(line)));
  const characters = left.reduce((sum, { text }) => sum + text.length, 0);
  return left.length === 0 ? [] : [{ reason: 'running_head', count: left.length, characters }];
}

/**
 * Renders blocks as Markdown. List items follow each other line by line; other blocks are separated by a blank line.
 */
function renderBlocks(blocks: readonly Block[], levelOf: (block: Block) => number, words: ReadonlySet<string>): string {
  const parts: string[] = [];
  let previous: Block | undefined;
  for (const block of blocks) {
    const level = levelOf(block);
    const isList = block.kind === 'item' && previous?.kind === 'item' && level === 0 && levelOf(previous) === 0;
    if (previous !== undefined) parts.push(isList ? '\n' : '\n\n');
    parts.push(renderBlock(block, level, words));
    previous = block;
  }
  return parts.join('');
}

function renderBlock(block: Block, level: number, words: ReadonlySet<string>): string {
  if (block.kind === 'code' && block.lines.length > 1) return renderCode(block.lines);
  if (block.kind === 'rows') return renderTable(block.lines) ?? block.lines.map(renderRow).join('\n');
  const text = joinLines(block.lines, words, level > 0);
  if (level > 0) return `${'#'.repeat(level)} ${text}`;
  if (block.kind === 'item') return text.replace(BULLET, (bullet) => (bullet === '*' ? '*' : '-'));
  return text;
}

function joinLines(lines: readonly Line[], words: ReadonlySet<string>, isHeading: boolean): string {
  const parts: string[] = [];
  let previous: Line | undefined;
  for (const line of lines) {
    const text = isHeading || line.cells.length > 1 ? line.text.replace(/ {2,}/g, ' ') : line.text;
    if (previous === undefined) parts.push(isHeading ? text : escapeMarkup(text));
    else if (isHyphenated(previous.text, text)) parts.push(joinHyphenated(parts, previous.text, text, words));
    else if (joinsWithoutSpace(previous.text, text)) parts.push(text);
    else if (isHeading || !isShort(previous, line)) parts.push(` ${text}`);
    else parts.push(`\n${escapeMarkup(text)}`);
    previous = line;
  }
  return parts.join('');
}

/** Adds a backslash before a one-line text that Markdown would take for a heading (`# `) or a code fence. */
function escapeMarkup(text: string): string {
  return text.replace(/^(?=#{1,6}\s|`{3}|~{3})/, '\\');
}

const HYPHEN_AT_END = /\p{L}[-‐\u00ad]$/u;

function isHyphenated(text: string, next: string): boolean {
  return HYPHEN_AT_END.test(text) && /^\p{Ll}/u.test(next);
}

/**
 * Removes the hyphen at the end of the last of `parts`, unless it belongs to the word: it has only one letter before
 * it, or other places in the file always write the word with the hyphen. A soft hyphen is always removed.
 * @param parts texts that are joined; the last one may change
 * @param words words of the file, from `wordsOfHyphenatedTexts`
 * @returns `after`, the text to append to `parts`
 */
function joinHyphenated(parts: string[], before: string, after: string, words: ReadonlySet<string>): string {
  const [head] = lastWordOf(before.slice(0, -1));
  const [tail] = /^[\p{L}\p{M}]+/u.exec(after) ?? [''];
  const keepsHyphen =
    !before.endsWith('\u00ad') &&
    (head.length < 2 || (words.has(`${head}-${tail}`.toLowerCase()) && !words.has(`${head}${tail}`.toLowerCase())));
  if (!keepsHyphen) parts.push(parts.pop()!.slice(0, -1));
  return after;
}

function lastWordOf(text: string): [string] {
  let start = text.length;
  while (start > 0 && /[\p{L}\p{M}]/u.test(text[start - 1]!)) start -= 1;
  return [text.slice(start)];
}

/**
 * Returns all words of the file in lower case, including hyphens inside words, if one of its lines ends with a hyphen;
 * otherwise an empty set, since no word will be looked up.
 */
function wordsOfHyphenatedTexts(pages: readonly (readonly Line[])[]): Set<string> {
  const words = new Set<string>();
  if (!pages.some((lines) => lines.some((line) => HYPHEN_AT_END.test(line.text)))) return words;
  for (const lines of pages) {
    for (const line of lines) {
      for (const [word] of line.text.matchAll(/[\p{L}\p{M}]+(?:-[\p{L}\p{M}]+)*/gu)) words.add(word.toLowerCase());
    }
  }
  return words;
}

/** Renders lines as a fenced code block. Each line is indented by its position on the page, by at most 80 blanks. */
function renderCode(lines: readonly Line[]): string {
  const left = lines.reduce((least, line) => Math.min(least, line.left), Infinity);
  const letterWidth = lines[0]!.size * 0.6;
  const text = lines.map((line) => {
    const indent = Math.min(80, Math.max(0, Math.round((line.left - left) / letterWidth)));
    return ' '.repeat(indent) + line.text;
  });
  const fence = text.some((line) => line.trimStart().startsWith('```')) ? '~~~~' : '```';
  return [fence, ...text, fence].join('\n');
}

/** Least number of rows, the header included, of lines that are rendered as a Markdown table. */
const MIN_TABLE_ROWS = 3;
/** Greatest number of columns of lines that are rendered as a Markdown table. */
const MAX_TABLE_COLUMNS = 16;

/**
 * Renders lines as a Markdown table whose first row is the header. Returns undefined if the lines are no table: fewer
 * than 3 rows, not 2 to 16 columns, a row without a cell in each column, or a cell that reaches into the next column.
 */
function renderTable(lines: readonly Line[]): string | undefined {
  const columns = lines[0]!.cells.length;
  if (lines.length < MIN_TABLE_ROWS || columns < 2 || columns > MAX_TABLE_COLUMNS) return undefined;
  if (lines.some((line) => line.cells.length !== columns)) return undefined;
  for (let column = 1; column < columns; column += 1) {
    const end = lines.reduce((most, line) => Math.max(most, line.cells[column - 1]!.right), -Infinity);
    const start = lines.reduce((least, line) => Math.min(least, line.cells[column]!.left), Infinity);
    if (end > start) return undefined;
  }
  const [header, ...rows] = lines.map((line) => `| ${line.cells.map(renderCell).join(' | ')} |`);
  return [header, `|${' --- |'.repeat(columns)}`, ...rows].join('\n');
}

function renderRow(line: Line): string {
  return escapeMarkup(line.text.replace(LEADER, '  '));
}

function renderCell(cell: Cell): string {
  return cell.text.replaceAll('|', '\\|');
}
