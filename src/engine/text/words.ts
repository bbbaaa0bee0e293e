/**
 * Splits texts into words, for the offline embedder, reranking and queries. The full-text index (FTS5's `unicode61`)
 * splits texts at the same positions, so that a word from this module can be found there.
 */

/**
 * Normalises a text: NFKC, lower case, and accents removed in the scripts whose users omit them when they type (Latin,
 * Greek, Cyrillic, Arabic, Hebrew). Marks of other scripts are vowels and are kept, and so are `й` and `ї`, which are
 * letters of their own. A final sigma becomes `σ`. Of a run of combining marks, only the first 30 are read, and of the
 * characters that stand for whole words, as many as `limitWordSigns` leaves. So the result has at most five times as
 * many bytes of UTF-8 as the text, and some 2,000 more.
 */
export function normalise(text: string): string {
  if (isAscii(text)) return text.toLowerCase();
  return limitWordSigns(limitMarks(text))
    .normalize('NFKC')
    .toLowerCase()
    .normalize('NFD')
    .replace(ACCENTED, (_, base: string, marks: string) => base + keptMark(base, marks))
    .normalize('NFC')
    .replaceAll('ς', 'σ');
}

/**
 * Lists the words and numbers of a text in order, normalised, repetitions included. Punctuation, apostrophes and
 * underscores separate words. A run of CJK, which has no spaces, gives each character and each pair of neighbours (東京都
 * → 東 東京 京 京都 都). A run of Thai, Lao, Khmer or Burmese, which have no spaces either, is a word, apart from what
 * stands beside it. An emoji is a word, without its skin tone.
 */
export function words(text: string): string[] {
  return wordsBy(TERM, text);
}

/**
 * Lists the words of a text like `words`, except that a run of Thai, Lao, Khmer or Burmese is one word with the letters
 * and digits beside it. Vectors of the model `hashed-v1` and the hashes of erased texts are stored by these words, so
 * this function must give the same words in every version.
 */
export function storedWords(text: string): string[] {
  return wordsBy(STORED_TERM, text);
}

function wordsBy(expression: RegExp, text: string): string[] {
  // Nearly all texts are ASCII: such a text is scanned once.
  if (isAscii(text)) return text.toLowerCase().match(ASCII_WORD) ?? [];
  const normalised = normalise(text);
  if (isAscii(normalised)) return normalised.match(ASCII_WORD) ?? [];
  const list: string[] = [];
  for (const term of normalised.match(expression) ?? []) {
    if (isCjk(term)) pushCharactersAndPairs(list, term);
    else list.push(isEmoji(term) ? plainEmoji(term) : term);
  }
  return list;
}

/**
 * Lists the words of a text like `words`, but leaves each run of CJK characters whole and emoji as they are written.
 */
export function termsIn(text: string): string[] {
  if (isAscii(text)) return text.toLowerCase().match(ASCII_WORD) ?? [];
  return normalise(text).match(TERM) ?? [];
}

/** Tells whether the text begins with a Han, Hiragana, Katakana or Hangul character or `ー`; false for an empty text. */
export function isCjk(text: string): boolean {
  // No script below Hangul Jamo is CJK: Latin, Greek, Cyrillic, Arabic, Indic scripts.
  return text.charCodeAt(0) >= 0x1100 && CJK_START.test(text);
}

/**
 * Tells whether the text begins with a character of Thai, Lao, Khmer or Burmese: scripts without spaces that are not
 * CJK.
 */
export function isSpaceless(text: string): boolean {
  return text.charCodeAt(0) >= 0x0e00 && SPACELESS_START.test(text);
}

/** Tells whether the text begins with an emoji. */
export function isEmoji(text: string): boolean {
  return EMOJI_START.test(text);
}

/** Removes skin tone and variation selector from an emoji, so that all its variants are one word. */
export function plainEmoji(emoji: string): string {
  return emoji.replace(EMOJI_COLOUR, '');
}

/**
 * Lists the characters and overlapping pairs of a run, each pair between its two characters: 東京都 → 東 東京 京 京都 都. A
 * single character gives itself.
 */
export function charactersAndPairs(run: string): string[] {
  const list: string[] = [];
  pushCharactersAndPairs(list, run);
  return list;
}

function pushCharactersAndPairs(list: string[], run: string): void {
  let previous = '';
  for (const character of run) {
    if (previous !== '') list.push(previous + character);
    list.push(character);
    previous = character;
  }
}

