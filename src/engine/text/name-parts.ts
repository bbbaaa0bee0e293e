import { identifierTerm } from './index-text.ts';
import { normalise } from './words.ts';

/** Greatest length of a name that is split, in characters; anything longer is data. */
const MAX_NAME_LENGTH = 128;
/** Greatest number of parts of a name that are listed; further parts are left out. */
const MAX_PARTS = 16;
/** Greatest number of consecutive parts that are also joined into one word, such as `username` from `getUserName`. */
const MAX_JOINED = 3;

/**
 * Lists the parts of compound words such as `getUserName`, and the joined runs of up to three such parts, normalised:
 * `getUserName` → get user getuser name username getusername; `50MB` → 50 mb 50mb. A version of at least three numbers
 * also gives the identifier term of its first two: `v2.6.6` → v 2 v2 and the term of 2.6. A word of one part is not
 * listed.
 */
export function namePartsOf(text: string): string[] {
  const list: string[] = [];
  for (WRITTEN_TOGETHER.lastIndex = 0; ;) {
    const border = WRITTEN_TOGETHER.exec(text);
    if (border === null) break;
    let [start, end] = [border.index, WRITTEN_TOGETHER.lastIndex];
    while (start > 0 && LETTER_OR_DIGIT.test(text[start - 1]!)) start -= 1;
    while (end < text.length && LETTER_OR_DIGIT.test(text[end]!)) end += 1;
    WRITTEN_TOGETHER.lastIndex = end;
    if (end - start <= MAX_NAME_LENGTH) addParts(list, text.slice(start, end));
  }
  if (list.length === 0 && !DOTTED_DIGITS.test(text)) return list;
  for (const [, beginning] of text.matchAll(LONG_VERSION)) list.push(identifierTerm(beginning!));
  return list;
}

function addParts(list: string[], name: string): void {
  const parts = name.split(BORDER, MAX_PARTS).map(normalise);
  for (const last of parts.keys()) {
    for (let first = last; first >= Math.max(0, last - MAX_JOINED + 1); first -= 1)
      list.push(parts.slice(first, last + 1).join(''));
  }
}

const WRITTEN_TOGETHER = /[a-zà-ÿ][A-Z]|[A-Z]{2}[a-z]{2}|\d[A-Za-z]|[A-Za-z]\d/g;
const LETTER_OR_DIGIT = /[A-Za-z\dÀ-ɏ]/;
const BORDER = /(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})|(?<=\p{L})(?=\p{N})|(?<=\p{N})(?=\p{L})/u;
/** Matches two digits with a dot between them, as in `2.6`; a text without any names no version. */
const DOTTED_DIGITS = /\d\.\d/;
/** Matches the first two numbers of a version that has at least three. */
const LONG_VERSION = /(?<![\d.])(\d{1,9}\.\d{1,9})(?=\.\d)/g;
