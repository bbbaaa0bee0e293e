import { hash } from 'node:crypto';
import { hasLongMarkRun, isAscii } from './words.ts';

/**
 * Names a text for exact duplicates: two texts share it if they differ at most in how accents are encoded (NFC) and in the
 * amount and kind of white space. Case, punctuation and compatibility forms (ﬁ, ①) still count. A text with more than 30
 * combining marks in a row is hashed as it is, because NFC would take quadratic time.
 * @returns the first 16 bytes of a SHA-256
 */
export function contentHash(content: string): Buffer {
  const composed = isAscii(content) || hasLongMarkRun(content) ? content : content.normalize('NFC');
  return hash('sha256', composed.replace(OTHER_THAN_ONE_SPACE, ' ').trim(), 'buffer').subarray(0, 16);
}

/** Runs of white space, but for those that stay what they are: replacing each blank of a text takes longer than the hash. */
const OTHER_THAN_ONE_SPACE = /[^\S ]\s*| \s+/g;
