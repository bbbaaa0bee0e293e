import { joinsWithoutSpace, quantileOf, type Cell, type Line } from './pdf-layout.ts';

/** A page as it was read; what does not stand on the page itself, such as the values of its form, comes after its lines. */
export interface PdfPage {
  readonly lines: readonly Line[];
  readonly appendix: readonly string[];
}

export interface FontStyle {
  readonly isBold: boolean;
  readonly isMonospaced: boolean;
}

/** What the whole file says about its pages, against which each line is judged. */
export interface DocumentStyle {
  readonly bodySize: number;
  readonly bodyFont: string;
  /** Fonts not in it are neither bold nor monospaced. */
  readonly fonts: ReadonlyMap<string, FontStyle>;
}

/** The size and the font in which most of the text is set. */
export function bodyStyleOf(pages: readonly PdfPage[]): { bodySize: number; bodyFont: string } {
  const sizes = new Map<number, number>();
  const fonts = new Map<string, number>();
  for (const line of linesOf(pages)) {
    addTo(sizes, roundSize(line.size), line.text.length);
    addTo(fonts, line.font, line.text.length);
  }
  return { bodySize: mostOf(sizes) ?? 0, bodyFont: mostOf(fonts) ?? '' };
}

/**
 * Fonts whose weight or pitch would tell something: whole lines are set in them, and they are not the body's. Those with most
 * lines first.
 */
export function tellingFonts(pages: readonly PdfPage[], bodyFont: string): string[] {
  const lines = new Map<string, number>();
  for (const line of linesOf(pages)) if (line.isUniform) addTo(lines, line.font, 1);
  lines.delete(bodyFont);
  return [...lines].sort((a, b) => b[1] - a[1]).map(([font]) => font);
}

/**
 * Markdown of each page: paragraphs, headings, lists, code and tables made of lines. What repeats at the head or foot of the
 * pages stays once; page numbers go.
 */
export function renderPages(pages: readonly PdfPage[], style: DocumentStyle): string[] {
  const bodies = withoutFurniture(pages);
  const words = wordsOfHyphenatedTexts(bodies);
  const leadingOf = leadings(bodies);
  const blocks = bodies.map((lines) => blocksOf(lines, style, leadingOf));
  const levelOf = headingLevels(blocks.flat(), style);
  return pages.map((page, index) =>
    [renderBlocks(blocks[index]!, levelOf, words), ...page.appendix].filter((text) => text !== '').join('\n\n'),
  );
}

// ── Running heads and feet ─────────────────────────────────────────────────────────────────────────────────────────

/** Fewer pages prove nothing. */
const LEAST_REPEATED_PAGES = 4;
const OUTERMOST_LINES = 3;
/** Points by which a running head may stand elsewhere. */
const SAME_HEIGHT = 3;

/**
 * The lines of each page without what stands at the same height, first or last, on more than half of the pages, or of the left
 * or right pages, with the same words or counting with the pages. Its words stay where they come first, since they may stand
 * nowhere else; and no page is left empty.
 */
function withoutFurniture(pages: readonly PdfPage[]): (readonly Line[])[] {
  const places = new Map<string, Place[]>();
  const outermost = pages.map((page) => outermostLines(page.lines));
  outermost.forEach((lines, page) => {
    for (const line of lines) for (const key of repeatKeys(line, page)) addToList(places, key, { page, line });
  });
  const repeated = new Set<Line>();
  for (const found of places.values()) for (const line of repeatedLines(found, pages.length)) repeated.add(line);
  return pages.map(({ lines }) => {
    const kept = lines.filter((line) => !repeated.has(line));
    return kept.length === 0 ? lines : kept;
  });
}

interface Place {
  readonly page: number;
  readonly line: Line;
}

function outermostLines(lines: readonly Line[]): Line[] {
  const upright = lines.filter((line) => line.direction === lines[0]!.direction);
  const sorted = upright.toSorted((a, b) => b.baseline - a.baseline);
  return [...new Set([...sorted.slice(0, OUTERMOST_LINES), ...sorted.slice(-OUTERMOST_LINES)])];
}

/**
 * Its text; its text with a number told as its distance from the page's; and that distance alone where the number stands at an
 * end, as after the title of a chapter. One of these is common to all lines of a kind.
 */
