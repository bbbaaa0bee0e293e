import { identifierToken } from './index-text.ts';
import { normalise } from './words.ts';

/** What is longer is data, not a name. */
const NAME_LENGTH_MOST = 128;
const PARTS_MOST = 16;
/** So many neighbours may be asked for as one word: `username` of `getUserName`. */
const JOINED_MOST = 3;

/**
 * What stands inside the words of a text that are written together: `getUserName` → get user getuser name username getusername,
 * `50MB` → 50 mb 50mb; and how long versions begin, `v2.6.6` → v 2 v2 and the identifier of 2.6. Ordinary words cost one look.
 */
export function namePartsOf(text: string): string[] {
  const found: string[] = [];
  for (WRITTEN_TOGETHER.lastIndex = 0; ;) {
    const border = WRITTEN_TOGETHER.exec(text);
    if (border === null) break;
    let [start, end] = [border.index, WRITTEN_TOGETHER.lastIndex];
    while (start > 0 && LETTER_OR_DIGIT.test(text[start - 1]!)) start -= 1;
    while (end < text.length && LETTER_OR_DIGIT.test(text[end]!)) end += 1;
    WRITTEN_TOGETHER.lastIndex = end;
    if (end - start <= NAME_LENGTH_MOST) addParts(found, text.slice(start, end));
  }
  if (found.length === 0 && !DIVIDED_DIGITS.test(text)) return found;
  for (const [, beginning] of text.matchAll(LONG_VERSION)) found.push(identifierToken(beginning!));
  return found;
}

function addParts(found: string[], name: string): void {
  const parts = name.split(BORDER, PARTS_MOST).map(normalise);
  for (const last of parts.keys()) {
    for (let first = last; first >= Math.max(0, last - JOINED_MOST + 1); first -= 1)
      found.push(parts.slice(first, last + 1).join(''));
  }
}

const WRITTEN_TOGETHER = /[a-zà-ÿ][A-Z]|[A-Z]{2}[a-z]{2}|\d[A-Za-z]|[A-Za-z]\d/g;
const LETTER_OR_DIGIT = /[A-Za-z\dÀ-ɏ]/;
const BORDER = /(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})|(?<=\p{L})(?=\p{N})|(?<=\p{N})(?=\p{L})/u;
const DIVIDED_DIGITS = /\d\.\d/;
/** Two numbers, and at least a third. */
const LONG_VERSION = /(?<![\d.])(\d{1,9}\.\d{1,9})(?=\.\d)/g;
