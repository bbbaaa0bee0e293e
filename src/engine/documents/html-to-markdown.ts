import TurndownService from 'turndown';
import {
  childrenOf,
  isElement,
  nodesBelow,
  parseHtml,
  type HtmlDocument,
  type HtmlElement,
  type HtmlNode,
} from './html-tree.ts';
import { dropUnseen } from './html-visible.ts';

/**
 * Converts HTML, a page or a part of one, to Markdown: headings, lists, tables and code keep their structure; links
 * become their text, images their alternative text. Scripts, styles, form controls and hidden text are left out.
 * @returns well-formed Unicode without blanks at its start and end; '' if there is no text
 * @throws DocumentError `document_too_large` or `document_too_complex` beyond the limits of `parseHtml`
 */
export function htmlToMarkdown(html: string): string {
  return readMarkup(html).text;
}

/** Converts HTML as `htmlToMarkdown` does, and reports hidden text as `dropUnseen` does. */
export function readMarkup(html: string): { readonly text: string } & ReturnType<typeof dropUnseen> {
  const document = parseHtml(html);
  const hidden = dropUnseen(document);
  return { text: treeToMarkdown(document, document.body), ...hidden };
}

/**
 * Converts a tree to Markdown like `htmlToMarkdown`; '' if there is no text. Hidden content is not left out, so it must
 * have been removed before (`dropUnseen`). The tree is changed and must not be used afterwards.
 */
export function treeToMarkdown(document: HtmlDocument, root: HtmlElement): string {
  const blocks = takeCode(document, root);
  flattenNesting(root);
  markLayoutTables(root);
  fillSpans(document, root);
  const markdown = createConverter().turndown(root);
  return tidy(markdown, blocks);
}

// ── The tree made ready ──────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Replaces each block of code with a placeholder; `tidy` puts the blocks back. Code must keep its indentation and its
 * marks, and turndown (the converter) takes time quadratic in the length of blanks.
 * @returns the blocks as fenced Markdown, by the number in their placeholder; '' for a block without code
 */
function takeCode(document: HtmlDocument, root: HtmlElement): string[] {
  const blocks: string[] = [];
  for (const pre of root.querySelectorAll('pre')) {
    for (const lineBreak of pre.querySelectorAll('br')) lineBreak.replaceWith('\n');
    const mark = document.createElement('pre');
    mark.setAttribute(CODE, String(blocks.length));
    mark.append('code');
    blocks.push(fence(pre));
    pre.replaceWith(mark);
  }
  return blocks;
}

/** Name of the attribute that has the number of a block of code, on its placeholder. */
const CODE = 'data-code';
const CODE_MARK = '\x1c';

