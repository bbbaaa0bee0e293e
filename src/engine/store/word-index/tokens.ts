import Database from 'better-sqlite3';
import { LRUCache } from 'lru-cache';
import { ftsString, indexableText } from '../../text/index-text.ts';
import { copyOf, stemOf } from '../../text/stem-finder.ts';
import { isAscii, words } from '../../text/words.ts';

/**
 * What the word index has for a word: its token and, but for the first partition of the rows, a mark and the partition's number: `file`,
 * `file!1`, `file!2`. FTS5 ends a step of merging only between two tokens, so that a word of a million rows would be copied in one; divided,
 * none has more than `PARTITION_ROWS`. As no word has a character so low, all that belongs to one stands together.
 */

/** As the migration that makes `memory_text` has it. */
export const TOKENIZER = `porter unicode61 remove_diacritics 2 tokenchars '!'`;

/** Rows by number. To merge so many of one word takes some 10 ms. */
export const PARTITION_ROWS = 2 ** 17;
const MARK = '!';
export const MARK_BYTE = MARK.charCodeAt(0);
/** Behind all partitions of a token, before every longer one. */
export const BEYOND_MARK = String.fromCharCode(MARK_BYTE + 1);

/** '' for the first partition. */
export function markOf(seq: number): string {
  return seq < PARTITION_ROWS ? '' : `${MARK}${Math.floor(seq / PARTITION_ROWS)}`;
}

/**
 * A text as the index takes it for a row.
 * @param mark of the row
 */
export function indexedText(text: string, mark: string): string {
  return markTokens(indexableText(text).replaceAll(MARK, ' '), mark);
}

/**
 * A word or phrase as FTS5's MATCH takes it for the rows of one partition.
 * @param text words as `indexableText` and `queryTerms` give them
 * @param mark of the partition
 */
export function matchString(text: string, mark: string): string {
  return ftsString(markTokens(text.replaceAll(MARK, ' '), mark));
}

/** The marks of all partitions that rows up to this number lie in. */
export function marksUpTo(lastSeq: number): readonly string[] {
  return Array.from({ length: Math.floor(lastSeq / PARTITION_ROWS) + 1 }, (_, no) => markOf(no * PARTITION_ROWS));
}

function markTokens(text: string, mark: string): string {
  if (mark === '') return text;
  const tokens = tokenize(text);
  return tokens.length === 0 ? '' : `${tokens.join(`${mark} `)}${mark}`;
}

/**
 * The tokens of a word or phrase as the first partition has them; none for a text without letters and digits.
 * @param text quoted or not
 */
export function tokensOf(text: string): readonly string[] {
  return tokenize(text.replaceAll(MARK, ' '));
}

/** As FTS5 does it, and faster: of a text that is not ASCII it is asked once for each character, and for few words. */
function tokenize(text: string): readonly string[] {
  if (isAscii(text)) return words(text).map(stemOfAscii);
  const tokens: string[] = [];
  let token = '';
  for (let at = 0; at < text.length;) {
    const code = text.codePointAt(at)!;
    at += code > 0xffff ? 2 : 1;
    const { inside, begins } = blockOf(code);
    const letter = inside[code % BLOCK];
    if (letter === undefined) {
      if (token !== '') tokens.push(stemOfAny(token));
      token = '';
    } else if (token !== '' || begins[code % BLOCK]) token += letter;
  }
  if (token !== '') tokens.push(stemOfAny(token));
  return tokens;
}

const ENDS_IN_ASCII = /[a-z\d]$/;
/** In bytes; longer words are not stemmed. */
const STEMMED_MOST = 64;

/** The endings that porter takes off are ASCII. */
function stemOfAny(token: string): string {
  if (isAscii(token)) return stemOfAscii(token);
  return ENDS_IN_ASCII.test(token) && Buffer.byteLength(token) <= STEMMED_MOST ? stemByFts(token) : token;
}

/** Of two `y` in a row FTS5 has another opinion than porter. */
function stemOfAscii(word: string): string {
  return word.includes('yy') && word.length <= STEMMED_MOST ? stemByFts(word) : stemOf(word);
}

const STEMS_KEPT = 1_000;
const stems = new LRUCache<string, string>({ max: STEMS_KEPT });

function stemByFts(word: string): string {
  let stem = stems.get(word);
  if (stem === undefined) {
    const [found = ''] = tokenizeByFts(word);
    // It takes bytes to be letters, and may cut one of several in two: what is left is no text that could be marked.
    stem = found.includes('\ufffd') ? word : found;
    stems.set(copyOf(word), stem);
  }
  return stem;
}

const BLOCK = 256;

/** What FTS5 makes of so many characters, by the last byte of their number. */
interface Block {
  /** Of each within a word; '' where it is left out, undefined where it ends the word. */
  readonly inside: readonly (string | undefined)[];
  /** Whether a word may begin with it. */
  readonly begins: readonly boolean[];
}

const blocks: Block[] = [];

function blockOf(code: number): Block {
  return (blocks[Math.floor(code / BLOCK)] ??= askForBlock(Math.floor(code / BLOCK)));
}

function askForBlock(no: number): Block {
  const characters = Array.from({ length: BLOCK }, (_, place) => String.fromCodePoint(no * BLOCK + place));
  const tokens = tokenizeByFts(characters.map((character) => `a${character}b ${character}b`).join(' ')).values();
  const next = () => tokens.next().value ?? '';
  const answers = characters.map(() => {
    const token = next();
    if (token !== 'a') return { inside: token.slice(1, -1), begins: next() !== 'b' };
    next();
    next();
    return { inside: undefined, begins: false };
  });
  return { inside: answers.map(({ inside }) => inside), begins: answers.map(({ begins }) => begins) };
}

/** FTS5's own tokenizer, which it lends to nobody: in a table of its own, whose vocabulary is read and thrown away. */
let open: ((text: string) => readonly string[]) | undefined;

function tokenizeByFts(text: string): readonly string[] {
  open ??= openTokenizer();
  return open(text);
}

function openTokenizer(): (text: string) => readonly string[] {
  const db = new Database(':memory:');
  db.exec(`CREATE VIRTUAL TABLE texts USING fts5 (text, content = '', tokenize = "${TOKENIZER}");
    CREATE VIRTUAL TABLE tokens USING fts5vocab (texts, 'instance')`);
  const insert = db.prepare('INSERT INTO texts (rowid, text) VALUES (1, ?)');
  const select = db.prepare('SELECT term FROM tokens ORDER BY offset').pluck();
  const clear = db.prepare(`INSERT INTO texts (texts) VALUES ('delete-all')`);
  return db.transaction((text: string) => {
    insert.run(text);
    const tokens = select.all() as string[];
    clear.run();
    return tokens;
  });
}
