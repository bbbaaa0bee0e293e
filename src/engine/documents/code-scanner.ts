import { LINE, WRAPPED } from './line-marks.ts';
import type { Line } from './text-lines.ts';

/**
 * Creates a function that returns the strength of each line of code as a place to cut, from `WRAPPED` (2) to `BLOCK`
 * (5). It keeps state, so it must be called once with each line of one text, in order. The best cut is before a line
 * without indentation that follows an empty line, since most languages begin a definition there. The next best is after
 * an empty line, before a line without indentation, or before a member that follows the end of another, as in a JSON
 * list of records. A cut is never good before a closing bracket, or between a comment or decorator and the definition
 * after it.
 */
export function createCodeScanner(): (line: Line) => number {
  let isAfterBlank = true;
  let isAfterEnd = false;
  let isAfterLead = false;
  return ({ isBlank, indent, head }) => {
    const isEnd = /^[)\]}]|^end\b/.test(head);
    const isOuter = indent === 0 || (isAfterEnd && indent <= MAX_MEMBER_INDENT);
    let strength = LINE;
    if (!isBlank) strength = isAfterLead || isEnd ? WRAPPED : LINE + (isOuter ? 1 : 0) + (isAfterBlank ? 1 : 0);
    isAfterLead = /^(?:\/\/|\/\*|\*|#|@|--)/.test(head);
    isAfterEnd = isEnd;
    isAfterBlank = isBlank;
    return strength;
  };
}

/**
 * Deepest indentation, in columns, of a class member or record that is still treated like a line without indentation:
 * one level in most styles, two in the narrowest.
 */
const MAX_MEMBER_INDENT = 4;
