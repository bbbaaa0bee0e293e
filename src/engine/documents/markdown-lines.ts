/**
 * Recognises the kinds of Markdown lines. Each check takes time linear in the line's length, since a line may be
 * megabytes long.
 */

import { isBlank, skip, type Line } from './text-lines.ts';

/**
 * Returns the offset after the front matter: settings between lines of `---` (or `...` at their end) at the very start
 * of the text. Returns 0 if there is none, if it is longer than 10,000 UTF-16 code units, or if the text only starts
 * with a horizontal rule.
 */
export function frontMatterEnd(text: string): number {
  const start = text.slice(0, MAX_FRONT_MATTER_LENGTH);
  if (!/^---[ \t\r]*\n[^\s#]/.test(start)) return 0;
  const close = /\n(?:---|\.\.\.)[ \t\r]*(?:\n|$)/.exec(start);
  return close === null ? 0 : close.index + close[0].length;
}

/** Greatest length of front matter, in UTF-16 code units. */
const MAX_FRONT_MATTER_LENGTH = 10_000;

/**
 * Returns the fence (three or more backticks or tildes) with which a line opens a code block; undefined if it does not
 * open one. A line of backticks with a further backtick is a code span, not a fence. Indentation is ignored.
 */
export function fenceMark(text: string, line: Line): string | undefined {
  const first = line.head.charAt(0);
  if (!line.head.startsWith(first.repeat(3)) || (first !== '`' && first !== '~')) return undefined;
  const start = firstOf(line, text);
  const end = skip(text, start, line.end, (code) => code === first.charCodeAt(0));
  if (first === '`' && skip(text, end, line.end, (code) => code !== BACKTICK) < line.end) return undefined;
  return text.slice(start, end);
}

/**
 * Tells whether a line closes the code block that the fence `mark` opened: it has at least as many of these characters,
 * and only blanks after them.
 */
export function closesFence(text: string, line: Line, mark: string): boolean {
  if (line.isBlank || !text.startsWith(mark, firstOf(line, text))) return false;
  const end = skip(text, firstOf(line, text), line.end, (code) => code === mark.charCodeAt(0));
  return skip(text, end, line.end, isBlank) === line.end;
}

/** Tells whether a line consists of equals signs only, or of hyphens only, with or without blanks around them. */
export function isUnderline(text: string, line: Line): boolean {
  const first = line.head.charCodeAt(0);
  if (first !== EQUALS && first !== MINUS) return false;
  const end = skip(text, firstOf(line, text), line.end, (code) => code === first);
  return skip(text, end, line.end, isBlank) === line.end;
}

/**
 * Tells whether a line is the delimiter row below a table's header: only hyphens, colons, pipes and blanks, with at
 * least one hyphen and one pipe.
 */
export function isTableRule(text: string, line: Line): boolean {
  if (!/^[|:-]/.test(line.head) || !hasPipe(text, line)) return false;
  const end = skip(
    text,
    line.start,
    line.end,
    (code) => code === PIPE || code === COLON || code === MINUS || isBlank(code),
  );
  return end === line.end && skip(text, line.start, line.end, (code) => code !== MINUS) < line.end;
}

/** Tells whether a line is a horizontal rule: three or more of `-`, `*` or `_`, and otherwise only blanks. */
export function isThematicBreak(text: string, line: Line): boolean {
  const first = line.head.charCodeAt(0);
  if (first !== MINUS && first !== STAR && first !== UNDERSCORE) return false;
  let count = 0;
  const end = skip(text, line.start, line.end, (code) => {
    if (code === first) count++;
    return code === first || isBlank(code);
  });
  return end === line.end && count >= 3;
}

/**
 * Tells whether a line starts a list item. Within a paragraph, only a bullet, "1." or "1)" with text after it does,
 * since a wrapped line may begin with "1984.".
 * @param head start of the line without its indentation
 */
export function isListItem(head: string, isInParagraph: boolean): boolean {
  return (isInParagraph ? /^(?:[-+*]|1[.)])[ \t]/ : /^(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)/).test(head);
}

/** Tells whether a line has a pipe anywhere; false if the line is undefined. */
export function hasPipe(text: string, line: Line | undefined): boolean {
  return line !== undefined && skip(text, line.start, line.end, (code) => code !== PIPE) < line.end;
}

function firstOf(line: Line, text: string): number {
  return skip(text, line.start, line.end, isBlank);
}

const BACKTICK = 96;
const EQUALS = 61;
const MINUS = 45;
const STAR = 42;
const UNDERSCORE = 95;
const PIPE = 124;
const COLON = 58;