export function isAscii(text: string): boolean {
  return !NON_ASCII.test(text);
}

/**
 * Shortens each run of combining marks to its first 30, as Unicode's Stream-Safe Text Format does (UAX #15).
 * Normalising a run of marks takes quadratic time (60,000 marks: 1 s), and no language needs more than 30.
 */
export function limitMarks(text: string): string {
  return hasLongMarkRun(text) ? text.replace(MARK_RUN_TAIL, '$1') : text;
}

/** Tells whether the text has more than 30 combining marks in a row. */
export function hasLongMarkRun(text: string): boolean {
  return LONG_MARK_RUN.test(text);
}

/**
 * Replaces the characters that stand for a whole word, such as `㌖` (キロメートル) and `ﷺ` (four Arabic words), with spaces
 * after as many as a sixteenth of the text's length and 64. NFKC writes each of them out as up to 18 characters, so a
 * text of nothing else would take several times the work of any other text of its length.
 */
function limitWordSigns(text: string): string {
  if (!WORD_SIGN.test(text)) return text;
  let left = 64 + text.length / 16;
  return text.replace(WORD_SIGNS, (sign) => (left-- > 0 ? sign : ' '));
}

/** Returns the expression of a word of letters, digits and marks, none of them of these scripts. */
function wordOutside(scripts: string): string {
  return String.raw`[[\p{L}\p{N}]--[${scripts}]][[\p{L}\p{N}\p{M}]--[${scripts}]]*`;
}

function keptMark(base: string, marks: string): string {
  if (base === 'и' && marks.includes('\u0306')) return '\u0306';
  if (base === 'і' && marks.includes('\u0308')) return '\u0308';
  return '';
}

const CJK = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}ー`;
const SPACELESS = String.raw`\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}`;
const PICTOGRAPH = String.raw`\p{Extended_Pictographic}\uFE0F?\p{Emoji_Modifier}?`;
// A family of emoji has at most four members, a flag tag seven: the bound keeps an endless chain from being one word.
const EMOJI = String.raw`\p{Regional_Indicator}{2}|${PICTOGRAPH}(?:\u200D${PICTOGRAPH}){0,7}`;

/**
 * Matches a run of CJK in a text after NFKC. The expression is global, so `test` and `exec` keep a position between
 * calls; it is meant for `replace` and `match`.
 */
export const CJK_RUN = new RegExp(`[${CJK}]+`, 'gu');
/** Matches a run of Thai, Lao, Khmer or Burmese in a text after NFKC; global like `CJK_RUN`. */
export const SPACELESS_RUN = new RegExp(`[${SPACELESS}]+`, 'gu');
const NON_ASCII = /[^\x00-\x7f]/;
const ASCII_WORD = /[a-z0-9]+/g;
const CJK_START = new RegExp(`^[${CJK}]`, 'u');
const SPACELESS_START = new RegExp(`^[${SPACELESS}]`, 'u');
const EMOJI_COLOUR = /[\uFE0F\p{Emoji_Modifier}]/gu;
const EMOJI_START = /^[\p{Extended_Pictographic}\p{Regional_Indicator}]/u;
// A mark that several scripts share stays in its run.
const SPACELESS_WORD = String.raw`[[\p{L}\p{N}]&&[${SPACELESS}]][[[\p{L}\p{N}\p{M}]&&[${SPACELESS}]]\p{M}]*`;
const TERM = new RegExp(`[${CJK}]+|${wordOutside(CJK + SPACELESS)}|${SPACELESS_WORD}|${EMOJI}`, 'gv');
const STORED_TERM = new RegExp(`[${CJK}]+|${wordOutside(CJK)}|${EMOJI}`, 'gv');
const ACCENTED = /([\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Arabic}\p{Script=Hebrew}])(\p{M}+)/gu;
// NFKC turns the two halfwidth voiced sound marks, which are letters, into combining marks.
const LONG_MARK_RUN = /[\p{M}\uFF9E\uFF9F]{31}/u;
const MARK_RUN_TAIL = /([\p{M}\uFF9E\uFF9F]{30})[\p{M}\uFF9E\uFF9F]+/gu;
const WORD_SIGN = /[\u3300-\u33ff\ufdf2-\ufdfc]/;
const WORD_SIGNS = /[\u3300-\u33ff\ufdf2-\ufdfc]/g;