function repeatKeys(line: Line, page: number): string[] {
  if (line.text.length > 200) return [];
  const numbers = [...line.text.matchAll(/\d{1,6}/g)];
  const ends = [...new Set([numbers.at(0), numbers.at(-1)])].filter((match) => match !== undefined);
  return [
    line.text,
    ...ends.flatMap((match) => {
      const before = line.text.slice(0, match.index);
      const after = line.text.slice(match.index + match[0].length);
      const counting = `{${Number(match[0]) - page}}`;
      return [`${before}${counting}${after}`, ...(before === '' || after === '' ? [counting] : [])];
    }),
  ];
}

function repeatedLines(places: readonly Place[], pages: number): Line[] {
  const heights = places.map(({ line }) => line.baseline).sort((a, b) => a - b);
  const height = heights[heights.length >> 1]!;
  const level = places.filter(({ line }) => Math.abs(line.baseline - height) <= SAME_HEIGHT);
  const found = new Set(level.map(({ page }) => page));
  const isOnMost =
    isMost(found.size, pages) ||
    isMost(
      countOf(found, (page) => page % 2 === 0),
      Math.ceil(pages / 2),
    ) ||
    isMost(
      countOf(found, (page) => page % 2 === 1),
      pages >> 1,
    );
  if (!isOnMost) return [];
  const kept = new Set<string>();
  return level.flatMap(({ line }) => {
    const words = line.text.replace(/\d+/g, '');
    if (!/\p{L}{2}/u.test(words) || kept.has(words)) return [line];
    kept.add(words);
    return [];
  });
}

function isMost(found: number, pages: number): boolean {
  return pages >= LEAST_REPEATED_PAGES && found * 2 > pages;
}

// ── Blocks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Block {
  readonly kind: 'text' | 'item' | 'rows' | 'code';
  readonly lines: Line[];
  /** It does not run in the direction of its page, as a note along the margin. */
  readonly isAside: boolean;
}

function blocksOf(lines: readonly Line[], style: DocumentStyle, leadingOf: (line: Line) => number): Block[] {
  const blocks: Block[] = [];
  for (const line of lines) {
    const block = blocks.at(-1);
    const kind = kindOf(line, style);
    if (block !== undefined && continuesCell(block, line, kind, leadingOf(line))) continueCell(block, line);
    else if (block !== undefined && continuesBlock(block, line, kind, leadingOf(line))) block.lines.push(line);
    else blocks.push({ kind, lines: [line], isAside: line.direction !== lines[0]!.direction });
  }
  return blocks;
}

/** From line to line of a paragraph, by the size of its font: the steps around paragraphs and headings are wider. */
function leadings(pages: readonly (readonly Line[])[]): (line: Line) => number {
  const steps = new Map<number, number[]>();
  for (const lines of pages) {
    lines.forEach((line, index) => {
      const previous = lines[index - 1];
      if (previous?.region !== line.region || roundSize(previous.size) !== roundSize(line.size)) return;
      const step = previous.baseline - line.baseline;
      if (step >= 0.8 * line.size && step <= 3 * line.size) addToList(steps, roundSize(line.size), step);
    });
  }
  const leading = new Map([...steps].map(([size, found]) => [size, found.length < 3 ? 0 : quantileOf(found, 0.35)]));
  return (line) => leading.get(roundSize(line.size)) || 1.25 * line.size;
}

const BULLET = /^[•◦▪‣●○■□▸►∙·*–—-](?=\s|$)/u;
const NUMBER = /^(?:\d{1,3}[.)]|\(?\p{Ll}\)|\([ivx]+\)|\[\d{1,3}\])(?=\s)/u;
/** Dots that lead to a page's number, as in a table of contents. */
const LEADER = /\s*(?:[.·…]\s?){4,200}\s*(?=\w{1,6}$)/;
/** A first cell that numbers what follows on the same line, as before a heading or in a list. */
const LABEL = /^(?:[•◦▪‣●○■□▸►∙·*–—-]|\(?(?:\d{1,3}(?:\.\d{1,3})*|\p{L}|[ivxIVX]+)[.):]?|\[\w{1,6}\])$/u;

function kindOf(line: Line, style: DocumentStyle): Block['kind'] {
  if (line.isUniform && line.font !== style.bodyFont && style.fonts.get(line.font)?.isMonospaced === true)
    return 'code';
  if (line.cells.length > 2 || (line.cells.length === 2 && !LABEL.test(line.cells[0]!.text))) return 'rows';
  if (LEADER.test(line.text)) return 'rows';
  return BULLET.test(line.text) || NUMBER.test(line.text) ? 'item' : 'text';
}

