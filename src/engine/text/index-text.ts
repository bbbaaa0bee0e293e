/**
 * Prepares texts for the full-text table `memory_text`, and queries for a search in it. FTS5's tokenizer (`porter
 * unicode61`) finds nothing in scripts without spaces and splits identifiers, so texts and queries are both prepared
 * here.
 */
import { type AskingSentences, askingSentences } from './asking-sentences.ts';
import {
  charactersAndPairs,
  CJK_RUN,
  isAscii,
  isCjk,
  isEmoji,
  isSpaceless,
  normalise,
  plainEmoji,
  SPACELESS_RUN,
  termsIn,
} from './words.ts';
import { type StemmedLanguage, stemmedLanguageOf } from './language-stems.ts';
import { STOP_WORDS } from './stop-words.ts';

/** The terms of a query, each of which can be put into a search expression without escaping. */
export interface QueryTerms {
  /**
   * Each quoted phrase as its words in order, stop words included; a run of a script without spaces gives its
   * characters and pairs. All have 64 (`MAX_QUERY_TERMS`) words at most; what is quoted beyond gives words.
   */
  readonly phrases: readonly (readonly string[])[];
  /**
   * Distinct words outside of phrases, without stop words unless the query has nothing else. Words of the sentences
   * that ask come first, then the other words in order, then the parts of camelCase names. A run of a script without
   * spaces gives its pairs of characters.
   */
  readonly words: readonly string[];
  /** Distinct terms for emoji, whole identifiers and their compound parts, as `identifierTerm` makes them. */
  readonly identifiers: readonly string[];
  /** Language whose stems are used to compare the words; left out for English and for languages without a stemmer. */
  readonly language?: StemmedLanguage;
  /**
   * For a word of the query, other forms that a text may have instead (such as `went` for `go`). Not set by
   * `queryTerms`.
   */
  readonly forms?: ReadonlyMap<string, readonly string[]>;
}

/** Greatest number of phrases, words and identifiers of a query together; further ones are dropped. */
export const MAX_QUERY_TERMS = 64;
/** Length of the beginning of a query from which terms are taken, in UTF-16 code units. */
const MAX_QUERY_LENGTH = 8_192;
/** Greatest number of distinct identifier terms of a text; further ones are dropped. */
const MAX_IDENTIFIER_TERMS = 4_096;
/** Greatest length of an identifier, or of a part of one, that becomes a term, in characters. */
const MAX_IDENTIFIER_LENGTH = 128;
/** Greatest number of parts that an identifier gives; further ones are dropped, as it is data then and not a name. */
const MAX_PARTS = 64;

/**
 * Last character of each identifier term. The tokenizer `unicode61` treats this character and the three below as
 * letters, and the Porter stemmer removes none of them, so that a term with one of them is neither split nor stemmed.
 */
const MARKER = 'ǀ';
const BETWEEN_DIGITS = 'ǁ';
const PLUS = 'ǂ';
const HASH = 'ǃ';

/**
 * Prepares a text for FTS5: normalises it, and replaces runs of scripts without spaces with their characters and pairs
 * of characters. ASCII text is returned unchanged.
 */
export function indexableText(text: string): string {
  if (isAscii(text)) return text;
  return normalise(text)
    .replace(CJK_RUN, (run) => ` ${charactersAndPairs(run).join(' ')} `)
    .replace(SPACELESS_RUN, (run) => ` ${charactersAndPairs(withoutMarks(run)).join(' ')} `);
}

/**
 * Returns the identifiers of a text and their parts for the column `identifiers`, as distinct terms joined by spaces:
 * `src/userName.ts` → `srcusernametsǀ srcǀ usernametsǀ usernameǀ userǀ user nameǀ name tsǀ`. Identifiers are names in
 * camelCase and snake_case, dotted names, paths, URLs, addresses, versions, numbers with a separator (1.2, 10:30), C++
 * and C#, words that mix letters and digits, and emoji. Parts of camelCase names are also included without a marker
 * (`user`, `name`), since the words of the text do not include them.
 * @returns the first 4,096 (`MAX_IDENTIFIER_TERMS`) terms at most; '' for a text without identifiers
 */
export function identifiersOf(text: string): string {
  const terms = new Set<string>();
  for (const identifier of [...findIdentifiers(text), ...findEmoji(text)]) {
    addIdentifier(terms, identifier);
    if (terms.size >= MAX_IDENTIFIER_TERMS) break;
  }
  return terms.size === 0 ? '' : [...terms].slice(0, MAX_IDENTIFIER_TERMS).join(' ');
}

/**
 * Tells cheaply whether a text may contain one of these identifiers: whether its letters and digits occur there, even
 * across words. False for an empty list; else always true for a text that is not ASCII.
 * @param identifiers terms of `identifiersOf` or `queryTerms`
 */
