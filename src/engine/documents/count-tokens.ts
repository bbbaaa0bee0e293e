/** Exact tokens of a text; linear in its length. */
export type TokenCounter = (text: string) => number;

/**
 * Loads the tokenizer of cl100k_base, the vocabulary of OpenAI's embedding models: 70 ms and 45 MB of tables, so only a process that
 * reads documents does it. Names of special tokens count as the plain text that they are in a document.
 *
 * The counter is exact for texts whose runs of letters, of marks and of blanks are at most 256 characters long. Merging costs the
 * square of a run's length, so longer runs are counted in pieces, which was within 0.3 % of the exact count on base64, one repeated
 * letter and Han without punctuation.
 */
export async function loadTokenCounter(): Promise<TokenCounter> {
  const { countTokens, clearMergeCache } = await import('gpt-tokenizer/encoding/cl100k_base');
  const options = { disallowedSpecial: new Set<string>() };
  let countedSinceCleared = 0;
  return (text) => {
    countedSinceCleared += text.length;
    if (countedSinceCleared > CACHED_CHARACTERS) {
      clearMergeCache();
      countedSinceCleared = text.length;
    }
    let tokens = 0;
    for (const piece of piecesOf(text)) tokens += countTokens(piece, options);
    return tokens;
  };
}

/** The tokenizer caches words as slices, each of which keeps the whole text alive that it was cut from. */
const CACHED_CHARACTERS = 2_000_000;
const LONGEST_RUN = 256;
/** Digits are merged in threes: 255 cuts between two of them. */
const RUN = /\p{L}{1,256}|\p{N}{1,255}|\s{1,256}|[^\p{L}\p{N}\s]{1,256}/gu;

/** The text cut only where a run is longer than the tokenizer takes in good time. */
function piecesOf(text: string): readonly string[] {
  if (!hasLongRun(text)) return [text];
  const pieces: string[] = [];
  let start = 0;
  for (const run of text.matchAll(RUN)) {
    if (run[0].length < LONGEST_RUN) continue;
    const end = run.index + run[0].length;
    pieces.push(text.slice(start, end));
    start = end;
  }
  if (start < text.length) pieces.push(text.slice(start));
  return pieces;
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
