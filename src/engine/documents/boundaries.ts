import { assert } from '../errors.ts';
import type { TextKind } from './parsed-document.ts';

/**
 * How well a text may be cut before a line, from worst to best. A section's strength grows as its heading's level falls, from
 * SECTION (level 6) to SECTION + 5 (level 1).
 */
export const TIED = 1;
export const WRAPPED = 2;
export const LINE = 3;
export const GROUP = 4;
export const BLOCK = 5;
export const SECTION = 6;

export interface Boundaries {
  /** How well the text may be cut before a character: 0 inside a line. */
  strength(offset: number): number;
  /** 1..6 where a heading starts, else 0. */
  headingLevel(offset: number): number;
  /** Where the first heading from an offset on starts, Infinity if there is none. */
  nextHeading(offset: number): number;
  /** The fenced code block or table row that the offset cuts in two. */
  wholeAround(offset: number): Span | undefined;
}

/** Offsets in UTF-16 units, end exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * Where lines start, and what starts there: sections, blocks, list items, table rows and lines of code. A scanner of lines, since a
 * Markdown parser gives a tree of objects fifty times the size of its text, and some are quadratic on hostile input. It knows
 * ATX and setext headings, fences, pipe tables, lists, quotes, indented code and front matter. One pass; a byte a character.
 */
export function boundariesOf(text: string, kind: TextKind): Boundaries {
  const marks = new Uint8Array(text.length + 1);
  const wholes = spanList();
  if (kind === 'markdown') scanMarkdown(text, marks, wholes);
  else if (kind === 'code') scanCode(text, marks);
  else scanPlain(text, marks);
  return {
    strength: (offset) => strengthOf(marks[offset] ?? 0),
    headingLevel: (offset) => levelOf(marks[offset] ?? 0),
    nextHeading(offset) {
      for (let next = offset; next < marks.length; next++) if (levelOf(marks[next]!) > 0) return next;
      return Infinity;
    },
    wholeAround: (offset) => wholes.around(offset),
  };
}

/** Set beside the strength of a line that must not be parted from the one before: what follows a heading or a table's head. */
const TIED_FLAG = 0x80;

function strengthOf(mark: number): number {
  return mark & TIED_FLAG ? TIED : mark;
}

function levelOf(mark: number): number {
  const strength = mark & ~TIED_FLAG;
  return strength >= SECTION ? SECTION + 6 - strength : 0;
}

/** Spans in order, eight bytes each: a table of 20 MB can have ten million rows. */
interface SpanList {
  add(start: number, end: number): void;
  around(offset: number): Span | undefined;
}

function spanList(): SpanList {
  let offsets = new Uint32Array(64);
  let count = 0;
  return {
    add(start, end) {
      if (2 * count === offsets.length) {
        const longer = new Uint32Array(2 * offsets.length);
        longer.set(offsets);
        offsets = longer;
      }
      offsets[2 * count] = start;
      offsets[2 * count + 1] = end;
      count++;
    },
    around(offset) {
      let low = 0;
      let high = count;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if ((offsets[2 * middle] ?? 0) < offset) low = middle + 1;
        else high = middle;
      }
      if (low === 0) return undefined;
      const start = offsets[2 * low - 2] ?? 0;
      const end = offsets[2 * low - 1] ?? 0;
      return offset < end ? { start, end } : undefined;
    },
  };
}

function scanPlain(text: string, marks: Uint8Array): void {
  let isAfterBlank = true;
  forEachLine(text, ({ start, isBlank }) => {
    marks[start] = isBlank ? LINE : isAfterBlank ? BLOCK : WRAPPED;
    isAfterBlank = isBlank;
  });
}

function scanCode(text: string, marks: Uint8Array): void {
  const strengthOfCode = codeScanner();
  forEachLine(text, (line) => {
    marks[line.start] = strengthOfCode(line);
  });
}

/**
 * Strengths of lines of code, told in order. Best before a line without indentation that follows an empty one, where most languages
 * begin a definition; then after an empty line, without indentation, or where a member follows the end of another, as records do
 * in JSON. Never good before a closing bracket, or between a comment or decorator and what it belongs to.
 */
function codeScanner(): (line: Line) => number {
  let isAfterBlank = true;
  let isAfterEnd = false;
  let isAfterLead = false;
  return ({ isBlank, indent, head }) => {
    const isEnd = /^[)\]}]|^end\b/.test(head);
    const isOuter = indent === 0 || (isAfterEnd && indent <= MEMBER_INDENT);
    let strength = LINE;
    if (!isBlank) strength = isAfterLead || isEnd ? WRAPPED : LINE + (isOuter ? 1 : 0) + (isAfterBlank ? 1 : 0);
    isAfterLead = /^(?:\/\/|\/\*|\*|#|@|--)/.test(head);
    isAfterEnd = isEnd;
    isAfterBlank = isBlank;
    return strength;
  };
}

