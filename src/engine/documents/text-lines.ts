/** A line of a text. Offsets are in UTF-16 code units. */
export interface Line {
  readonly start: number;
  /** End of the line's text, exclusive: the offset of its line feed, or the text's end. */
  readonly end: number;
  /** Start of the next line; the end of the text for the last line. */
  readonly next: number;
  readonly isBlank: boolean;
  /** Width of the white space at the line's start, in columns; a tab counts four, any other blank one. */
  readonly indent: number;
  /**
   * The first 80 UTF-16 code units, or fewer, after the indentation. They suffice to recognise the kind of line, while
   * the whole line may be megabytes long.
   */
  readonly head: string;
}

/**
 * Greatest length of `Line.head`, in UTF-16 code units: enough for a list marker, a bracket or the start of a comment.
 */
const MAX_HEAD_LENGTH = 80;

/**
 * Calls `visit` with each line of a text, in order. Lines end at line feeds. An empty text has no line, and after a
 * line feed at the end of the text there is no further line.
 */
export function forEachLine(text: string, visit: (line: Line) => void): void {
  let start = 0;
  while (start < text.length) {
    const newline = text.indexOf('\n', start);
    const end = newline === -1 ? text.length : newline;
    const next = newline === -1 ? text.length : newline + 1;
    let first = start;
    let indent = 0;
    while (first < end && isBlank(text.charCodeAt(first))) indent += text.charCodeAt(first++) === TAB ? 4 : 1;
    const head = text.slice(first, Math.min(end, first + MAX_HEAD_LENGTH));
    visit({ start, end, next, isBlank: first === end, indent, head });
    start = next;
  }
}

const TAB = 9;

/** Tells whether a UTF-16 code unit is white space: ASCII's, the no-break space or the ideographic space. */
export function isBlank(code: number): boolean {
  return code === 32 || (code >= TAB && code <= 13) || code === 0xa0 || code === 0x3000;
}

/**
 * Returns the first offset in `from` ≤ offset < `to` whose UTF-16 code unit does not match the predicate; `to` if all
 * match.
 */
export function skip(text: string, from: number, to: number, matches: (code: number) => boolean): number {
  let index = from;
  while (index < to && matches(text.charCodeAt(index))) index++;
  return index;
}
