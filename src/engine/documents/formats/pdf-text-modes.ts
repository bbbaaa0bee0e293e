/** The text rendering modes that the drawing operators of a PDF file set (operator `Tr`), without parsing them all. */

const BLANKS = bytesOf('\0\t\n\f\r ');
const LINE_ENDS = bytesOf('\n\r');
const DELIMITERS = bytesOf('()<>[]{}/%');
const NUMERALS = bytesOf('0123456789.+-');

function bytesOf(characters: string): ReadonlySet<number> {
  return new Set(Buffer.from(characters, 'latin1'));
}

/**
 * Tells whether data may hold the operator `Tr` with a mode that makes text invisible (3 or 7). It is false only if the
 * mode is a plain integer other than these, on the same line as the operator and with white space around it, or if the
 * letters are no operator. A false positive only costs time.
 */
export function setsInvisibleMode(content: Buffer): boolean {
  for (let at = content.indexOf('Tr'); at !== -1; at = content.indexOf('Tr', at + 2)) {
    if (mayHide(content, at) && !isInString(content, at)) return true;
  }
  return false;
}

/**
 * Tells whether the operator `Tr` at a place may set a mode in which text is not drawn.
 * @param at position of the letters `Tr`
 */
function mayHide(content: Buffer, at: number): boolean {
  const previous = content[at - 1];
  // A name, or the beginning of a string.
  if (previous === 0x2f || previous === 0x28) return false;
  let end = at;
  let isOnLine = true;
  while (end > 0 && BLANKS.has(content[end - 1]!)) {
    end -= 1;
    isOnLine &&= !LINE_ENDS.has(content[end]!);
  }
  let start = end;
  while (start > 0 && end - start < MAX_NUMERALS && NUMERALS.has(content[start - 1]!)) start -= 1;
  if (start === end) return isSpecial(previous) && isSpecial(content[at + 2]);
  const numeral = content.toString('latin1', start, end);
  const isVisible = /^\d+$/.test(numeral) && Number(numeral) !== 3 && Number(numeral) !== 7;
  // pdf.js also reads a number and an operator without white space between them.
  if (end === at) return !isVisible && (isSpecial(content[start - 1]) || isLetter(content[start - 1]!));
  return !(isVisible && isOnLine && start > 0 && BLANKS.has(content[start - 1]!));
}

/** Greatest number of characters that are read of the number before `Tr`. A longer one is not of the usual form. */
const MAX_NUMERALS = 16;

/** Tells whether a byte separates two words. The end and the beginning of the data do, too. */
function isSpecial(byte: number | undefined): boolean {
  return byte === undefined || BLANKS.has(byte) || DELIMITERS.has(byte);
}

function isLetter(byte: number): boolean {
  return (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a);
}

/**
 * Greatest distance, in bytes, from the beginning of a string to the letters `Tr` in it. Farther on in a string, they
 * are taken for the operator.
 */
const STRING_BYTES = 256;

/**
 * Tells whether a position is certainly in a string that begins on the same line. Whatever precedes the parenthesis, no
 * operator can be after it before a parenthesis closes: if a comment, a hexadecimal string or the data of an image
 * began earlier, it cannot end before a new line, the character `>` or the letters `EI`.
 */
function isInString(content: Buffer, position: number): boolean {
  const earliest = Math.max(0, position - STRING_BYTES);
  for (let at = position - 1; at >= earliest; at -= 1) {
    const byte = content[at]!;
    if (byte === 0x28) return true;
    if (byte < 0x20 || byte === 0x29 || byte === 0x3e || byte === 0xff) return false;
    if (byte === 0x45 && content[at + 1] === 0x49) return false;
  }
  return false;
}