/** A wrapped cell goes on under its beginning. */
function continuesCell(block: Block, line: Line, kind: Block['kind'], leading: number): boolean {
  const previous = block.lines.at(-1)!;
  const step = previous.baseline - line.baseline;
  if (block.kind !== 'rows' || kind === 'rows' || line.region !== previous.region) return false;
  return step > 0 && step <= 1.35 * Math.max(leading, line.size) && cellAbove(previous, line) > 0;
}

/** A longer one is none; and a cell without end would be copied for each of its lines. */
const CELL_CHARACTERS = 2000;

/** Never the first one: what begins there is as likely the text after the table. */
function cellAbove(row: Line, line: Line): number {
  return row.cells.findIndex(
    (cell, index) =>
      index > 0 && Math.abs(cell.left - line.left) < 0.5 * line.size && cell.text.length < CELL_CHARACTERS,
  );
}

function continueCell(block: Block, line: Line): void {
  const row = block.lines.pop()!;
  const above = cellAbove(row, line);
  const cells = row.cells.map((cell, index) => {
    if (index !== above) return cell;
    const glue = joinsWithoutSpace(cell.text, line.text) ? '' : ' ';
    return { text: cell.text + glue + line.text, left: cell.left, right: Math.max(cell.right, line.right) };
  });
  block.lines.push({ ...row, cells, text: cells.map((cell) => cell.text).join('  '), baseline: line.baseline });
}

function continuesBlock(block: Block, line: Line, kind: Block['kind'], leading: number): boolean {
  const previous = block.lines.at(-1)!;
  if (line.direction !== previous.direction) return false;
  const step = previous.baseline - line.baseline;
  if (kind === block.kind && (kind === 'code' || kind === 'rows')) {
    return line.region === previous.region && step > 0 && step <= 3 * leading;
  }
  if (kind === 'rows' || block.kind === 'code' || block.kind === 'rows') return false;
  if (Math.abs(line.size - previous.size) > 0.08 * previous.size) return false;
  if (line.region !== previous.region) return kind === 'text' && isCutOff(previous, line);
  if (step <= 0 || step > 1.35 * Math.max(leading, line.size)) return false;
  // A name in a code font may fill a line of a sentence.
  if (kind === 'code' && (isShort(previous, line) || ENDS_SENTENCE.test(previous.text))) return false;
  if (kind === 'item') return isDashInText(block, previous, line);
  if (changesFont(previous, line) && isShort(previous, line)) return false;
  if (block.kind === 'item') return continuesItem(block, previous, line);
  return continuesParagraph(block, previous, line);
}

