/**
 * The terms under which the word index stores a word. Row numbers are divided into partitions. In the first partition a
 * word has its plain term; in another one, the term ends with a mark and the partition's number: `file`, `file!1`,
 * `file!2`. The reason: FTS5 can end a step of merging only between two terms, so the postings of a word in a million
 * rows would be copied in one step. With partitions, no term has more than 131,072 rows (`PARTITION_ROWS`). No word has
 * a character as low as the mark, so all terms of a word are adjacent.
 */

import { LRUCache } from 'lru-cache';
import { ftsString, indexableText } from '../../text/index-text.ts';
import { openDatabase } from '../open-database.ts';
import { copyOf, stemOf } from '../../text/stem-finder.ts';
import { isAscii, words } from '../../text/words.ts';

/** Tokenizer of `memory_text`, as in the migration that creates the table. */
export const TOKENIZER = `porter unicode61 remove_diacritics 2 tokenchars '!'`;

/** Number of row numbers in one partition. Merging a word that all of these rows have takes some 10 ms. */
export const PARTITION_ROWS = 2 ** 17;
const MARK = '!';
/** Byte of the mark `!` in a term, after which the partition's number follows. */
export const MARK_BYTE = MARK.charCodeAt(0);
/**
 * Character after the mark. Appended to a word, it gives a text that sorts after the word's terms of all partitions and
 * before every longer word.
 */
export const BEYOND_MARK = String.fromCharCode(MARK_BYTE + 1);

/**
 * Returns what is appended to each term of a row for its partition (`PARTITION_ROWS` rows), such as `!1`; '' for a row
 * of the first partition, whose terms stay plain.
 */
export function markOf(memoryNo: number): string {
  return memoryNo < PARTITION_ROWS ? '' : `${MARK}${Math.floor(memoryNo / PARTITION_ROWS)}`;
}

/**
 * Greatest number of times that a term stands in one column of a row; further occurrences are left out. So no memory
 * adds more than some hundred bytes to the list of a word, however often its text repeats it; BM25 hardly grows after
 * so many. The length of a row counts the terms that are kept. Rows that earlier versions wrote have all occurrences,
 * and the length that fits these, until they are written anew.
 */
export const MAX_OCCURRENCES = 256;

/**
 * Prepares a text for a column of a row of the index. In the first partition it stays text, which FTS5 splits and
 * stems. In another partition it becomes stemmed terms that end with the mark. In both, no term stands more than 256
 * times (`MAX_OCCURRENCES`).
 * @param mark mark of the row's partition, as `markOf` returns it
 */
export function indexedText(text: string, mark: string): string {
  if (text === '') return '';
  if (mark !== '') return withMark(indexedTerms(text), mark);
  const prepared = preparedText(text);
  return mayRepeat(prepared) ? withoutFurther(prepared) : prepared;
}

/**
 * Lists the terms of a text for a column of a row, in order and without a mark: those that `indexedText` gives to
 * FTS5, with no term more than 256 times (`MAX_OCCURRENCES`).
 */
export function indexedTerms(text: string): readonly string[] {
  return limited(tokenize(preparedText(text)));
}

function preparedText(text: string): string {
  return indexableText(text).replaceAll(MARK, ' ');
}

/**
 * Tells whether a term may stand more than 256 times in a text; false for nearly all ASCII texts below 10 KB, true for
 * every text of more than 512 UTF-16 code units that is not ASCII. A stem begins with the letter of its word, so an
 * ASCII text is known by how many of its words begin with each letter, in a twentieth of the time that its terms take.
 */
function mayRepeat(text: string): boolean {
  // One more than that many words would be longer.
  if (text.length <= 2 * MAX_OCCURRENCES) return false;
  if (!isAscii(text)) return true;
  const beginnings = new Uint32Array(INITIALS.length);
  let isInside = false;
  for (let at = 0; at < text.length; at += 1) {
    const initial = INITIALS[text.charCodeAt(at)]!;
    if (initial !== 0 && !isInside) beginnings[initial]! += 1;
    isInside = initial !== 0;
  }
  return beginnings.some((count) => count > MAX_OCCURRENCES);
}

/**
 * By the code of each ASCII character, the code of its lower-case letter or digit; 0 for a character that separates
 * words.
 */
const INITIALS = Uint8Array.from({ length: 128 }, (_, code) => {
  const letter = String.fromCharCode(code).toLowerCase();
  return /[a-z\d]/.test(letter) ? letter.charCodeAt(0) : 0;
});

/** Removes all occurrences of each term after its first 256; returns `terms` itself if there are none. */
function limited(terms: readonly string[]): readonly string[] {
  if (terms.length <= MAX_OCCURRENCES) return terms;
  const kept = terms.filter(createCounter(terms));
  return kept.length === terms.length ? terms : kept;
}

