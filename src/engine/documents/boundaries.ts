import { createCodeScanner } from './code-scanner.ts';
import { BLOCK, LINE, WRAPPED, levelOf, strengthOf } from './line-marks.ts';
import { scanMarkdown } from './markdown-scanner.ts';
import type { TextKind } from './parsed-document.ts';
import { createSpanList, type Span } from './span-list.ts';
import { forEachLine } from './text-lines.ts';

/**
 * Where a text may be cut into chunks: its lines, its headings, and its code blocks and table rows that should not be
 * cut. Offsets are in UTF-16 code units.
 */
export interface Boundaries {
  /**
   * Returns how well the text may be cut before the line that starts at an offset, from 1 (not at all, as the line
   * belongs to the one before) over 3 (an inner list item or table row) and 5 (a paragraph) to 11 (a heading of level
   * 1). It is 0 inside a line and at the end of the text. The steps are the constants of line-marks.ts.
   */
  strength(offset: number): number;
  /** Returns the level of the heading that starts at the offset, 1..6; 0 if no heading starts there. */
  headingLevel(offset: number): number;
  /** Returns the start of the first heading at or after an offset; Infinity if there is none. */
  nextHeading(offset: number): number;
  /**
   * Returns the fenced code block or table row that contains an offset; undefined if there is none, or if the offset is
   * at its start or end.
   */
  wholeAround(offset: number): Span | undefined;
}

/**
 * Finds where the lines of a text start, and what starts there: a section, block, list item, table row or line of code.
 * Lines are scanned without a Markdown parser, since the tree of a parser is fifty times the size of its text, and some
 * parsers take quadratic time on hostile input. The scan knows ATX and setext headings, fences, pipe tables, lists,
 * quotes, indented code and front matter. It takes one pass and one byte of memory for each character. Only Markdown
 * has headings and parts that should not be cut.
 */
export function boundariesOf(text: string, kind: TextKind): Boundaries {
  const marks = new Uint8Array(text.length + 1);
  const wholes = createSpanList();
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

function scanPlain(text: string, marks: Uint8Array): void {
  let isAfterBlank = true;
  forEachLine(text, ({ start, isBlank }) => {
    marks[start] = isBlank ? LINE : isAfterBlank ? BLOCK : WRAPPED;
    isAfterBlank = isBlank;
  });
}

function scanCode(text: string, marks: Uint8Array): void {
  const strengthOfCode = createCodeScanner();
  forEachLine(text, (line) => {
    marks[line.start] = strengthOfCode(line);
  });
}
