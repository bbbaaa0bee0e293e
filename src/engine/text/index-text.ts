import { askingSentences } from './asking-sentences.ts';
import {
  charactersAndPairs,
  CJK_RUN,
  isAscii,
  isCjk,
  isEmoji,
  normalise,
  plainEmoji,
  STOP_WORDS,
  tokens,
} from './words.ts';

/**
 * What goes into the full-text table `memory_text` and what is asked of it. FTS5's tokenizer (`porter unicode61`) finds
 * nothing in scripts without spaces and takes identifiers apart, so both are prepared here, for text and query alike.
 */
export interface QueryTerms {
  /** Each quoted phrase as its words in order, stop words included. */
  readonly phrases: readonly (readonly string[])[];
  /** Distinct words in order, without stop words unless the query has nothing else. */
  readonly words: readonly string[];
  /** Distinct tokens as `identifiersOf` writes them. */
  readonly identifiers: readonly string[];
}

/** A query gives at most so many phrases, words and identifiers together. */
export const MAX_QUERY_TERMS = 64;
const MAX_QUERY_LENGTH = 8_192;
const MAX_PHRASE_WORDS = 64;
/** A text gives at most so many distinct identifier tokens; no token is made of more characters than the second. */
const MAX_IDENTIFIER_TOKENS = 4_096;
const MAX_IDENTIFIER_LENGTH = 128;
/** An identifier is taken apart into so many parts; what follows is data, not a name. */
const MAX_PARTS = 64;

/** Letters to `unicode61` and unknown to porter's endings: a token that holds one is neither split nor stemmed. */
const MARKER = 'ǀ';
const BETWEEN_DIGITS = 'ǁ';
const PLUS = 'ǂ';
const HASH = 'ǃ';

/**
 * The text as FTS5 should see it: normalised, with runs of scripts that use no spaces replaced by their characters and
 * pairs of characters. ASCII text comes back as it is.
 */
export function indexableText(text: string): string {
  if (isAscii(text)) return text;
  return normalise(text)
    .replace(CJK_RUN, (run) => ` ${charactersAndPairs(run).join(' ')} `)
    .replace(SPACELESS_RUN, (run) => ` ${charactersAndPairs(withoutMarks(run)).join(' ')} `);
}

/**
 * The identifiers of a text and their parts for the column `identifiers`, as distinct tokens joined by spaces:
 * `src/userName.ts` → `srcusernametsǀ srcǀ usernametsǀ usernameǀ userǀ nameǀ tsǀ`. Found are names in camelCase and
 * snake_case, dotted names, paths, URLs, addresses, versions, C++ and C#, all that mixes letters and digits, and emoji.
 * Parts of camelCase also stand unmarked (`user name`), since the words of the text do not have them.
 */
export function identifiersOf(text: string): string {
  const found = new Set<string>();
  for (const identifier of [...findIdentifiers(text), ...findEmoji(text)]) {
    addIdentifier(found, identifier);
    if (found.size >= MAX_IDENTIFIER_TOKENS) break;
  }
  return found.size === 0 ? '' : [...found].slice(0, MAX_IDENTIFIER_TOKENS).join(' ');
}

/**
 * A cheap look before a text is taken apart: whether the letters and digits of one of these identifiers stand in it at all.
 * @param identifiers tokens as `identifiersOf` and `queryTerms` write them
 */
export function mayHoldIdentifier(text: string, identifiers: readonly string[]): boolean {
  if (identifiers.length === 0 || !isAscii(text)) return identifiers.length > 0;
  const squeezed = text.toLowerCase().replace(NO_LETTER_OR_DIGIT, '');
  return identifiers.some((identifier) => squeezed.includes(identifier.replace(NO_LETTER_OR_DIGIT, '')));
}

/**
 * The one token that stands for an identifier: lower case, separators left out except between digits, so that `userName`,
 * `user_name` and `user-name` are the same while `1.2.3` and `12.3`
 * differ; `v1.2.3` is `1.2.3`. '' if there is no letter or digit in it.
 */
