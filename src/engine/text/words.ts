/**
 * What counts as a word, for everything that compares texts by their words: the offline embedder, reranking, queries.
 * The full-text index splits alike (FTS5's `unicode61`), so that what is counted here can also be found there.
 */

/**
 * NFKC, lower case, and accents folded where people leave them out when they type: in Latin, Greek, Cyrillic, Arabic and
 * Hebrew. Marks of other scripts are vowels and stay. `й` and `ї` stay too: they are letters of their own.
 */
export function normalise(text: string): string {
  if (isAscii(text)) return text.toLowerCase();
  return limitMarks(text)
    .normalize('NFKC')
    .toLowerCase()
    .normalize('NFD')
    .replace(ACCENTED, (_, base: string, marks: string) => base + keptMark(base, marks))
    .normalize('NFC')
    .replaceAll('ς', 'σ');
}

/**
 * The words and numbers of a text in order, normalised. Punctuation, apostrophes and underscores separate; a run of CJK
 * gives each character and each pair of neighbours (東京都 → 東 東京 京 京都 都), since it has no spaces to go by; an emoji
 * is a word, without its colour.
 */
export function words(text: string): string[] {
  // As nearly all are: looked at once.
  if (isAscii(text)) return text.toLowerCase().match(ASCII_WORD) ?? [];
  const normalised = normalise(text);
  if (isAscii(normalised)) return normalised.match(ASCII_WORD) ?? [];
  const found: string[] = [];
  for (const token of normalised.match(TOKEN) ?? []) {
    if (isCjk(token)) pushCharactersAndPairs(found, token);
    else found.push(isEmoji(token) ? plainEmoji(token) : token);
  }
  return found;
}

/** Like `words`, but with each run of CJK left whole and emoji as they are written. */
export function tokens(text: string): string[] {
  return normalise(text).match(TOKEN) ?? [];
}

/** True if the text begins with a Han, Hiragana, Katakana or Hangul character. */
export function isCjk(text: string): boolean {
  // Latin, Greek, Cyrillic, Arabic, Indic: nothing below Hangul Jamo is CJK.
  return text.charCodeAt(0) >= 0x1100 && CJK_START.test(text);
}

/** True if the text begins with an emoji. */
export function isEmoji(text: string): boolean {
  return EMOJI_START.test(text);
}

/** An emoji without skin tone and variation selector, so that all its shades are one word. */
export function plainEmoji(emoji: string): string {
  return emoji.replace(EMOJI_COLOUR, '');
}

/** The characters and overlapping pairs of a run, interleaved so that neighbours in the text stay neighbours. */
export function charactersAndPairs(run: string): string[] {
  const found: string[] = [];
  pushCharactersAndPairs(found, run);
  return found;
}

function pushCharactersAndPairs(found: string[], run: string): void {
  let previous = '';
  for (const character of run) {
    if (previous !== '') found.push(previous + character);
    found.push(character);
    previous = character;
  }
}

export function isAscii(text: string): boolean {
  return !NON_ASCII.test(text);
}

/**
 * Cuts runs of combining marks to 30, as Unicode's Stream-Safe Text Format does. Putting a run of marks into canonical
 * order takes quadratic time (60,000 marks: 1 s), and no language needs more.
 */
export function limitMarks(text: string): string {
  return hasLongMarkRun(text) ? text.replace(MARK_RUN_TAIL, '$1') : text;
}

export function hasLongMarkRun(text: string): boolean {
  return LONG_MARK_RUN.test(text);
}

function keptMark(base: string, marks: string): string {
  if (base === 'и' && marks.includes('\u0306')) return '\u0306';
  if (base === 'і' && marks.includes('\u0308')) return '\u0308';
  return '';
}

const CJK = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}ー`;
const PICTOGRAPH = String.raw`\p{Extended_Pictographic}\uFE0F?\p{Emoji_Modifier}?`;
// A family of emoji has at most four members, a flag tag seven: the bound keeps an endless chain from being one word.
const EMOJI = String.raw`\p{Regional_Indicator}{2}|${PICTOGRAPH}(?:\u200D${PICTOGRAPH}){0,7}`;

/** A run of CJK, as it stands in a text after NFKC. */
export const CJK_RUN = new RegExp(`[${CJK}]+`, 'gu');
const NON_ASCII = /[^\x00-\x7f]/;
const ASCII_WORD = /[a-z0-9]+/g;
const CJK_START = new RegExp(`^[${CJK}]`, 'u');
const EMOJI_COLOUR = /[\uFE0F\p{Emoji_Modifier}]/gu;
const EMOJI_START = /^[\p{Extended_Pictographic}\p{Regional_Indicator}]/u;
const LETTER = String.raw`[[\p{L}\p{N}]--[${CJK}]]`;
const LETTER_OR_MARK = String.raw`[[\p{L}\p{N}\p{M}]--[${CJK}]]`;
const TOKEN = new RegExp(`[${CJK}]+|${LETTER}${LETTER_OR_MARK}*|${EMOJI}`, 'gv');
const ACCENTED = /([\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Arabic}\p{Script=Hebrew}])(\p{M}+)/gu;
const LONG_MARK_RUN = /\p{M}{31}/u;
const MARK_RUN_TAIL = /(\p{M}{30})\p{M}+/gu;

/**
 * English words that carry grammar rather than meaning, question words included, and the tails that apostrophes leave
 * (`don't` → `don`, `t`). Negations stay out: `not` changes what a memory says.
 */
export const STOP_WORDS: ReadonlySet<string> = new Set(
  `a an the this that these those
   i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
   herself it its itself they them their theirs themselves one
   am is are was were be been being do does did doing done have has had having
   will would shall should can could may might must ought
   and or but if then else than so because as until while although though whether
   of at by for with about against between into through during before after above below to from up down in out on off
   over under again further within without upon among via per onto toward towards
   who whom whose what which when where why how whatever whichever whoever
   here there all any both each few more most other some such only own same too very just also ever even still yet
   let lets get gets got please tell know
   s t d ll re ve m isn aren wasn weren doesn didn hasn haven hadn wouldn couldn shouldn mustn ain`
    .split(/\s+/)
    .filter((word) => word !== ''),
);