/** Removes from a text the words whose terms `limited` removes. What is between the words stays. */
function withoutFurther(text: string): string {
  const [found, starts, ends]: [string[], number[], number[]] = [[], [], []];
  eachWord(text, (word, start, end) => {
    found.push(word);
    starts.push(start);
    ends.push(end);
  });
  const terms = stemsOf(found);
  const isKept = createCounter(terms);
  const pieces: string[] = [];
  let from = 0;
  for (const [place, term] of terms.entries()) {
    if (isKept(term)) continue;
    pieces.push(text.slice(from, starts[place]));
    from = ends[place]!;
  }
  return pieces.length === 0 ? text : pieces.join('') + text.slice(from);
}

/**
 * Makes a function that counts how often it was called with each of these terms, and returns false from the 257th time
 * on. Few terms of a text are so frequent, and to count each one exactly would take most of the time of a long text. So
 * terms are first counted in buckets, and exactly only in those that have more.
 */
function createCounter(terms: readonly string[]): (term: string) => boolean {
  const inBucket = new Uint32Array(BUCKETS);
  for (const term of terms) inBucket[bucketOf(term)]! += 1;
  const counts = new Map<string, number>();
  return (term) => {
    if (inBucket[bucketOf(term)]! <= MAX_OCCURRENCES) return true;
    const count = (counts.get(term) ?? 0) + 1;
    counts.set(term, count);
    return count <= MAX_OCCURRENCES;
  };
}

/** Number of buckets in which terms are counted; a power of two. */
const BUCKETS = 2 ** 14;

/** Returns the bucket of a term, by its length and its first three UTF-16 code units. */
function bucketOf(term: string): number {
  // A unit that is not there is NaN, and 0 as a bit pattern.
  const beginning = (term.charCodeAt(0) * 31 + (term.charCodeAt(1) | 0)) * 31 + (term.charCodeAt(2) | 0);
  return (beginning * 31 + term.length) & (BUCKETS - 1);
}

/**
 * Returns the quoted string by which FTS5's MATCH finds a word or phrase in the rows of one partition.
 * @param text a word, or the words of a phrase joined by spaces, as `queryTerms` returns them
 * @param mark mark of the partition, as `markOf` returns it
 */
export function matchString(text: string, mark: string): string {
  return ftsString(markTerms(text.replaceAll(MARK, ' '), mark));
}

/** Lists the marks of all partitions, from the first ('') to the one of the row `lastMemoryNo`. */
export function marksUpTo(lastMemoryNo: number): readonly string[] {
  return Array.from({ length: Math.floor(lastMemoryNo / PARTITION_ROWS) + 1 }, (_, no) => markOf(no * PARTITION_ROWS));
}

function markTerms(text: string, mark: string): string {
  if (mark === '') return text;
  return withMark(tokenize(text), mark);
}

function withMark(terms: readonly string[], mark: string): string {
  return terms.length === 0 ? '' : `${terms.join(`${mark} `)}${mark}`;
}

/**
 * Lists the terms of a text in order, stemmed and without a mark, as the first partition has them; empty for a text
 * without letters and digits.
 * @param text a word or phrase as `queryTerms` returns it, quoted or not
 */
export function termsOf(text: string): readonly string[] {
  return tokenize(text.replaceAll(MARK, ' '));
}

/**
 * Tokenizes a text exactly as FTS5 does, but faster. For text that is not ASCII, FTS5 itself is asked once for each
 * block of 256 characters, and once for all words that only it can stem.
 */
function tokenize(text: string): readonly string[] {
  if (isAscii(text)) return DOUBLE_Y.test(text) ? stemsOf(words(text)) : words(text).map(stemOf);
  const found: string[] = [];
  eachWord(text, (word) => found.push(word));
  return stemsOf(found);
}

/**
 * Calls `visit` for each word of a text in order, folded as FTS5 does before it stems, with the offsets in the text at
 * which the word begins and ends.
 */
function eachWord(text: string, visit: (word: string, start: number, end: number) => void): void {
  // Where the word begins that is open, or -1; how it is folded up to `from`, from where it is as in the text.
  let [start, folded, from] = [-1, '', 0];
  const end = (at: number) => {
    if (start >= 0) visit(from === start ? text.slice(start, at) : folded + text.slice(from, at), start, at);
    start = -1;
  };
  for (let at = 0; at < text.length;) {
    const code = text.codePointAt(at)!;
    const size = code > 0xffff ? 2 : 1;
    const { inside, begins, isSame } = blockOf(code);
    const letter = inside[code % BLOCK];
    if (letter === undefined) end(at);
    else if (start >= 0 || begins[code % BLOCK]) {
      if (start < 0) [start, folded, from] = [at, '', at];
      if (!isSame[code % BLOCK]) {
        folded += text.slice(from, at) + letter;
        from = at + size;
      }
    }
    at += size;
  }
  end(text.length);
}

const DOUBLE_Y = /yy/i;
/** Longest word that FTS5 stems, in bytes. */
const MAX_STEMMED = 64;

