import { endOfAsciiPiece } from './ascii-pieces.ts';
import { createPieceCounts } from './piece-counts.ts';

/** Exact tokens of a text; linear in its length. */
export type TokenCounter = (text: string) => number;

/**
 * Loads the tokenizer of cl100k_base, the vocabulary of OpenAI's embedding models: 70 ms and 45 MB of tables, so only a process that
 * reads documents does it. Names of special tokens count as the plain text that they are in a document.
 *
 * The counter is exact for texts whose runs of letters, of marks and of blanks are at most 256 characters long. Merging costs the
 * square of a run's length, so longer runs are counted in pieces, which was within 0.3 % of the exact count on base64, one repeated
 * letter and Han without punctuation.
 *
 * Most of a text is words that came before, so what the tokenizer makes of one in ASCII is kept: on English that is twice as fast as
 * the tokenizer, whose pattern takes most of its time. It is asked for new words, and for what holds other characters up to the next
 * word's end.
 */
export async function loadTokenCounter(): Promise<TokenCounter> {
  const { countTokens, clearMergeCache } = await import('gpt-tokenizer/encoding/cl100k_base');
  const options = { disallowedSpecial: new Set<string>() };
  const known = createPieceCounts();
  let countedSinceCleared = 0;

  const ask = (text: string) => {
    let tokens = 0;
    for (const part of partsOf(text)) tokens += countTokens(part, options);
    return tokens;
  };
  const countPiece = (text: string, start: number, end: number) => {
    let tokens = known.find(text, start, end);
    if (tokens === undefined) known.keep(text, start, end, (tokens = ask(text.slice(start, end))));
    return tokens;
  };

  return (text) => {
    countedSinceCleared += text.length;
    if (countedSinceCleared > CACHED_CHARACTERS) {
      clearMergeCache();
      countedSinceCleared = text.length;
    }
    let tokens = 0;
    for (let start = 0; start < text.length;) {
      const end = endOfAsciiPiece(text, start);
      const isKept = end !== undefined && end - start <= KEPT_LONGEST;
      const next = end ?? endOfLetters(text, start);
      tokens += isKept ? countPiece(text, start, next) : ask(text.slice(start, next));
      start = next;
    }
    return tokens;
  };
}

/** The tokenizer keeps words as slices, each of which keeps the whole text alive that it was cut from. */
const CACHED_CHARACTERS = 8_000_000;
const KEPT_LONGEST = 32;
const LONGEST_RUN = 256;
/** Digits are merged in threes: 255 cuts between two of them. */
const RUN = /\p{L}{1,256}|\p{N}{1,255}|\s{1,256}|[^\p{L}\p{N}\s]{1,256}/gu;

/** The text cut only where a run is longer than the tokenizer takes in good time. */
function partsOf(text: string): readonly string[] {
  if (!hasLongRun(text)) return [text];
  const parts: string[] = [];
  let start = 0;
  for (const run of text.matchAll(RUN)) {
    if (run[0].length < LONGEST_RUN) continue;
    const end = run.index + run[0].length;
    parts.push(text.slice(start, end));
    start = end;
  }
  if (start < text.length) parts.push(text.slice(start));
  return parts;
}

/** A quick look for as many characters in a row with, or without, a blank among them: every long run is in one of these. */
function hasLongRun(text: string): boolean {
  let start = 0;
  let wasBlank = false;
  for (let index = 0; index < text.length; index++) {
    const isBlank = isSpace(text.charCodeAt(index));
    if (isBlank !== wasBlank) start = index;
    else if (index - start >= LONGEST_RUN) return true;
    wasBlank = isBlank;
  }
  return false;
}

/** As `\s` has it: any other idea of a blank would overlook runs that are long for the tokenizer. */
function isSpace(code: number): boolean {
  if (code < 128) return code === 32 || (code >= 9 && code <= 13);
  return /\s/.test(String.fromCharCode(code));
}

/**
 * Where the next run of letters ends: the tokenizer's pattern takes such a run to its end, and asks for nothing behind it. It is the first
 * such place, so that a text is counted as its parts are that end at one, long runs included.
 */
function endOfLetters(text: string, start: number): number {
  LETTERS_END.lastIndex = start;
  return LETTERS_END.test(text) ? LETTERS_END.lastIndex : text.length;
}

const LETTERS_END = /\p{L}(?!\p{L})/gu;