export function identifierToken(whole: string): string {
  if (isEmoji(whole)) return emojiToken(whole);
  const joined = normalise(whole)
    .replace(SEPARATOR_BETWEEN_DIGITS, BETWEEN_DIGITS)
    .replace(VERSION_PREFIX, '')
    .replaceAll('+', PLUS)
    .replaceAll('#', HASH)
    .replace(NEITHER_LETTER_NOR_DIGIT, '');
  return joined === '' ? '' : joined + MARKER;
}

/** Takes a query apart into lists that are safe to search for, whatever was typed: at most `MAX_QUERY_TERMS` terms. */
export function queryTerms(query: string): QueryTerms {
  if (query === lastQuery?.query) return lastQuery.terms;
  const terms = takeApart(query.slice(0, MAX_QUERY_LENGTH));
  if (query.length <= MAX_QUERY_LENGTH) lastQuery = { query, terms };
  return terms;
}

/** The stages of a query ask one after the other. */
let lastQuery: { readonly query: string; readonly terms: QueryTerms } | undefined;

function takeApart(bounded: string): QueryTerms {
  const phrases: string[][] = [];
  const rest = bounded.replace(QUOTED, (quoted) => {
    const phrase = phraseWords(quoted.slice(1, -1));
    if (phrase.length > 0 && phrases.length < MAX_QUERY_TERMS) phrases.push(phrase);
    return ' ';
  });
  const identifiers = [...identifiersAsWritten(bounded).keys()].slice(0, MAX_QUERY_TERMS - phrases.length);
  const room = MAX_QUERY_TERMS - phrases.length - identifiers.length;
  // Of a long message the sentences that ask come first, so that the limit cuts what stands around them.
  const asked = askingSentences(rest).sentences.join('\n');
  const words = distinct([...tokens(`${asked}\n${rest}`).flatMap(searchWords), ...camelParts(rest)]);
  const content = words.filter((word) => !STOP_WORDS.has(word));
  const nothingElse = content.length + phrases.length + identifiers.length === 0;
  return { phrases, words: (nothingElse ? words : content).slice(0, room), identifiers };
}

/** Quotes a token, or the words of a phrase joined by spaces, for a MATCH expression, which NUL would end. */
export function ftsString(token: string): string {
  return `"${token.replaceAll('"', '""').replaceAll('\0', ' ')}"`;
}

/** A run of a script without spaces is searched by its pairs, which are rarer than its characters. */
function searchWords(token: string): string[] {
  if (isEmoji(token)) return [];
  const run = isCjk(token) ? token : isSpaceless(token) ? withoutMarks(token) : '';
  if (run === '') return [token];
  const found = charactersAndPairs(run);
  return found.length <= 1 ? found : found.filter((_, index) => index % 2 === 1);
}

function phraseWords(text: string): string[] {
  return tokens(text)
    .flatMap((token) => (isEmoji(token) ? [] : piecesOf(token)))
    .slice(0, MAX_PHRASE_WORDS);
}

/**
 * The words of a text in order as the index holds them, before stemming: runs of scripts without spaces give their characters and pairs,
 * without vowel marks, so that a word of `queryTerms` can be found in a text of any language.
 */
export function searchableWords(text: string): string[] {
  const found: string[] = [];
  for (const token of tokens(text)) {
    if (isEmoji(token)) found.push(plainEmoji(token));
    else found.push(...piecesOf(token));
  }
  return found;
}

function piecesOf(token: string): string[] {
  if (isCjk(token)) return charactersAndPairs(token);
  return isSpaceless(token) ? charactersAndPairs(withoutMarks(token)) : [token];
}

/** True if the text begins with a letter of a script that writes no spaces and is no CJK: Thai, Lao, Khmer, Burmese. */
export function isSpaceless(text: string): boolean {
  return text.charCodeAt(0) >= 0x0e00 && SPACELESS_START.test(text);
}