export function mayHoldIdentifier(text: string, identifiers: readonly string[]): boolean {
  if (identifiers.length === 0 || !isAscii(text)) return identifiers.length > 0;
  const squeezed = text.toLowerCase().replace(NO_LETTER_OR_DIGIT, '');
  return identifiers.some((identifier) => squeezed.includes(identifier.replace(NO_LETTER_OR_DIGIT, '')));
}

/**
 * Returns the term for a whole identifier: in lower case, without separators except between digits, with a marker at
 * its end. So `userName`, `user_name` and `user-name` give one term, while `1.2.3` and `12.3` differ; `v1.2.3` gives
 * the term of `1.2.3`.
 * @returns '' if the identifier is no emoji and has no letter, digit, `+` or `#`
 */
export function identifierTerm(whole: string): string {
  if (isEmoji(whole)) return emojiTerm(whole);
  const joined = normalise(whole)
    .replace(SEPARATOR_BETWEEN_DIGITS, BETWEEN_DIGITS)
    .replace(VERSION_PREFIX, '')
    .replaceAll('+', PLUS)
    .replaceAll('#', HASH)
    .replace(NEITHER_LETTER_NOR_DIGIT, '');
  return joined === '' ? '' : joined + MARKER;
}

/**
 * Splits a query into lists of terms that are safe to use in a search: at most 64 (`MAX_QUERY_TERMS`), first phrases,
 * then identifiers, then words. Only the first 8,192 characters are read.
 * @param asking result of `askingSentences` for the query, if the caller has it
 */
export function queryTerms(query: string, asking?: AskingSentences): QueryTerms {
  const bounded = query.slice(0, MAX_QUERY_LENGTH);
  const phrases: string[][] = [];
  let wordsLeft = MAX_QUERY_TERMS;
  const rest = bounded.replace(QUOTED, (quoted) => {
    if (wordsLeft === 0) return quoted;
    const whole = phraseWords(quoted.slice(1, -1));
    const phrase = whole.slice(0, wordsLeft);
    wordsLeft -= phrase.length;
    if (phrase.length > 0) phrases.push(phrase);
    return phrase.length < whole.length ? quoted : ' ';
  });
  const identifiers = [...identifiersAsWritten(bounded).keys()].slice(0, MAX_QUERY_TERMS - phrases.length);
  const room = MAX_QUERY_TERMS - phrases.length - identifiers.length;
  // The sentences that ask come first, so that the limit drops words of the other sentences.
  const { sentences, areKnown } = asking !== undefined && rest === query ? asking : askingSentences(rest);
  const words = distinct([...termsIn(`${sentences.join('\n')}\n${rest}`).flatMap(searchWords), ...camelParts(rest)]);
  const content = words.filter((word) => !STOP_WORDS.has(word));
  const nothingElse = content.length + phrases.length + identifiers.length === 0;
  const terms = { phrases, words: (nothingElse ? words : content).slice(0, room), identifiers };
  const language = stemmedLanguageOf(areKnown && sentences.length > 0 ? sentences.join('\n') : rest);
  return language === undefined ? terms : { ...terms, language };
}

/**
 * Quotes a term, or the words of a phrase joined by spaces, for a MATCH expression of FTS5. The result includes the
 * quotes. NUL, which would end the expression, becomes a blank.
 */
export function ftsString(term: string): string {
  return `"${term.replaceAll('"', '""').replaceAll('\0', ' ')}"`;
}

/**
 * Returns the words that are searched for a term; empty for an emoji. A run of a script without spaces is searched by
 * its pairs of characters, which are rarer than single characters.
 */
function searchWords(term: string): string[] {
  if (isEmoji(term)) return [];
  const pieces = piecesOf(term);
  return pieces.length <= 1 ? pieces : pieces.filter((_, index) => index % 2 === 1);
}

function phraseWords(text: string): string[] {
  return termsIn(text).flatMap((term) => (isEmoji(term) ? [] : piecesOf(term)));
}

/**
 * Lists the words of a text in order as the index has them, normalised, before stemming, repetitions included. Runs of
 * scripts without spaces give their characters and pairs, without vowel marks, so that a word of `queryTerms` can be
 * found in a text of any language.
 */
export function searchableWords(text: string): string[] {
  const list: string[] = [];
  for (const term of termsIn(text)) {
    if (isEmoji(term)) list.push(plainEmoji(term));
    else list.push(...piecesOf(term));
  }
  return list;
}

function piecesOf(term: string): string[] {
  if (isCjk(term)) return charactersAndPairs(term);
  return isSpaceless(term) ? charactersAndPairs(withoutMarks(term)) : [term];
}

