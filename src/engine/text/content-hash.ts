import { createHash, hash } from 'node:crypto';
import { hasLongMarkRun, isAscii } from './words.ts';

/**
 * Returns the hash by which exact duplicates are found. Two texts have equal hashes if they differ at most in the
 * encoding of accents (NFC), in the amount and kind of white space between words, and in white space around the text.
 * Differences in case, punctuation and compatibility forms (ﬁ, ①) still count. A text with more than 30 combining marks
 * in a row is hashed without NFC, which would take quadratic time.
 * @returns the first 16 bytes of a SHA-256
 */
export function contentHash(content: string): Buffer {
  const composed = isAscii(content) || hasLongMarkRun(content) ? content : content.normalize('NFC');
  return hash('sha256', composed.replace(OTHER_THAN_ONE_SPACE, ' ').trim(), 'buffer').subarray(0, 16);
}

/**
 * Matches white space other than a single blank. Replacing single blanks by themselves would take longer than the hash.
 */
const OTHER_THAN_ONE_SPACE = /[^\S ]\s*| \s+/g;

/**
 * Returns the SHA-256 (32 bytes) of a text as UTF-8. The text is given in parts, none of which may end inside a
 * surrogate pair.
 */
export function hashOfPieces(pieces: Iterable<string>): Buffer {
  const sum = createHash('sha256');
  for (const piece of pieces) sum.update(piece);
  return sum.digest();
}