/**
 * Tells whether only FTS5 knows the stem of a word: a word with `yy`, which FTS5 treats differently from other Porter
 * stemmers, or a word of ASCII and other letters that ends in ASCII. The Porter stemmer removes only ASCII endings.
 */
function isStemmedByFts(word: string): boolean {
  if (isAscii(word)) return word.includes('yy') && word.length <= MAX_STEMMED;
  return endsInAscii(word) && Buffer.byteLength(word) <= MAX_STEMMED;
}

/** Greatest number of cached stems that FTS5 made. */
const STEMS_KEPT = 1_000;
const stems = new LRUCache<string, string>({ max: STEMS_KEPT });

/** Stems words. FTS5 is asked once for all that only it can stem, since each question takes it some 30 µs. */
function stemsOf(list: readonly string[]): readonly string[] {
  const byFts = new Map<string, string>();
  const unknown: string[] = [];
  for (const word of list) {
    if (!endsInAscii(word) || !isStemmedByFts(word) || byFts.has(word)) continue;
    const stem = stems.get(word);
    if (stem === undefined) unknown.push(word);
    byFts.set(word, stem ?? word);
  }
  for (const [place, stem] of stemByFts(unknown).entries()) {
    const word = unknown[place]!;
    byFts.set(word, stem);
    stems.set(copyOf(word), stem);
  }
  return list.map((word) => (endsInAscii(word) ? (byFts.get(word) ?? stemOf(word)) : word));
}

/** Tells whether a word ends in an ASCII letter or digit. Of others nothing is removed: endings are ASCII. */
const endsInAscii = (word: string): boolean => word.charCodeAt(word.length - 1) < 0x80;

/** Stems different words by FTS5 with one question, or with one for each word if one of them is not one term. */
function stemByFts(list: readonly string[]): readonly string[] {
  const found = list.length === 0 ? [] : tokenizeByFts(list.join(' '));
  if (found.length !== list.length && list.length > 1) return list.flatMap((word) => stemByFts([word]));
  return list.map((word, place) => {
    const stem = found[place] ?? '';
    // FTS5 takes bytes for letters and may cut a letter of several bytes in two. The rest is no text that could be
    // marked.
    return stem.includes('\ufffd') ? word : stem;
  });
}

/** Number of characters in a block, about which FTS5 is asked at once. */
const BLOCK = 256;

/**
 * How FTS5 treats the 256 characters of a block. The index in the lists is the last byte of the character's code point.
 */
interface Block {
  /**
   * What FTS5 replaces each character by inside of a word; '' if it drops the character, undefined if the character
   * ends the word.
   */
  readonly inside: readonly (string | undefined)[];
  /** Whether a word may begin with each character. */
  readonly begins: readonly boolean[];
  /** Whether each character stays as it is inside of a word. */
  readonly isSame: readonly boolean[];
}

const blocks: Block[] = [];

function blockOf(code: number): Block {
  return (blocks[Math.floor(code / BLOCK)] ??= askForBlock(Math.floor(code / BLOCK)));
}

function askForBlock(no: number): Block {
  const characters = Array.from({ length: BLOCK }, (_, place) => String.fromCodePoint(no * BLOCK + place));
  const terms = tokenizeByFts(characters.map((character) => `a${character}b ${character}b`).join(' ')).values();
  const next = () => terms.next().value ?? '';
  const answers = characters.map(() => {
    const term = next();
    if (term !== 'a') return { inside: term.slice(1, -1), begins: next() !== 'b' };
    next();
    next();
    return { inside: undefined, begins: false };
  });
  return {
    inside: answers.map(({ inside }) => inside),
    begins: answers.map(({ begins }) => begins),
    isSame: answers.map(({ inside }, place) => inside === characters[place]),
  };
}

/**
 * Function that tokenizes a text by FTS5 itself, made on first use. FTS5's tokenizer cannot be called directly, so a
 * text is inserted into a table, and the terms are read from the table's vocabulary.
 */
let open: ((text: string) => readonly string[]) | undefined;

function tokenizeByFts(text: string): readonly string[] {
  open ??= openTokenizer();
  return open(text);
}

function openTokenizer(): (text: string) => readonly string[] {
  const db = openDatabase(':memory:');
  db.exec(`CREATE VIRTUAL TABLE texts USING fts5 (text, content = '', tokenize = "${TOKENIZER}");
    CREATE VIRTUAL TABLE terms USING fts5vocab (texts, 'instance')`);
  const insert = db.prepare('INSERT INTO texts (rowid, text) VALUES (1, ?)');
  const select = db.prepare('SELECT term FROM terms ORDER BY offset').pluck();
  const clear = db.prepare(`INSERT INTO texts (texts) VALUES ('delete-all')`);
  return db.transaction((text: string) => {
    insert.run(text);
    const terms = select.all() as string[];
    clear.run();
    return terms;
  });
}