/**
 * Maps each identifier term of a query to its spelling in the query, in the order of `queryTerms`. The map may have
 * more terms than `queryTerms` returns. If the query spells a term in several ways, the first spelling counts.
 */
export function identifiersAsWritten(query: string): ReadonlyMap<string, string> {
  const written = new Map<string, string>();
  const note = (term: string, piece: string) => {
    if (term !== '' && !written.has(term)) written.set(term, piece);
  };
  const bounded = query.slice(0, MAX_QUERY_LENGTH);
  for (const emoji of findEmoji(bounded)) note(emojiTerm(emoji), emoji);
  // These are whole identifiers and their compound parts. Plain words among the parts are searched as words.
  for (const identifier of findIdentifiers(bounded)) {
    for (const piece of [identifier, ...segmentsOf(identifier)]) {
      if (piece.length <= MAX_IDENTIFIER_LENGTH && isIdentifier(piece)) note(identifierTerm(piece), piece);
    }
  }
  return written;
}

function camelParts(text: string): string[] {
  if (!CAMEL_CASE.test(text)) return [];
  return findIdentifiers(text).flatMap((identifier) =>
    namesOf(identifier).flatMap((name) => humpsOf(name).map((hump) => normalise(hump))),
  );
}

/**
 * Lists the parts of a text that are written as one identifier (such as `src/user.ts`), in order, repetitions included,
 * without the punctuation around them. Only Latin, Greek and Cyrillic letters count, since identifiers in other scripts
 * cannot be distinguished from the text around them. Emoji are not included.
 */
export function findIdentifiers(text: string): string[] {
  const identifiers: string[] = [];
  for (let start = startOfCandidate(text, 0); start < text.length; start = startOfCandidate(text, start)) {
    CANDIDATE.lastIndex = start;
    const candidate = CANDIDATE.exec(text)?.[0];
    // The table does not cover this character, as it is not ASCII, but no candidate begins with it either.
    if (candidate === undefined) {
      start += 1;
      continue;
    }
    start += candidate.length;
    if (PLAIN_WORD.test(candidate)) continue;
    const identifier = trimPunctuation(candidate);
    if (isIdentifier(identifier)) identifiers.push(identifier);
  }
  return identifiers;
}

/** Returns the offset, from `from` on, of the next possible identifier; the text's length if there is none. */
function startOfCandidate(text: string, from: number): number {
  for (let start = from; start < text.length;) {
    if (partAt(text, start) === BETWEEN) {
      start += 1;
      continue;
    }
    const end = endOfPlainWord(text, start);
    if (partAt(text, end) !== BETWEEN) return start;
    start = end;
  }
  return text.length;
}

/** Returns the offset after the plain word (`PLAIN_WORD`) at `start` and its full stop; `start` if there is none. */
function endOfPlainWord(text: string, start: number): number {
  let end = start + (partAt(text, start) === CAPITAL ? 1 : 0);
  while (partAt(text, end) === SMALL) end++;
  return text.charAt(end) === '.' ? end + 1 : end;
}

/**
 * Returns the class of the character at `offset`: `SMALL` or `CAPITAL` for an ASCII letter, `ANY_PART` for another
 * ASCII character that an identifier may have and for any that is not ASCII, `BETWEEN` for the rest and after the end.
 */
function partAt(text: string, offset: number): number {
  return offset < text.length ? (PARTS[text.charCodeAt(offset)] ?? ANY_PART) : BETWEEN;
}

function findEmoji(text: string): string[] {
  return isAscii(text) ? [] : (text.match(EMOJI) ?? []);
}

function addIdentifier(terms: Set<string>, identifier: string): void {
  if (isEmoji(identifier)) return void terms.add(identifierTerm(identifier));
  for (const piece of [identifier, ...segmentsOf(identifier)]) addTerm(terms, piece);
  for (const name of namesOf(identifier)) {
    addTerm(terms, name);
    for (const hump of humpsOf(name)) {
      addTerm(terms, hump);
      terms.add(normalise(hump));
    }
    if (terms.size >= MAX_IDENTIFIER_TERMS) return;
  }
}

function addTerm(terms: Set<string>, piece: string): void {
  if (piece.length > MAX_IDENTIFIER_LENGTH) return;
  const term = identifierTerm(piece);
  if (term !== '') terms.add(term);
}

/** Splits a path: `src/user.ts` → `src`, `user.ts`. The list is empty if there is nothing to split. */
function segmentsOf(identifier: string): string[] {
  const segments = identifier.split(PATH_SEPARATORS, MAX_PARTS);
  return segments.length > 1 ? segments : [];
}

function namesOf(identifier: string): string[] {
  return identifier.split(NAME_SEPARATORS, MAX_PARTS).filter((name) => name !== '');
}

/**
 * Splits a camelCase name: `HTTPServer` → `HTTP`, `Server`. The list is empty for a name of one part and for one of
 * more than 128 characters.
 */