/** Columns: one step of most styles, two of the narrowest. */
const MEMBER_INDENT = 4;

interface Line {
  readonly start: number;
  /** Of its text, without the line break. */
  readonly end: number;
  /** Where the next one starts. */
  readonly next: number;
  readonly isBlank: boolean;
  /** Columns; a tab counts four. */
  readonly indent: number;
  /** Its first characters after the indentation: enough to tell what it is, and no more, since a line may be megabytes. */
  readonly head: string;
}

const HEAD_LENGTH = 80;

function forEachLine(text: string, visit: (line: Line) => void): void {
  let start = 0;
  while (start < text.length) {
    const newline = text.indexOf('\n', start);
    const end = newline === -1 ? text.length : newline;
    const next = newline === -1 ? text.length : newline + 1;
    let first = start;
    let indent = 0;
    while (first < end && isBlankCode(text.charCodeAt(first))) indent += text.charCodeAt(first++) === TAB ? 4 : 1;
    const head = text.slice(first, Math.min(end, first + HEAD_LENGTH));
    visit({ start, end, next, isBlank: first === end, indent, head });
    start = next;
  }
}

type BlockKind = 'none' | 'paragraph' | 'heading' | 'list' | 'table' | 'quote' | 'indented' | 'fence' | 'rule';

function scanMarkdown(text: string, marks: Uint8Array, wholes: SpanList): void {
  let block: BlockKind = 'none';
  let isAfterBlank = true;
  let isTied = false;
  let paragraph: Line | undefined;
  let previous: Line | undefined;
  let fence:
    { readonly start: number; readonly mark: string; readonly strengthOfCode: (line: Line) => number } | undefined;
  const frontMatter = frontMatterEnd(text);

  forEachLine(text, (line) => {
    if (fence !== undefined) {
      marks[line.start] = fence.strengthOfCode(line);
      if (closesFence(text, line, fence.mark)) closeFence(line.next);
    } else if (line.start < frontMatter) {
      block = mark(line, LINE, 'rule');
    } else if (line.isBlank) {
      marks[line.start] = isTied ? LINE | TIED_FLAG : LINE;
    } else {
      block = enter(line);
    }
    isAfterBlank = line.isBlank;
    previous = line;
  });
  if (fence !== undefined) closeFence(text.length);

  function closeFence(end: number): void {
    assert(fence !== undefined, 'a fence is open');
    wholes.add(fence.start, end);
    fence = undefined;
    block = 'fence';
  }

  /** Marks a line outside of fences that is not blank, and tells what it belongs to. */
  function enter(line: Line): BlockKind {
    const { start, indent, head } = line;
    const opening = indent < 4 || block === 'list' ? fenceMark(text, line) : undefined;
    if (opening !== undefined) {
      fence = { start, mark: opening, strengthOfCode: codeScanner() };
      return mark(line, BLOCK, 'fence');
    }
    const atx = indent < 4 ? /^#{1,6}(?=\s|$)/.exec(head) : null;
    if (atx !== null) return markHeading(line, atx[0].length);
    if (isUnderParagraph()) {
      if (indent < 4 && isUnderline(text, line)) return markSetext(line);
      if (isTableRule(text, line) && hasPipe(text, previous)) return markTable(line);
    }
    if (block === 'table' && !isAfterBlank) return markRow(line);
    if (indent < 4 && isThematicBreak(text, line)) return mark(line, BLOCK, 'rule');
    return enterText(line);
  }

  /** Lists, quotes, indented code and paragraphs. */
  function enterText(line: Line): BlockKind {
    const { indent, head } = line;
    const isWrapped = !isAfterBlank && (block === 'paragraph' || block === 'list' || block === 'quote');
    if (isListItem(head, isWrapped && block === 'paragraph')) {
      if (block === 'list') return mark(line, indent < 2 ? GROUP : LINE, 'list');
      return mark(line, isWrapped ? LINE : BLOCK, 'list');
    }
    if (head.startsWith('>')) return mark(line, block === 'quote' && !isAfterBlank ? WRAPPED : BLOCK, 'quote');
    if (isWrapped) return mark(line, WRAPPED, block);
    if (block === 'list' && indent >= 2) return mark(line, LINE, 'list');
    if (indent >= 4) return mark(line, block !== 'indented' ? BLOCK : isAfterBlank ? GROUP : LINE, 'indented');
    paragraph = line;
    return mark(line, BLOCK, 'paragraph');
  }

  function mark(line: Line, strength: number, kind: BlockKind): BlockKind {
    marks[line.start] = isTied ? strength | TIED_FLAG : strength;
    isTied = false;
    return kind;
  }

  function markHeading(line: Line, level: number): BlockKind {
    mark(line, SECTION + 6 - level, 'heading');
    isTied = true;
    return 'heading';
  }

  function isUnderParagraph(): boolean {
    return block === 'paragraph' && !isAfterBlank;
  }

  function markSetext(line: Line): BlockKind {
    // A rule under a long paragraph divides; nobody meant that as a heading.
    if (paragraph === undefined || line.start - paragraph.start > LONGEST_SETEXT) return mark(line, BLOCK, 'rule');
    const level = line.head.startsWith('=') ? 1 : 2;
    marks[paragraph.start] = (SECTION + 6 - level) | ((marks[paragraph.start] ?? 0) & TIED_FLAG);
    marks[line.start] = LINE | TIED_FLAG;
    isTied = true;
    return 'heading';
  }

  /** At the rule under a table's head, which shows that the line before was the head. */
  function markTable(line: Line): BlockKind {
    if (previous !== undefined) {
      if (previous.start !== paragraph?.start) marks[previous.start] = LINE;
      wholes.add(previous.start, previous.next);
    }
    isTied = true;
    markRow(line);
    isTied = true;
    return 'table';
  }

  function markRow(line: Line): BlockKind {
    wholes.add(line.start, line.next);
    return mark(line, LINE, 'table');
  }
}

