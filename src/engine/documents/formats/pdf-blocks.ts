import { joinsWithoutSpace, type Line } from './pdf-lines.ts';
import { quantileOf } from './pdf-segments.ts';
import { roundSize, type DocumentStyle } from './pdf-style.ts';

/** A block of a PDF page: consecutive lines that belong together, such as a paragraph. */
export interface Block {
  /**
   * Kind of the block: `text` is a paragraph or a heading; `item` is one list item or numbered heading; `rows` are
   * lines of several cells, as in a table or a table of contents; `code` are lines in a monospaced font.
   */
  readonly kind: 'text' | 'item' | 'rows' | 'code';
  /** Lines of the block in order; at least one. */
  readonly lines: Line[];
  /** Whether the block's text is turned relative to the first line of its page, such as a note along the margin. */
  readonly isAside: boolean;
}

/** Groups the lines of each page into blocks, in order. The result has one list of blocks for each page. */
export function blocksOfPages(pages: readonly (readonly Line[])[], style: DocumentStyle): Block[][] {
  const leadingOf = leadings(pages);
  return pages.map((lines) => blocksOf(lines, style, leadingOf));
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

/**
 * Returns a function that gives the leading: the usual distance between the baselines of two lines of a paragraph, in
 * points, by the font size of a line. It is a low quantile of the measured distances, since those around paragraphs and
 * headings are wider; it is 1.25 font sizes if fewer than three were measured.
 */
function leadings(pages: readonly (readonly Line[])[]): (line: Line) => number {
  const steps = Map.groupBy(stepsBetweenLines(pages), ({ size }) => size);
  const leading = new Map<number, number>();
  for (const [size, measured] of steps) {
    if (measured.length < 3) continue;
    leading.set(
      size,
      quantileOf(
        measured.map(({ step }) => step),
        0.35,
      ),
    );
  }
  return (line) => leading.get(roundSize(line.size)) || 1.25 * line.size;
}

/**
 * Yields for each line the distance between its baseline and that of the line above in its region (column), in points,
 * with the font size. Lines of different sizes, and lines less than 0.8 or more than 3 sizes apart, are skipped.
 */
function* stepsBetweenLines(pages: readonly (readonly Line[])[]): Generator<{ size: number; step: number }> {
  for (const lines of pages) {
    for (const [index, line] of lines.entries()) {
      const previous = lines[index - 1];
      const size = roundSize(line.size);
      if (previous?.region !== line.region || roundSize(previous.size) !== size) continue;
      const step = previous.baseline - line.baseline;
      if (step >= 0.8 * line.size && step <= 3 * line.size) yield { size, step };
    }
  }
}

/** Matches a bullet, or a dash, at the start of a line that may be a list item. */
export const BULLET = /^[•◦▪‣●○■□▸►∙·*–—-](?=\s|$)/u;
/** Matches a number or letter at the start of a line that may be a list item. */
const NUMBER = /^(?:\d{1,3}[.)]|\(?\p{Ll}\)|\([ivx]+\)|\[\d{1,3}\])(?=\s)/u;
/** Matches dots before a short last word, as the leaders before a page's number in a table of contents. */
export const LEADER = /\s*(?:[.·…]\s?){4,200}\s*(?=\w{1,6}$)/;
/**
 * Matches a first cell that is only the bullet or number of the text after it on the line, as before a heading or in a
 * list.
 */
const LABEL = /^(?:[•◦▪‣●○■□▸►∙·*–—-]|\(?(?:\d{1,3}(?:\.\d{1,3})*|\p{L}|[ivxIVX]+)[.):]?|\[\w{1,6}\])$/u;

function kindOf(line: Line, style: DocumentStyle): Block['kind'] {
  if (line.isUniform && line.font !== style.bodyFont && style.fonts.get(line.font)?.isMonospaced === true)
    return 'code';
  if (line.cells.length > 2 || (line.cells.length === 2 && !LABEL.test(line.cells[0]!.text))) return 'rows';
  if (LEADER.test(line.text)) return 'rows';
  return BULLET.test(line.text) || NUMBER.test(line.text) ? 'item' : 'text';
}

/** Tells whether a line continues a table cell of the row above it: a wrapped cell continues below its beginning. */
function continuesCell(block: Block, line: Line, kind: Block['kind'], leading: number): boolean {
  const previous = block.lines.at(-1)!;
  const step = previous.baseline - line.baseline;
  if (block.kind !== 'rows' || kind === 'rows' || line.region !== previous.region) return false;
  return step > 0 && step <= 1.35 * Math.max(leading, line.size) && cellAbove(previous, line) > 0;
}

/**
 * Greatest length of a table cell that may continue on the next line, in characters. A longer text is no cell, and
 * appending each of its lines would copy it again.
 */
const CELL_CHARACTERS = 2000;

/**
 * Returns the index of the cell in the row above under whose left end a line begins; -1 if there is none. The first
 * cell never counts, since a line below it may as well be the text after the table, and neither does a cell of 2,000
 * characters.
 */
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

/**
 * Tells whether a sentence continues across two columns: `previous`, the last line of a column, does not end a
 * sentence, and `line` begins in lower case.
 */
function isCutOff(previous: Line, line: Line): boolean {
  return !ENDS_SENTENCE.test(previous.text) && /^\p{Ll}/u.test(line.text);
}

/**
 * Tells whether a line that looks like a list item continues the sentence of the line before: it begins with a dash, or
 * with a number and a full stop, only by accident.
 */
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

/**
 * Tells whether the line break after `previous` was intended: the first word of the next line would have fitted at its
 * end.
 */
export function isShort(previous: Line, next: Line): boolean {
  const room = previous.isRtl ? previous.left - previous.region.left : previous.region.right - previous.right;
  const word = next.text.search(/\s/);
  const width = (word === -1 ? next.text.length : word) + 1;
  return room > Math.min(width, 30) * 0.5 * next.size + 1.5 * next.size;
}

/**
 * Returns the position at which a line begins, in points along its reading direction: a greater value means a deeper
 * indentation.
 */
function startOf(line: Line): number {
  return line.isRtl ? -line.right : line.left;
}
