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
 * HTML, a page or a piece of one, as Markdown: headings, lists, tables and code keep their structure, links their words, images their
 * alternative text. Scripts, styles, hidden text and form controls are left out.
 * @returns well-formed Unicode that begins and ends with no blank; '' for none
 * @throws DocumentError as `parseHtml` does
 */
export function htmlToMarkdown(html: string): string {
  const document = parseHtml(html);
  dropUnseen(document);
  return treeToMarkdown(document, document.body);
}

/** As `htmlToMarkdown`, for a tree that holds nothing unseen. Changes the tree. */
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
 * Leaves a mark in the place of each block of code, which `tidy` puts back: code is kept to the letter, and turndown takes the square
 * of the length of its blanks.
 * @returns the blocks, fenced, by their number
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

/** The number of a block of code, on its mark. */
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

/** Lists and quotes indent the lines within: at 250 levels, each line would grow by a thousand characters. */
const NESTED_MOST = 8;

function flattenNesting(root: HtmlElement): void {
  const depths = new Map<HtmlNode, number>();
  const flattened: HtmlElement[] = [];
  for (const node of nodesBelow(root)) {
    const around = node.parentNode ? (depths.get(node.parentNode) ?? 0) : 0;
    if (!isElement(node)) continue;
    const depth = INDENTING.has(node.localName) ? around + 1 : around;
    depths.set(node, depth);
    if (depth > NESTED_MOST && (depth > around || node.localName === 'li')) flattened.push(node);
  }
  // Innermost first, so that a node moves once for each level of its own.
  for (const element of flattened.reverse()) element.replaceWith(...childrenOf(element), ' ');
}

const INDENTING: ReadonlySet<string> = new Set(['ul', 'ol', 'blockquote']);

/** On the cells of a table that arranges a page instead of holding data. Their content stays what it is. */
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

/** Whether a table says so, has one column only, or holds whole passages. */
function arranges(table: HtmlElement, cells: readonly HtmlElement[]): boolean {
  if (/^(?:presentation|none)$/.test(table.getAttribute('role') ?? '')) return true;
  const rows = new Set(cells.map((cell) => cell.parentNode));
  return rows.size === cells.length || cells.some((cell) => (cell.textContent ?? '').length > CELL_CHARACTERS_MOST);
}

const CELL_CHARACTERS_MOST = 2_000;
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

/** Cells that span more columns or rows than this are taken for a mistake. */
const SPAN_MOST = 64;
/** A thousand cells that span 64 by 64 would make four million. */
const FILLERS_MOST = 10_000;

/** Empty cells beside and below those that span, so that columns stay in line. */
function fillSpans(document: HtmlDocument, root: HtmlElement): void {
  let left = FILLERS_MOST;
  const createFiller = (): HtmlElement => {
    left--;
    return document.createElement('td');
  };
  for (const table of root.querySelectorAll('table')) {
    if (!table.querySelector('[rowspan],[colspan]') || table.querySelector(`[${LAYOUT}]`)) continue;
    // For each column, how many rows below are still covered by a cell above.
    let covered: readonly number[] = [];
    for (const row of table.querySelectorAll('tr')) {
      if (left <= 0) return;
      covered = fillRow(row, covered, createFiller);
    }
  }
}

/** @returns how many rows below each column are covered after this row */
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
  return Number.isInteger(span) && span >= 1 && span <= SPAN_MOST ? span : 1;
}

// ── Rules ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Ends of cells and rows until the table is put together: control characters, which no text has any more. */
const CELL_END = '\x1f';
const ROW_END = '\x1e';
const CAPTION_END = '\x1d';

/**
 * Emphasis and addresses of links are left out: they stand between the words that a search looks for. Tables have rules of their own:
 * those of the plugins for turndown look the whole table through for each row (280 kB: over a minute) and leave some as HTML.
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

/** Only what would turn a line into a heading or open a block of code. */
function escapeText(text: string): string {
  return withoutControls(text).replace(/^(#{1,6}\s|```|~~~)/, '\\$1');
}

/** Counts as it goes: turndown looks an item's number up among its siblings, which takes the square of their number. */
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
  // The end of each cell was marked: what stands after the last is no cell.
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

/** A mark stands on a line of its own but for what indents it in a list or a quote; in a heading, words may surround it. */
function putCodeBack(line: string, blocks: readonly string[]): string {
  const [before = '', index = '', ...rest] = line.split(CODE_MARK);
  const indent = before.replace(/(?:-|\d+\.)(?= $)/, '').padStart(before.length);
  const isIndent = indent.replace(/[\s>]+/g, '') === '';
  const code = (blocks[Number(index)] ?? '')
    .split('\n')
    .map((codeLine, at) => ((at === 0 && isIndent ? before : isIndent ? indent : '') + codeLine).trimEnd());
  const after = rest.join(CODE_MARK);
  const lines = [isIndent ? '' : before, ...code, after.includes(CODE_MARK) ? putCodeBack(after, blocks) : after];
  return lines.filter((one, at) => (at > 0 && at < lines.length - 1) || one !== '').join('\n');
}

function withoutControls(text: string): string {
  return text.replace(/[\x00-\x08\x0e-\x1f]/g, '');
}
