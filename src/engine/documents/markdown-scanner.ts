import { createCodeScanner } from './code-scanner.ts';
import { BLOCK, GROUP, LINE, TIED_FLAG, WRAPPED, sectionStrength } from './line-marks.ts';
import {
  closesFence,
  fenceMark,
  frontMatterEnd,
  hasPipe,
  isListItem,
  isTableRule,
  isThematicBreak,
  isUnderline,
} from './markdown-lines.ts';
import type { SpanList } from './span-list.ts';
import { forEachLine, type Line } from './text-lines.ts';

/** Kinds of Markdown blocks. `none` is the kind before the first block; `rule` also stands for front matter. */
type BlockKind = 'none' | 'paragraph' | 'heading' | 'list' | 'table' | 'quote' | 'indented' | 'fence' | 'rule';

/** The state of a scan between two lines. */
interface Scan {
  readonly text: string;
  readonly marks: Uint8Array;
  readonly wholes: SpanList;
  /** Kind of the block that the last non-blank line belongs to. */
  block: BlockKind;
  isAfterBlank: boolean;
  /** Whether the next line must not be separated from the line before it. */
  isTied: boolean;
  /** First line of the last paragraph; undefined before the first one. */
  paragraph: Line | undefined;
  /** The line that was scanned last, blank or not; undefined at the text's start. */
  previous: Line | undefined;
  /** The open fence that contains the next line; undefined outside of fences. */
  fence: Fence | undefined;
}

interface Fence {
  readonly start: number;
  readonly mark: string;
  readonly strengthOfCode: (line: Line) => number;
}

/**
 * Writes the mark of each line of a Markdown text, and lists the spans that should not be cut.
 * @param marks receives at the start offset of each line one byte, which says how well the text may be cut there and
 *   whether the line is tied to the one before (line-marks.ts); all its bytes must be 0 before
 * @param wholes an empty list, which receives fenced code and table rows, in order
 */
export function scanMarkdown(text: string, marks: Uint8Array, wholes: SpanList): void {
  const scan: Scan = {
    text,
    marks,
    wholes,
    block: 'none',
    isAfterBlank: true,
    isTied: false,
    paragraph: undefined,
    previous: undefined,
    fence: undefined,
  };
  const frontMatter = frontMatterEnd(text);
  forEachLine(text, (line) => {
    if (scan.fence !== undefined) {
      scanFenced(scan, scan.fence, line);
    } else if (line.start < frontMatter) {
      scan.block = mark(scan, line, LINE, 'rule');
    } else if (line.isBlank) {
      marks[line.start] = scan.isTied ? LINE | TIED_FLAG : LINE;
    } else {
      scan.block = scanFilled(scan, line);
    }
    scan.isAfterBlank = line.isBlank;
    scan.previous = line;
  });
  if (scan.fence !== undefined) closeFence(scan, scan.fence, text.length);
}

function scanFenced(scan: Scan, fence: Fence, line: Line): void {
  scan.marks[line.start] = fence.strengthOfCode(line);
  if (closesFence(scan.text, line, fence.mark)) closeFence(scan, fence, line.next);
}

function closeFence(scan: Scan, fence: Fence, end: number): void {
  scan.wholes.add(fence.start, end);
  scan.fence = undefined;
  scan.block = 'fence';
}

/** Writes the mark of a non-blank line outside of code fences, and returns the kind of its block. */
function scanFilled(scan: Scan, line: Line): BlockKind {
  const { text, block } = scan;
  const { start, indent, head } = line;
  const opening = indent < 4 || block === 'list' ? fenceMark(text, line) : undefined;
  if (opening !== undefined) {
    scan.fence = { start, mark: opening, strengthOfCode: createCodeScanner() };
    return mark(scan, line, BLOCK, 'fence');
  }
  const atx = indent < 4 ? /^#{1,6}(?=\s|$)/.exec(head) : null;
  if (atx !== null) return markHeading(scan, line, atx[0].length);
  if (block === 'paragraph' && !scan.isAfterBlank) {
    if (indent < 4 && isUnderline(text, line)) return markSetext(scan, line);
    if (isTableRule(text, line) && hasPipe(text, scan.previous)) return markTable(scan, line);
  }
  if (block === 'table' && !scan.isAfterBlank) return markRow(scan, line);
  if (indent < 4 && isThematicBreak(text, line)) return mark(scan, line, BLOCK, 'rule');
  return scanText(scan, line);
}

/** Writes the mark of a line of a list, a quote, indented code or a paragraph, and returns the kind of its block. */
function scanText(scan: Scan, line: Line): BlockKind {
  const { block, isAfterBlank } = scan;
  const { indent, head } = line;
  const isWrapped = !isAfterBlank && (block === 'paragraph' || block === 'list' || block === 'quote');
  if (isListItem(head, isWrapped && block === 'paragraph')) {
    if (block === 'list') return mark(scan, line, indent < 2 ? GROUP : LINE, 'list');
    return mark(scan, line, isWrapped ? LINE : BLOCK, 'list');
  }
  if (head.startsWith('>')) return mark(scan, line, block === 'quote' && !isAfterBlank ? WRAPPED : BLOCK, 'quote');
  if (isWrapped) return mark(scan, line, WRAPPED, block);
  if (block === 'list' && indent >= 2) return mark(scan, line, LINE, 'list');
  if (indent >= 4) return mark(scan, line, block !== 'indented' ? BLOCK : isAfterBlank ? GROUP : LINE, 'indented');
  scan.paragraph = line;
  return mark(scan, line, BLOCK, 'paragraph');
}

function mark(scan: Scan, line: Line, strength: number, kind: BlockKind): BlockKind {
  scan.marks[line.start] = scan.isTied ? strength | TIED_FLAG : strength;
  scan.isTied = false;
  return kind;
}

function markHeading(scan: Scan, line: Line, level: number): BlockKind {
  mark(scan, line, sectionStrength(level), 'heading');
  scan.isTied = true;
  return 'heading';
}

/**
 * Handles an underline: makes a (setext) heading of the paragraph above it. If the paragraph is longer than 300 code
 * units, the underline counts as a horizontal rule.
 */
function markSetext(scan: Scan, line: Line): BlockKind {
  const { marks, paragraph } = scan;
  // A rule under a long paragraph divides; its author did not mean a heading.
  if (paragraph === undefined || line.start - paragraph.start > MAX_SETEXT_LENGTH) {
    return mark(scan, line, BLOCK, 'rule');
  }
  const level = line.head.startsWith('=') ? 1 : 2;
  marks[paragraph.start] = sectionStrength(level) | ((marks[paragraph.start] ?? 0) & TIED_FLAG);
  marks[line.start] = LINE | TIED_FLAG;
  scan.isTied = true;
  return 'heading';
}

/** Greatest length of a setext heading, in UTF-16 code units; an underline below more text is a rule. */
const MAX_SETEXT_LENGTH = 300;

/**
 * Handles the delimiter row below a table's header, by which the line before is recognised as the header. Header,
 * delimiter row and the first row below are tied together, so that no cut separates them.
 */
function markTable(scan: Scan, line: Line): BlockKind {
  const { previous } = scan;
  if (previous !== undefined) {
    if (previous.start !== scan.paragraph?.start) scan.marks[previous.start] = LINE;
    scan.wholes.add(previous.start, previous.next);
  }
  scan.isTied = true;
  markRow(scan, line);
  scan.isTied = true;
  return 'table';
}

function markRow(scan: Scan, line: Line): BlockKind {
  scan.wholes.add(line.start, line.next);
  return mark(scan, line, LINE, 'table');
}
