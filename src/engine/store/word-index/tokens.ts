import Database from 'better-sqlite3';
import { LRUCache } from 'lru-cache';
import { indexableText } from '../../text/index-text.ts';
import { stemOf } from '../../text/stem-finder.ts';
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

/** @param text words as `indexableText` and `queryTerms` give them */
export function markTokens(text: string, mark: string): string {
  if (mark === '') return text;
  const tokens = tokenize(text);
  return tokens.length === 0 ? '' : `${tokens.join(`${mark} `)}${mark}`;
}

const TEXTS_KEPT = 10_000;
const known = new LRUCache<string, readonly string[]>({ max: TEXTS_KEPT });

/**
 * The tokens of a word or phrase as the first partition has them; none for a text without letters and digits.
 * @param text quoted or not
 */
export function tokensOf(text: string): readonly string[] {
  let tokens = known.get(text);
  if (tokens === undefined) known.set(text, (tokens = tokenize(text.replaceAll(MARK, ' '))));
  return tokens;
}

/** As FTS5 does it, which takes five times as long and is asked only for pieces whose letters it may change. */
function tokenize(text: string): readonly string[] {
  if (isAscii(text)) return words(text).map(stemOf);
  return (text.match(PIECE) ?? []).flatMap((piece) => {
    if (isAscii(piece)) return stemOf(piece.toLowerCase());
    return UNCHANGED.test(piece) ? piece : tokensOfPiece(piece);
  });
}

/** What stands between characters that end a token, as far as these are ASCII. */
const PIECE = /[\dA-Za-z\u0080-\uffff]+/g;
/** Of an identifier, and Han and Hangul as `indexableText` cuts them. */
const UNCHANGED = /^(?:[a-z\dǀ-ǃ]+|[\u4e00-\u9fbb\uac00-\ud7a3]{1,2})$/;

function tokensOfPiece(piece: string): readonly string[] {
  let tokens = known.get(piece);
  if (tokens === undefined) known.set(piece, (tokens = tokenizeByFts(piece)));
  return tokens;
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