const ENDS_SENTENCE = /[.!?:;。！？：；][\p{Pe}\p{Pf}"']*$/u;

/** A sentence that goes on in the next column. */
function isCutOff(previous: Line, line: Line): boolean {
  return !ENDS_SENTENCE.test(previous.text) && /^\p{Ll}/u.test(line.text);
}

/** A dash, or a number with a full stop, with which a line of a sentence happens to begin. */
function isDashInText(block: Block, previous: Line, line: Line): boolean {
  if (block.kind === 'item' || isShort(previous, line) || ENDS_SENTENCE.test(previous.text)) return false;
  return !/^[•◦▪‣●○■□▸►∙]/u.test(line.text) && Math.abs(line.left - previous.left) < 0.5 * line.size;
}

function changesFont(previous: Line, line: Line): boolean {
  return previous.isUniform && line.isUniform && previous.font !== line.font;
}

function continuesItem(block: Block, previous: Line, line: Line): boolean {
  const first = block.lines[0]!;
  const indent = startOf(line) - startOf(first);
  const isHanging = indent > 0.4 * line.size && startOf(line) - startOf(previous) < 2.5 * line.size;
  return isHanging || (block.lines.length > 1 || indent > -0.4 * line.size ? !isShort(previous, line) : false);
}

function continuesParagraph(block: Block, previous: Line, line: Line): boolean {
  const endsSentence = ENDS_SENTENCE.test(previous.text);
  const indent = startOf(line) - startOf(previous);
  const isBroken = isShort(previous, line);
  if (isBroken && endsSentence) return false;
  if (indent > 0.8 * line.size) return !isBroken && !endsSentence;
  // Entries of a bibliography hang: the next one begins further out.
  if (indent < -0.8 * line.size && block.lines.length > 1) return false;
  return true;
}

/** The next line's first word would have fitted at its end, so the line was broken on purpose. */
function isShort(previous: Line, next: Line): boolean {
  const room = previous.isRtl ? previous.left - previous.region.left : previous.region.right - previous.right;
  const word = next.text.search(/\s/);
  const width = (word === -1 ? next.text.length : word) + 1;
  return room > Math.min(width, 30) * 0.5 * next.size + 1.5 * next.size;
}

/** Where it begins, growing inwards. */
function startOf(line: Line): number {
  return line.isRtl ? -line.right : line.left;
}

// ── Headings ───────────────────────────────────────────────────────────────────────────────────────────────────────

const HEADING_LEVELS = 3;
const HEADING_CHARACTERS = 200;
const BOLD_HEADING_CHARACTERS = 120;

/**
 * Levels by size, the largest first, and below them what is set in bold at the size of the body.
 * @returns the level of a block from 1, or 0 for none
 */
function headingLevels(blocks: readonly Block[], style: DocumentStyle): (block: Block) => number {
  const sizes: number[] = [];
  const candidates = blocks.filter((block) => isSizedHeading(block, style)).map((block) => block.lines[0]!.size);
  for (const size of candidates.sort((a, b) => b - a)) if (size < 0.94 * (sizes.at(-1) ?? Infinity)) sizes.push(size);
  return (block) => {
    if (isSizedHeading(block, style)) {
      const rank = sizes.findLastIndex((size) => block.lines[0]!.size <= size);
      return Math.min(rank + 1, HEADING_LEVELS);
    }
    return isBoldHeading(block, style) ? Math.min(sizes.length + 1, HEADING_LEVELS) : 0;
  };
}

function isSizedHeading(block: Block, style: DocumentStyle): boolean {
  return block.lines[0]!.size >= 1.14 * style.bodySize && couldBeHeading(block, HEADING_CHARACTERS, 4);
}

function isBoldHeading(block: Block, style: DocumentStyle): boolean {
  return (
    style.fonts.get(style.bodyFont)?.isBold !== true &&
    block.lines.every(
      (line) => line.isUniform && line.size >= 0.9 * style.bodySize && style.fonts.get(line.font)?.isBold === true,
    ) &&
    couldBeHeading(block, BOLD_HEADING_CHARACTERS, 2) &&
    !/[.,;:]$/u.test(block.lines.at(-1)!.text)
  );
}

function couldBeHeading(block: Block, characters: number, lines: number): boolean {
  if (block.isAside || block.kind === 'code' || block.kind === 'rows' || block.lines.length > lines) return false;
  if (block.kind === 'item' && BULLET.test(block.lines[0]!.text)) return false;
  const text = block.lines.map((line) => line.text).join(' ');
  return text.length <= characters && !/[,;]$/.test(text) && (text.match(/\p{L}/gu)?.length ?? 0) >= 2;
}

// ── Markdown ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** Items of a list follow each other line by line, other blocks stand apart. */
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

/** What is no markup in the file is none in the text. */
function escapeMarkup(text: string): string {
  return text.replace(/^(?=#{1,6}\s|`{3}|~{3})/, '\\');
}

const HYPHEN_AT_END = /\p{L}[-‐\u00ad]$/u;

function isHyphenated(text: string, next: string): boolean {
  return HYPHEN_AT_END.test(text) && /^\p{Ll}/u.test(next);
}

/** Drops the hyphen from what came before unless the file writes the word with it elsewhere. @returns what to append */
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

/** Every word of the file, in lower case, where a line of it ends in a hyphen; else none, as none is asked for. */
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

/** Fenced, with the indentation that its place on the page gives each line. */
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

const LEAST_TABLE_ROWS = 3;
const MOST_TABLE_COLUMNS = 16;

/** A table only where every row has a cell in every column and no cell reaches into the next one: else undefined. */
function renderTable(lines: readonly Line[]): string | undefined {
  const columns = lines[0]!.cells.length;
  if (lines.length < LEAST_TABLE_ROWS || columns < 2 || columns > MOST_TABLE_COLUMNS) return undefined;
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

// ── Counting ───────────────────────────────────────────────────────────────────────────────────────────────────────

function* linesOf(pages: readonly PdfPage[]): Generator<Line> {
  for (const page of pages) yield* page.lines;
}

function roundSize(size: number): number {
  return Math.round(size * 2) / 2;
}

function addTo<Key>(counts: Map<Key, number>, key: Key, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count);
}

function addToList<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

function mostOf<Key>(counts: ReadonlyMap<Key, number>): Key | undefined {
  let most: Key | undefined;
  for (const [key, count] of counts) if (most === undefined || count > counts.get(most)!) most = key;
  return most;
}

function countOf<Value>(values: Iterable<Value>, isCounted: (value: Value) => boolean): number {
  let count = 0;
  for (const value of values) if (isCounted(value)) count += 1;
  return count;
}
