import { createCodeScanner } from './code-scanner.ts';
import { BLOCK, LINE, WRAPPED, levelOf, strengthOf } from './line-marks.ts';
import { scanMarkdown } from './markdown-scanner.ts';
import type { TextKind } from './parsed-document.ts';
import { createSpanList, type Span } from './span-list.ts';
import { forEachLine } from './text-lines.ts';

/** Lines, headings and uncuttable parts of one text; offsets are UTF-16 units. */
export interface Boundaries {
  /**
   * Returns how well the text may be cut at an offset, as a strength of `line-marks.ts` from TIED to SECTION + 5; 0
   * inside a line and at the text's end.
   */
  strength(offset: number): number;
  /** Returns the level of the heading that starts at the offset, from 1 to 6, or 0 if none does. */
  headingLevel(offset: number): number;
  /** Returns the start of the first heading at or after an offset; Infinity if there is none. */
  nextHeading(offset: number): number;
  /** Returns the fenced code block or table row that the offset cuts in two; undefined if it cuts none. */
  wholeAround(offset: number): Span | undefined;
}

/**
 * Finds where the lines of a text start, and what starts there: a section, block, list item, table row or line of code.
 * It scans lines, since a Markdown parser gives a tree of objects fifty times the size of its text, and some are
 * quadratic on hostile input. It knows ATX and setext headings, fences, pipe tables, lists, quotes, indented code and
 * front matter. It takes one pass and one byte a character. Only Markdown has headings and uncuttable parts.
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
