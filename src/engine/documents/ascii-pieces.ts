/**
 * Finds the end of the piece that begins at `start`, without a regular expression, if the piece is ASCII. Before the
 * tokenizer cl100k_base merges bytes, it cuts a text into pieces by this pattern:
 *     '(?:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}
 *     | ?[^\s\p{L}\p{N}]+[\r\n]*|\s+$|\s*[\r\n]|\s+(?!\S)|\s
 * The first alternative that matches decides; contractions match in either case. No alternative looks at earlier text.
 * @param start offset at which a piece begins, before the text's end
 * @returns the piece's end, exclusive; undefined if one of its characters, or the one after it, is not ASCII
 */
export function endOfAsciiPiece(text: string, start: number): number | undefined {
  const end = endOfPiece(text, start);
  // Behind the end of the text there is NaN, which is not greater.
  return text.charCodeAt(start) > LAST_ASCII || text.charCodeAt(end) > LAST_ASCII ? undefined : end;
}

const LAST_ASCII = 127;

const OTHER = 0;
const LETTER = 1;
const DIGIT = 2;
const BLANK = 3;
const NEWLINE = 4;
const NOT_ASCII = 5;

const KINDS = Uint8Array.from({ length: LAST_ASCII + 1 }, (_, code) => {
  const character = String.fromCharCode(code);
  if (/[a-z]/i.test(character)) return LETTER;
  if (/\d/.test(character)) return DIGIT;
  if (/[\r\n]/.test(character)) return NEWLINE;
  return /\s/.test(character) ? BLANK : OTHER;
});

/**
 * Returns the class of the character at an offset, such as a letter or a digit; `NOT_ASCII` for a character that is not
 * ASCII and after the end of the text.
 */
function kindAt(text: string, offset: number): number {
  return KINDS[text.charCodeAt(offset)] ?? NOT_ASCII;
}

function endOfPiece(text: string, start: number): number {
  const kind = kindAt(text, start);
  if (kind === LETTER) return endOfRun(text, start, LETTER);
  const isContraction = text.charCodeAt(start) === APOSTROPHE && contractionLength(text, start + 1) > 0;
  if (isContraction) return start + 1 + contractionLength(text, start + 1);
  const following = kindAt(text, start + 1);
  if ((kind === BLANK || kind === OTHER) && following === LETTER) return endOfRun(text, start + 1, LETTER);
  if (kind === DIGIT) return endOfDigits(text, start);
  const isSpace = text.charCodeAt(start) === SPACE;
  if (kind === OTHER || (isSpace && following === OTHER)) {
    return endOfRun(text, endOfRun(text, start + (isSpace ? 1 : 0), OTHER), NEWLINE);
  }
  return endOfBlanks(text, start);
}

const APOSTROPHE = 39;
const SPACE = 32;

function contractionLength(text: string, start: number): number {
  const first = text.charAt(start).toLowerCase();
  if (first === 's' || first === 'd' || first === 'm' || first === 't') return 1;
  const both = first + text.charAt(start + 1).toLowerCase();
  return both === 'll' || both === 've' || both === 're' ? 2 : 0;
}

function endOfRun(text: string, start: number, kind: number): number {
  let end = start;
  while (kindAt(text, end) === kind) end++;
  return end;
}

/** Greatest number of digits of one piece, since the tokenizer's pattern cuts longer numbers into threes. */
const MAX_DIGITS = 3;

function endOfDigits(text: string, start: number): number {
  let end = start + 1;
  while (end < start + MAX_DIGITS && kindAt(text, end) === DIGIT) end++;
  return end;
}

/**
 * Returns the end (exclusive) of a piece that begins with a blank or a line break. If the whole run of white space ends
 * with the text, or before a character that is not ASCII, the run is the piece. Otherwise the piece ends after the
 * run's last line break. A run without a line break ends before its last blank, which belongs to the next word; a
 * single blank is a piece of its own.
 */
function endOfBlanks(text: string, start: number): number {
  let end = start;
  let afterBreak = start;
  for (let kind = kindAt(text, end); kind === BLANK || kind === NEWLINE; kind = kindAt(text, end)) {
    end++;
    if (kind === NEWLINE) afterBreak = end;
  }
  if (end === text.length || kindAt(text, end) === NOT_ASCII) return end;
  if (afterBreak > start) return afterBreak;
  return Math.max(start + 1, end - 1);
}