function fence(pre: HtmlElement): string {
  const code = withoutControls(pre.textContent ?? '')
    .replace(/^\n+/, '')
    .trimEnd();
  if (code === '') return '';
  const classes = `${pre.getAttribute('class') ?? ''} ${pre.querySelector('code')?.getAttribute('class') ?? ''}`;
  const language = /\b(?:language|lang|brush|highlight-source)[-:]\s?([\w+#-]{1,30})/.exec(classes)?.[1] ?? '';
  const longest = (code.match(/`{3,}/g) ?? []).reduce((most, ticks) => Math.max(most, ticks.length), 2);
  const marks = '`'.repeat(longest + 1);
  return `${marks}${language}\n${code}\n${marks}`;
}

/**
 * Greatest number of nested lists and quotes that are kept, since each level indents its lines: at 250 levels, each
 * line would grow by a thousand characters.
 */
const MAX_NESTED = 8;

function flattenNesting(root: HtmlElement): void {
  const depths = new Map<HtmlNode, number>();
  const flattened: HtmlElement[] = [];
  for (const node of nodesBelow(root)) {
    const around = node.parentNode ? (depths.get(node.parentNode) ?? 0) : 0;
    if (!isElement(node)) continue;
    const depth = INDENTING.has(node.localName) ? around + 1 : around;
    depths.set(node, depth);
    if (depth > MAX_NESTED && (depth > around || node.localName === 'li')) flattened.push(node);
  }
  // Innermost first, so that a node moves once for each level of its own.
  for (const element of flattened.reverse()) element.replaceWith(...childrenOf(element), ' ');
}

const INDENTING: ReadonlySet<string> = new Set(['ul', 'ol', 'blockquote']);

/**
 * Name of the attribute that marks the cells of a layout table, which arranges a page instead of showing data. Such
 * cells become blocks of text.
 */
const LAYOUT = 'data-layout';

function markLayoutTables(root: HtmlElement): void {
  const tableOf = new Map<HtmlNode, HtmlElement>();
  const cellsOf = new Map<HtmlElement, HtmlElement[]>();
  const layout = new Set<HtmlElement>();
  for (const node of nodesBelow(root)) {
    if (!isElement(node)) continue;
    const around = node.parentNode ? tableOf.get(node.parentNode) : undefined;
    if (around) tableOf.set(node, around);
    if (around && BLOCKS_OF_A_PAGE.has(node.localName)) layout.add(around);
    if (node.localName === 'table') {
      tableOf.set(node, node);
      cellsOf.set(node, []);
    }
    // An article may be the cell of a table that was left behind.
    if (CELLS.has(node.localName) && !around) node.setAttribute(LAYOUT, '');
    if (CELLS.has(node.localName) && around) cellsOf.get(around)?.push(node);
  }
  for (const [table, cells] of cellsOf) {
    if (layout.has(table) || arranges(table, cells)) for (const cell of cells) cell.setAttribute(LAYOUT, '');
  }
}

/**
 * Tells whether a table is a layout table, which arranges a page instead of showing data: its role says so, no row has
 * two cells, or a cell has more than 2,000 characters.
 */
function arranges(table: HtmlElement, cells: readonly HtmlElement[]): boolean {
  if (/^(?:presentation|none)$/.test(table.getAttribute('role') ?? '')) return true;
  const rows = new Set(cells.map((cell) => cell.parentNode));
  return rows.size === cells.length || cells.some((cell) => (cell.textContent ?? '').length > MAX_CELL_CHARACTERS);
}

/** Greatest length of the text of a cell in a data table, in UTF-16 code units. */
const MAX_CELL_CHARACTERS = 2_000;
const CELLS: ReadonlySet<string> = new Set(['td', 'th', 'caption']);
const BLOCKS_OF_A_PAGE: ReadonlySet<string> = new Set([
  'table',
  'pre',
  'article',
  'section',
  'h1',
  'h2',
  'h3',
  'h4',
  'h5',
  'h6',
]);

/** Greatest number of columns or rows that a cell may span; a larger number is taken for a mistake and read as 1. */
const MAX_SPAN = 64;
/**
 * Number of empty cells added to a document after which no further row gets any; the last row may exceed it. Without
 * this limit, a thousand cells that span 64 by 64 would make four million.
 */
const MAX_FILLERS = 10_000;

/**
 * Adds empty cells to the right of and below cells that span several columns or rows, so that columns stay aligned.
 * Layout tables are not changed, and neither are rows after the 10,000th added cell.
 */
function fillSpans(document: HtmlDocument, root: HtmlElement): void {
  let left = MAX_FILLERS;
  const createFiller = (): HtmlElement => {
    left--;
    return document.createElement('td');
  };
  for (const table of root.querySelectorAll('table')) {
    if (!table.querySelector('[rowspan],[colspan]') || table.querySelector(`[${LAYOUT}]`)) continue;
    // Number of rows below that a cell above still covers, for each column.
    let covered: readonly number[] = [];
    for (const row of table.querySelectorAll('tr')) {
      if (left <= 0) return;
      covered = fillRow(row, covered, createFiller);
    }
  }
}

/**
 * Adds the empty cells of one row for cells that span several columns or rows.
 * @param covered for each column, the number of rows (this one included) that a cell from above still spans
 * @returns for each column, the number of rows below this one that a cell of this row or above still spans
 */
function fillRow(row: HtmlElement, covered: readonly number[], createFiller: () => HtmlElement): number[] {
  const below: number[] = [];
  const filled: HtmlNode[] = [];
  const passCovered = (): void => {
    for (let rows = covered[below.length] ?? 0; rows > 0; rows = covered[below.length] ?? 0) {
      filled.push(createFiller());
      below.push(rows - 1);
    }
  };
  for (const cell of childrenOf(row)) {
    if (!isElement(cell) || !CELLS.has(cell.localName)) continue;
    passCovered();
    const rows = spanOf(cell, 'rowspan') - 1;
    filled.push(cell);
    below.push(rows);
    for (let more = spanOf(cell, 'colspan') - 1; more > 0; more--) {
      filled.push(createFiller());
      below.push(rows);
    }
  }
  passCovered();
  row.append(...filled);
  return below;
}

function spanOf(cell: HtmlElement, name: 'colspan' | 'rowspan'): number {
  const span = Number(cell.getAttribute(name) ?? 1);
  return Number.isInteger(span) && span >= 1 && span <= MAX_SPAN ? span : 1;
}

// ── Rules ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Control character at the end of a table cell; there are others for rows and captions. The text itself no longer has
 * control characters. These marks are replaced when the table is assembled.
 */
const CELL_END = '\x1f';
const ROW_END = '\x1e';
const CAPTION_END = '\x1d';

/**
 * Creates the converter from HTML to Markdown. It drops emphasis and the addresses of links, since they would stand
 * between the words that a search looks for. It has its own rules for tables: turndown's plugins read the whole table
 * for each row (280 kB: over a minute) and leave some tables as HTML.
 */
function createConverter(): TurndownService {
  const converter = new TurndownService({
    headingStyle: 'atx',
    codeBlockStyle: 'fenced',
    bulletListMarker: '-',
    hr: '---',
    br: '',
  });
  converter.escape = escapeText;
  const replace = (filter: string[], replacement: (content: string, element: HtmlElement) => string): void => {
    converter.addRule(filter.join(), { filter: filter as TurndownService.TagName[], replacement });
  };
  const plain = (content: string): string => content;
  const block = (content: string): string => `\n\n${content}\n\n`;
  replace(['a', 'em', 'i', 'strong', 'b'], plain);
  replace(['img'], (_content, image) => oneLine(image.getAttribute('alt') ?? ''));
  replace(['h1', 'h2', 'h3', 'h4', 'h5', 'h6'], (content, heading) => {
    const text = oneLine(content);
    return text === '' ? '' : block(`${'#'.repeat(Number(heading.nodeName[1]))} ${text}`);
  });
  replace(['details', 'summary'], block);
  replace(['li'], createListItemRule());
  replace(['pre'], (_content, pre) => block(CODE_MARK + (pre.getAttribute(CODE) ?? '') + CODE_MARK));
  replace(['caption'], (content, caption) =>
    caption.hasAttribute(LAYOUT) ? block(content) : oneLine(content) + CAPTION_END,
  );
  replace(['td', 'th'], (content, cell) =>
    cell.hasAttribute(LAYOUT) ? block(content) : oneLine(content).replaceAll('|', '\\|') + CELL_END,
  );
  replace(['tr'], (content) => (content.includes(CELL_END) ? content + ROW_END : block(content)));
  replace(['thead', 'tbody', 'tfoot'], plain);
  replace(['table'], (content) => block(tableOfRows(content)));
  return converter;
}

/**
 * Escapes the first character of a text node that looks like the start of a heading (`# `) or of a fence (three
 * backticks or tildes), even if the node is not at the start of a line, and removes control characters. Other Markdown
 * marks are kept.
 */
function escapeText(text: string): string {
  return withoutControls(text).replace(/^(#{1,6}\s|```|~~~)/, '\\$1');
}

/**
 * Creates the rule for list items, which keeps a counter for each list. Turndown itself would search an item's number
 * among its siblings, which takes quadratic time.
 */
function createListItemRule(): (content: string, item: HtmlElement) => string {
  const counts = new WeakMap<HtmlElement, number>();
  return (content, item) => {
    const list = item.parentNode;
    const text = content.trim().replaceAll('\n', '\n  ');
    if (list?.localName !== 'ol') return `- ${text}\n`;
    const start = Number(list.getAttribute('start') ?? 1);
    const number = counts.get(list) ?? (Number.isSafeInteger(start) ? start : 1);
    counts.set(list, number + 1);
    return `${number}. ${text}\n`;
  };
}

function tableOfRows(content: string): string {
  if (!content.includes(ROW_END)) return content;
  const captionEnd = content.indexOf(CAPTION_END);
  const caption = captionEnd === -1 ? '' : `${content.slice(0, captionEnd).trim()}\n\n`;
  const rows = content
    .slice(captionEnd + 1)
    .split(ROW_END)
    .map((row) => row.split(CELL_END).map((cell) => cell.trim()));
  // Each cell ends with a mark, so the text after the last mark is no cell.
  const cells = rows.map((row) => row.slice(0, -1)).filter((row) => row.some((cell) => cell !== ''));
  const [head, ...body] = cells;
  if (!head) return '';
  const width = cells.reduce((most, row) => Math.max(most, row.length), 0);
  const header = [...head, ...Array<string>(width - head.length).fill('')];
  const lines = [header, header.map(() => '---'), ...body].map((row) => `| ${row.join(' | ')} |`);
  return caption + lines.join('\n');
}

function oneLine(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ');
}

function tidy(markdown: string, blocks: readonly string[]): string {
  return markdown
    .replace(/\n{3,}/g, '\n\n')
    .split('\n')
    .map((line) => (line.includes(CODE_MARK) ? putCodeBack(line, blocks) : withoutControls(line).trimEnd()))
    .join('\n')
    .trim()
    .toWellFormed();
}

/**
 * Replaces the placeholder of a block of code with the block. The placeholder is alone on its line except for the
 * indentation of a list or a quote; in a heading, words may surround it.
 */
function putCodeBack(line: string, blocks: readonly string[]): string {
  const [before = '', index = '', ...rest] = line.split(CODE_MARK);
  const indent = before.replace(/(?:-|\d+\.)(?= $)/, '').padStart(before.length);
  const isIndent = indent.replace(/[\s>]+/g, '') === '';
  const code = (blocks[Number(index)] ?? '')
    .split('\n')
    .map((codeLine, at) => ((at === 0 && isIndent ? before : isIndent ? indent : '') + codeLine).trimEnd());
  const after = rest.join(CODE_MARK);
  const lines = [isIndent ? '' : before, ...code, after.includes(CODE_MARK) ? putCodeBack(after, blocks) : after];
  return lines.filter((text, at) => (at > 0 && at < lines.length - 1) || text !== '').join('\n');
}

function withoutControls(text: string): string {
  return text.replace(/[\x00-\x08\x0e-\x1f]/g, '');
}