const TAB = 9;
const LONGEST_SETEXT = 300;

/** Where the settings that stand above a document end, between lines of hyphens; 0 for none, or for a mere rule at its start. */
function frontMatterEnd(text: string): number {
  const start = text.slice(0, LONGEST_FRONT_MATTER);
  if (!/^---[ \t\r]*\n[^\s#]/.test(start)) return 0;
  const close = /\n(?:---|\.\.\.)[ \t\r]*(?:\n|$)/.exec(start);
  return close === null ? 0 : close.index + close[0].length;
}

const LONGEST_FRONT_MATTER = 10_000;

/** The marks that open a fence, as many as there are; a backtick after them makes it a code span. */
function fenceMark(text: string, line: Line): string | undefined {
  const first = line.head.charAt(0);
  if (!line.head.startsWith(first.repeat(3)) || (first !== '`' && first !== '~')) return undefined;
  const start = firstOf(line, text);
  const end = skip(text, start, line.end, (code) => code === first.charCodeAt(0));
  if (first === '`' && skip(text, end, line.end, (code) => code !== BACKTICK) < line.end) return undefined;
  return text.slice(start, end);
}

function closesFence(text: string, line: Line, mark: string): boolean {
  if (line.isBlank || !text.startsWith(mark, firstOf(line, text))) return false;
  const end = skip(text, firstOf(line, text), line.end, (code) => code === mark.charCodeAt(0));
  return skip(text, end, line.end, isBlankCode) === line.end;
}

function isUnderline(text: string, line: Line): boolean {
  const first = line.head.charCodeAt(0);
  if (first !== EQUALS && first !== MINUS) return false;
  const end = skip(text, firstOf(line, text), line.end, (code) => code === first);
  return skip(text, end, line.end, isBlankCode) === line.end;
}

/** The line under a table's head: hyphens, colons and at least one pipe. */
function isTableRule(text: string, line: Line): boolean {
  if (!/^[|:-]/.test(line.head) || !hasPipe(text, line)) return false;
  const end = skip(
    text,
    line.start,
    line.end,
    (code) => code === PIPE || code === COLON || code === MINUS || isBlankCode(code),
  );
  return end === line.end && skip(text, line.start, line.end, (code) => code !== MINUS) < line.end;
}

function isThematicBreak(text: string, line: Line): boolean {
  const first = line.head.charCodeAt(0);
  if (first !== MINUS && first !== STAR && first !== UNDERSCORE) return false;
  let count = 0;
  const end = skip(text, line.start, line.end, (code) => {
    if (code === first) count++;
    return code === first || isBlankCode(code);
  });
  return end === line.end && count >= 3;
}

/** In a paragraph only "1." begins a list: the next line of a sentence may begin with "1984.". */
function isListItem(head: string, isInParagraph: boolean): boolean {
  return (isInParagraph ? /^(?:[-+*]|1[.)])[ \t]/ : /^(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)/).test(head);
}

function hasPipe(text: string, line: Line | undefined): boolean {
  return line !== undefined && skip(text, line.start, line.end, (code) => code !== PIPE) < line.end;
}

function firstOf(line: Line, text: string): number {
  return skip(text, line.start, line.end, isBlankCode);
}

function skip(text: string, from: number, to: number, matches: (code: number) => boolean): number {
  let index = from;
  while (index < to && matches(text.charCodeAt(index))) index++;
  return index;
}

function isBlankCode(code: number): boolean {
  return code === 32 || (code >= TAB && code <= 13) || code === 0xa0 || code === 0x3000;
}

const BACKTICK = 96;
const EQUALS = 61;
const MINUS = 45;
const STAR = 42;
const UNDERSCORE = 95;
const PIPE = 124;
const COLON = 58;