function humpsOf(name: string): string[] {
  if (name.length > MAX_IDENTIFIER_LENGTH || !CAMEL_CASE.test(name)) return [];
  return name.split(HUMP_BOUNDARY);
}

function isIdentifier(text: string): boolean {
  return (
    (HAS_DIGIT.test(text) && HAS_LETTER.test(text)) ||
    DIVIDED_DIGITS.test(text) ||
    CAMEL_CASE.test(text) ||
    DOTTED.test(text) ||
    (HAS_LETTER.test(text) && isMarkedName(text))
  );
}

function isMarkedName(text: string): boolean {
  return (
    text.includes('_') ||
    text.includes('::') ||
    text.includes('://') ||
    text.indexOf('@') > 0 ||
    text.endsWith('++') ||
    text.endsWith('#') ||
    isPath(text)
  );
}

/** Tells whether a text with a separator is a path: it begins with one, `.` or `~`, or has a second; not `and/or`. */
function isPath(text: string): boolean {
  const first = text.search(PATH_SEPARATOR);
  if (first === -1) return false;
  return first === 0 || text.startsWith('.') || text.startsWith('~') || PATH_SEPARATOR.test(text.slice(first + 1));
}

/**
 * Removes punctuation at both ends of a possible identifier. It uses indexes, because a regular expression would take
 * quadratic time on a run of dots.
 */
function trimPunctuation(candidate: string): string {
  let start = 0;
  let end = candidate.length;
  while (start < end && LEADING_PUNCTUATION.includes(candidate.charAt(start))) start++;
  while (end > start && TRAILING_PUNCTUATION.includes(candidate.charAt(end - 1))) end--;
  return candidate.slice(start, end);
}

function emojiTerm(emoji: string): string {
  return Array.from(plainEmoji(emoji), (character) => `u${character.codePointAt(0)?.toString(16)}`).join('') + MARKER;
}

function withoutMarks(run: string): string {
  return run.replace(MARKS, '');
}

function distinct(list: readonly string[]): string[] {
  return [...new Set(list)];
}

const LEADING_PUNCTUATION = ".-:+@#$_'";
const TRAILING_PUNCTUATION = ".-:/\\@$~_'";
const CANDIDATE = /[a-z][a-z\d+.-]{1,15}:\/\/[!-;=?-~]+|[\w@#+.\-/\\:~$À-ɏͰ-ӿ]+/iuy;
/** Classes of ASCII characters for `findIdentifiers`: `BETWEEN` for a character that no identifier has. */
const BETWEEN = 0;
const SMALL = 1;
const CAPITAL = 2;
const ANY_PART = 3;
const PARTS = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  if (/[a-z]/.test(character)) return SMALL;
  if (/[A-Z]/.test(character)) return CAPITAL;
  return /[\w@#+.\-/\\:~$]/.test(character) ? ANY_PART : BETWEEN;
});
const PLAIN_WORD = /^[A-Z]?[a-z]*\.?$/;
const HAS_DIGIT = /\d/;
const HAS_LETTER = /[a-zÀ-ɏͰ-ӿ]/iu;
/** Matches two digits with a separator between them, as in `1.2`, `10:30` and `2026-01-31`. */
const DIVIDED_DIGITS = /\d[.:_/-]\d/;
const DOTTED = /[^\W_]{2}\.[^\W_]|[^\W_]\.[^\W_]{2}/;
const CAMEL_CASE = /\p{Ll}\p{Lu}|\p{Lu}{2}\p{Ll}{2}/u;
const HUMP_BOUNDARY = /(?<=[\p{Ll}\d])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u;
const PATH_SEPARATOR = /[/\\]/;
const PATH_SEPARATORS = /[/\\:?&=]+/;
const NAME_SEPARATORS = /[^\p{L}\p{N}+#]+/u;
const VERSION_PREFIX = /^v(?=\d+ǁ)/;
const SEPARATOR_BETWEEN_DIGITS = /(?<=\d)[^\p{L}\p{N}+#](?=\d)/gu;
const NO_LETTER_OR_DIGIT = /[^a-z\d]+/g;
const NEITHER_LETTER_NOR_DIGIT = /[^\p{L}\p{N}]+/gu;
// Every opening quote ends the search for the close of the one before it, which keeps this linear.
const QUOTED = /"[^"]*"|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|「[^「」]*」|『[^『』]*』/g;
const EMOJI =
  /\p{Regional_Indicator}{2}|\p{Extended_Pictographic}\uFE0F?\p{Emoji_Modifier}?(?:\u200D\p{Extended_Pictographic}\uFE0F?\p{Emoji_Modifier}?){0,7}/gu;
const MARKS = /\p{M}+/gu;
