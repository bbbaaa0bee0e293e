import { endOfAsciiPiece } from './ascii-pieces.ts';
import { createPieceCounts } from './piece-counts.ts';

/**
 * Counts the tokens of a text, in time linear in its length. The counter of `loadTokenCounter` is exact for
 * cl100k_base, except for texts with runs of 256 or more characters of one kind.
 */
export type TokenCounter = (text: string) => number;

/**
 * Loads the tokenizer of cl100k_base, the vocabulary of OpenAI's embedding models. Its tables take 70 ms and 45 MB, so
 * only a process that reads documents loads it. Names of special tokens are counted as plain text.
 *
 * The counter is exact for texts whose runs of letters, of signs and of blanks are shorter than 256 characters. Merging
 * takes time quadratic in a run's length, so longer runs are counted in parts; that was within 0.3 % of the exact count
 * on base64, one repeated letter and Han without punctuation.
 *
 * Most words of a text occur several times, so the counts of ASCII words are cached. On English that is twice as fast
 * as the tokenizer alone, whose pattern takes most of its time. The tokenizer counts new words, and other characters up
 * to the end of the next word.
 */
export async function loadTokenCounter(): Promise<TokenCounter> {
  const { countTokens, clearMergeCache } = await import('gpt-tokenizer/encoding/cl100k_base');
  const options = { disallowedSpecial: new Set<string>() };
  const counts = createPieceCounts();
  let countedSinceCleared = 0;

  const ask = (text: string) => {
    let tokens = 0;
    for (const part of partsOf(text)) tokens += countTokens(part, options);
    return tokens;
  };
  const countPiece = (text: string, start: number, end: number) => {
    let tokens = counts.find(text, start, end);
    if (tokens === undefined) counts.keep(text, start, end, (tokens = ask(text.slice(start, end))));
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

/**
 * Number of counted characters after which the tokenizer's own cache is emptied. This cache keeps words as slices of
 * texts, and each slice keeps its whole text in memory.
 */
const CACHED_CHARACTERS = 8_000_000;
/** Greatest length of an ASCII piece (such as a word) whose token count is cached, in characters. */
const KEPT_LONGEST = 32;
/**
 * Least length, in UTF-16 code units, of a part of a run (`RUN`) after which the text is cut, since the tokenizer takes
 * time quadratic in the length of a run.
 */
const LONGEST_RUN = 256;
/**
 * Matches runs of letters, blanks or other characters, in parts of at most 256 code points. Digits are matched in parts
 * of at most 255: they are shorter than `LONGEST_RUN`, so no cut is made after them.
 */
const RUN = /\p{L}{1,256}|\p{N}{1,255}|\s{1,256}|[^\p{L}\p{N}\s]{1,256}/gu;

/**
 * Cuts a text into parts that the tokenizer counts fast, in order. A run of letters, of blanks or of signs is cut after
 * each 256 code points. Runs of digits are not cut, since the tokenizer itself splits them into threes. A text without
 * long runs (`hasLongRun`) is a single part.
 */
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

/**
 * Tells whether a text may have a run that is too long for the tokenizer: whether more than 256 (`LONGEST_RUN`) UTF-16
 * code units in a row are all blank or all not blank.
 */
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

/**
 * Tells whether `\s` matches a UTF-16 code unit. The definition must be that of the tokenizer's pattern, or some long
 * runs would be overlooked.
 */
function isSpace(code: number): boolean {
  if (code < 128) return code === 32 || (code >= 9 && code <= 13);
  return /\s/.test(String.fromCharCode(code));
}

/**
 * Returns the end (exclusive) of the first run of letters at or after `start`; the end of the text if there is none.
 * The tokenizer's pattern takes such a run whole and does not depend on what follows. So the token count of a text is
 * the sum of the counts of its parts, if they are cut at such offsets.
 */
function endOfLetters(text: string, start: number): number {
  LETTERS_END.lastIndex = start;
  return LETTERS_END.test(text) ? LETTERS_END.lastIndex : text.length;
}

const LETTERS_END = /\p{L}(?!\p{L})/gu;
