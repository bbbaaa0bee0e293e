/**
 * Text for a terminal: styles, widths, tables, units. `styleText` adds no styles for other outputs, or with NO_COLOR.
 */
import { styleText } from 'node:util';

const MAX_WIDTH = 100;

/** Returns the number of columns of the terminal, at most 100; 80 if the output is not a terminal. */
export function widthOfTerminal(): number {
  return Math.min(MAX_WIDTH, process.stdout.columns ?? 80);
}

export const bold = (text: string) => styleText('bold', text);
export const dim = (text: string) => styleText('dim', text);
export const cyan = (text: string) => styleText('cyan', text);
export const green = (text: string) => styleText('green', text);
export const yellow = (text: string) => styleText('yellow', text);
export const red = (text: string) => styleText('red', text);

/**
 * Writes lines to stdout. Control characters are printed as JSON escapes them, so that no text of a memory or a file
 * can control the terminal; line breaks, tabs and styles are kept.
 */
export function print(...lines: readonly string[]): void {
  for (const line of lines) process.stdout.write(`${line.replaceAll(STYLE_OR_CONTROL, escapeControl)}\n`);
}

/**
 * Returns a text on one line: control characters, and characters that are invisible or change the direction of text,
 * become spaces, and runs of spaces become one. A memory may contain escape sequences for terminals.
 */
export function oneLine(text: string): string {
  return text.replaceAll(INVISIBLE, ' ').replaceAll(BLANKS, ' ').trim();
}

/**
 * Returns the first `width` columns of a text, on one line, with an ellipsis if something was cut; '' for an empty
 * text.
 */
export function cut(text: string, width: number): string {
  return wrap(text, width, 1)[0] ?? '';
}

/**
 * Breaks a text into at most `maxLines` lines of at most `width` columns, between words or within long ones. If the
 * text is longer, the last line ends in an ellipsis. An empty text gives no line. A line has at least one character, so
 * with a `width` under 3 it may be wider.
 */
export function wrap(text: string, width: number, maxLines: number): string[] {
  const lines: string[] = [];
  let line = '';
  let used = 0;
  // The start of a long text is enough: what the lines can hold, and a little more to tell whether it was cut.
  const words = oneLine(text.slice(0, width * maxLines * 4 + 64)).split(' ');
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    const gap = line === '' ? 0 : 1;
    if (used + gap + displayWidth(word) <= width) {
      line += (gap === 1 ? ' ' : '') + word;
      used += gap + displayWidth(word);
      continue;
    }
    if (lines.length === maxLines - 1)
      return [...lines, `${take(`${line}${gap === 1 ? ' ' : ''}${word}`, width - 1).trimEnd()}…`];
    if (line === '') {
      line = take(word, width);
      words.splice(at + 1, 0, word.slice(line.length));
    } else {
      at--;
    }
    lines.push(line);
    line = '';
    used = 0;
  }
  return line === '' ? lines : [...lines, line];
}

/**
 * Makes the lines of a table, with columns as wide as their widest cell. `align` has one character for each column: `<`
 * for left, `>` for right. Cells may have styles.
 */
export function table(rows: readonly (readonly string[])[], align: string): string[] {
  const widths = [...align].map((_, column) => Math.max(0, ...rows.map((row) => displayWidth(row[column] ?? ''))));
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const padding = ' '.repeat(Math.max(0, (widths[column] ?? 0) - displayWidth(cell)));
        return align[column] === '>' ? padding + cell : cell + padding;
      })
      .join('  ')
      .trimEnd(),
  );
}

/**
 * Draws one character for each value, of a height in proportion to the greatest value (or to 1 if all values are less);
 * 0 is a dot. Values must be 0 or more.
 */
export function sparkline(values: readonly number[]): string {
  const greatest = Math.max(1, ...values);
  return values
    .map((value) => (value === 0 ? '·' : BLOCKS[Math.ceil((value / greatest) * BLOCKS.length) - 1]))
    .join('');
}

/** Formats a number with commas: `2,000`. */
export function count(value: number): string {
  return value.toLocaleString('en-US');
}

/** Formats a number with its noun: `1 memory`, `2,000 memories`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** Formats numbers with their nouns: `2 new, 1 refused`. */
export function tally(counts: Iterable<readonly [string, number]>): string {
  return [...counts].map(([what, number]) => `${count(number)} ${what}`).join(', ');
}

/** Formats a number of bytes in decimal units: `950 B`, `1.5 MB`. */
export function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  for (; value >= 999.5 && unit < units.length - 1; unit++) value /= 1000;
  return `${unit === 0 || value >= 99.5 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** Formats a time span in its largest unit, rounded down: `59 s`, `3 h`, `2 y`. A negative span is `0 s`. */
export function span(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h`;
  const days = Math.floor(seconds / 86_400);
  return days < 365 ? `${days} d` : `${Math.floor(days / 365)} y`;
}

/**
 * Formats the time since `then` (Unix ms): `3 h ago`; `just now` under a second, and also if the server's clock is
 * ahead.
 */
export function age(then: number, now = Date.now()): string {
  return now - then < 1000 ? 'just now' : `${span(now - then)} ago`;
}

const BLOCKS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/** Matches control characters, and characters that are invisible or change the direction of the text after them. */
const INVISIBLE = /[\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
const BLANKS = /\s+/g;
const STYLES = /\u001b\[[\d;]{0,16}m/g;
/** Matches a style, which begins with a control character, or any other control character but a line break or a tab. */
const STYLE_OR_CONTROL = /\u001b\[[\d;]{0,16}m|[^\P{Cc}\n\t]/gu;
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const COMBINING = /\p{M}/u;

/** Returns a control character as JSON escapes it; returns a style as it is. */
function escapeControl(found: string): string {
  return found.length > 1 ? found : `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Returns the number of columns that a text takes on a terminal; styles take none. */
function displayWidth(text: string): number {
  let width = 0;
  for (const character of text.replaceAll(STYLES, '')) width += widthOf(character);
  return width;
}

function widthOf(character: string): number {
  if (character <= '\u02ff') return 1;
  return COMBINING.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
}

/**
 * Returns the longest beginning of a text that fits into `width` columns. It has at least one character, even if that
 * is wider.
 */
function take(text: string, width: number): string {
  let used = 0;
  let end = 0;
  for (const character of text) {
    used += widthOf(character);
    if (used > width && end > 0) break;
    end += character.length;
  }
  return text.slice(0, end);
}