/** How the query writes the identifiers that `queryTerms` gives as tokens; of several ways the first. */
export function identifiersAsWritten(query: string): ReadonlyMap<string, string> {
  const written = new Map<string, string>();
  const note = (token: string, piece: string) => {
    if (token !== '' && !written.has(token)) written.set(token, piece);
  };
  const bounded = query.slice(0, MAX_QUERY_LENGTH);
  for (const emoji of findEmoji(bounded)) note(emojiToken(emoji), emoji);
  // Wholes and compound parts; the plain words among the parts are searched as words.
  for (const identifier of findIdentifiers(bounded)) {
    for (const piece of [identifier, ...segmentsOf(identifier)]) {
      if (piece.length <= MAX_IDENTIFIER_LENGTH && isIdentifier(piece)) note(identifierToken(piece), piece);
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
 * The pieces of a text that are written as one identifier, in order, without the punctuation around them. Only Latin, Greek
 * and Cyrillic letters: identifiers in other scripts cannot be told from the text around them.
 */
export function findIdentifiers(text: string): string[] {
  const found: string[] = [];
  for (let start = startOfCandidate(text, 0); start < text.length; start = startOfCandidate(text, start)) {
    CANDIDATE.lastIndex = start;
    const candidate = CANDIDATE.exec(text)?.[0];
    // A character that is no part of a candidate but not ASCII either: the table does not tell.
    if (candidate === undefined) {
      start += 1;
      continue;
    }
    start += candidate.length;
    if (PLAIN_WORD.test(candidate)) continue;
    const identifier = trimPunctuation(candidate);
    if (isIdentifier(identifier)) found.push(identifier);
  }
  return found;
}

/** Passes over what nearly all of a text is: plain words, and the blanks and marks between them. */
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

/** As `PLAIN_WORD` has it. */
function endOfPlainWord(text: string, start: number): number {
  let end = start + (partAt(text, start) === CAPITAL ? 1 : 0);
  while (partAt(text, end) === SMALL) end++;
  return text.charAt(end) === '.' ? end + 1 : end;
}

/** BETWEEN behind the end, too. */
function partAt(text: string, offset: number): number {
  return offset < text.length ? (PARTS[text.charCodeAt(offset)] ?? ANY_PART) : BETWEEN;
}

function findEmoji(text: string): string[] {
  return isAscii(text) ? [] : (text.match(EMOJI) ?? []);
}

function addIdentifier(found: Set<string>, identifier: string): void {
  if (isEmoji(identifier)) {
    found.add(identifierToken(identifier));
    return;
  }
  for (const piece of [identifier, ...segmentsOf(identifier)]) addToken(found, piece);
  for (const name of namesOf(identifier)) {
    addToken(found, name);
    for (const hump of humpsOf(name)) {
      addToken(found, hump);
      found.add(normalise(hump));
    }
    if (found.size >= MAX_IDENTIFIER_TOKENS) return;
  }
}

function addToken(found: Set<string>, piece: string): void {
  if (piece.length > MAX_IDENTIFIER_LENGTH) return;
  const token = identifierToken(piece);
  if (token !== '') found.add(token);
}

/** `src/user.ts` → `src`, `user.ts`; none if there is nothing to divide. */
function segmentsOf(identifier: string): string[] {
  const segments = identifier.split(PATH_SEPARATORS, MAX_PARTS);
  return segments.length > 1 ? segments : [];
}

function namesOf(identifier: string): string[] {
  return identifier.split(NAME_SEPARATORS, MAX_PARTS).filter((name) => name !== '');
}

/** `HTTPServer` → `HTTP`, `Server`; none for a name of one part or one too long to be a name. */
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

/** `and/or` is no path: it takes a root or a second separator. */
function isPath(text: string): boolean {
  const first = text.search(PATH_SEPARATOR);
  if (first === -1) return false;
  return first === 0 || text.startsWith('.') || text.startsWith('~') || PATH_SEPARATOR.test(text.slice(first + 1));
}

/** Drops sentence punctuation around a candidate. By index, because a regex for it is quadratic on a run of dots. */
function trimPunctuation(candidate: string): string {
  let start = 0;
  let end = candidate.length;
  while (start < end && LEADING_PUNCTUATION.includes(candidate.charAt(start))) start++;
  while (end > start && TRAILING_PUNCTUATION.includes(candidate.charAt(end - 1))) end--;
  return candidate.slice(start, end);
}

function emojiToken(emoji: string): string {
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
/** What an ASCII character is to a candidate. */
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
const SPACELESS_START = /^[\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const SPACELESS_RUN = /[\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+/gu;
const MARKS = /\p{M}+/gu;
