/**
 * Searches for erased text: in the bytes of files, in the word index, in Redis. It compares words and phrases with the
 * hashes of receipts, or with words that the caller gives, and reports where it finds one.
 */
import fs from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { uploadsFolder } from '../documents/uploads.ts';
import { EngineError } from '../errors.ts';
import { getErasure, verifyErasures } from '../store/erasures.ts';
import { indexTerms, livingTexts } from '../store/living-texts.ts';
import { openStore } from '../store/open-store.ts';
import { listOwnCopies } from '../store/own-copies.ts';
import { phrasesOf, saltedHash, tellingWords } from '../text/erased-words.ts';
import type { AuditVerdict } from '../types.ts';

/** What a search for erased text looks for. */
export interface Sought {
  /** Erasure receipts with their salts, in the form `id.salt` in which the delete calls returned them. */
  readonly receipts: readonly string[];
  /** Words and phrases that the caller gives. They are reported even if a stored memory still contains them. */
  readonly words: readonly string[];
}

/** What was found in one place. */
export interface Searched {
  /** Path of a file, `word index of …`, or `redis …`. */
  readonly place: string;
  /**
   * Size of what was searched: the bytes of a file (as stored, if it is packed by gzip), or the UTF-16 code units of
   * the texts of a Redis or of the terms of a word index.
   */
  readonly bytes: number;
  /** Number of distinct words and phrases that were found. */
  readonly found: number;
  /**
   * Where the first five were found: offsets in the bytes of a file (for gzip, in the unpacked bytes), or names of keys
   * in Redis; empty for a word index.
   */
  readonly at: readonly string[];
  /**
   * Why finding nothing means nothing, for example because the file is encrypted or damaged; null if the place could be
   * read to its end.
   */
  readonly note: string | null;
}

/** Greatest number of finds of one place whose positions are reported. */
const MAX_AT = 5;
/** Number of new bytes of a file that are read at a time. */
const CHUNK = 1024 * 1024;
/**
 * Number of further bytes that are read with these, and again with the next ones, so that no phrase of up to so many
 * bytes is cut.
 */
const OVERLAP = 512;
/** Greatest number of words and phrases whose result is remembered. */
const SEEN = 1_000_000;
/** Matches the name of a database, of its unfinished copy, or of what a restore replaced; its ending is in group 1. */
const DATABASE =
  /(\.[^./]+)(?:\.before-restore-[^./]+|\.[0-9a-f]{12}(?:\.[0-9a-f]{12}-\d{1,10})?\.partial|\.restoring|\.sealing)?$/;
/** Endings of databases, beside that of the tenant's own file. */
const ENDINGS: ReadonlySet<string> = new Set(['.sqlite', '.sqlite3', '.db', '.db3']);
/** The first bytes of an unencrypted database. */
const SQLITE_HEADER = Buffer.from('SQLite format 3\0');
/** The first bytes of a gzip file, which is unpacked before it is searched. */
const GZIP = Buffer.from([0x1f, 0x8b]);

/** A search for text that was erased from the file of one tenant. */
export interface ErasureSearch {
  /** Whether the stored chain of erasure receipts is intact, which shows that none was changed or removed. */
  readonly chain: AuditVerdict;
  /** Number of hashes of the receipts, and of given words and phrases. Those that `living` leaves out are included. */
  readonly sought: number;
  /**
   * Number of words and phrases of the receipts that are not searched for, because texts that are still stored contain
   * them (`livingTexts`).
   */
  readonly living: number;
  /**
   * Searches a file or a folder with everything below it. A path that does not exist yields nothing, one that cannot be
   * read a place with a note.
   */
  searchPath(place: string): AsyncIterable<Searched>;
  /** Searches the tenant's file with its log and the copies of it beside it, its uploads and its word index. */
  searchTenant(): AsyncIterable<Searched>;
  /** Searches the texts of one place, such as the values of a Redis. */
  searchTexts(place: string, texts: AsyncIterable<{ readonly at: string; readonly text: string }>): Promise<Searched>;
}

/**
 * Begins a search. A server may be using the file.
 * @throws EngineError `not_found` for an unknown receipt; `invalid` for a receipt that is given without its salt or
 *   with another one. For a receipt without `salted` (of an earlier version, or of a delete that is still running) a
 *   wrong salt is not noticed, and nothing of that receipt is found
 */
export function openErasureSearch(file: string, { receipts, words }: Sought): ErasureSearch {
  const store = openStore(file, { role: 'reader' });
  try {
    const wanted = receipts.map((name) => {
      const [id = '', salt = ''] = name.split('.');
      if (salt === '') throw new EngineError('invalid', 'expected a receipt as the delete told it: id.salt');
      const erasure = getErasure(store, id);
      // With another salt no word has a hash of the receipt, and everything would look clean.
      if (erasure.salted !== null && erasure.salted !== saltedHash(salt, id))
        throw new EngineError('invalid', `the salt is not that of the receipt ${id}`);
      return { salt, hashes: new Set([...erasure.words, ...erasure.phrases]) };
    });
    const given = new Set(words.flatMap((text) => [...piecesOfGiven(text)]));
    const finder = createFinder(wanted, given);
    const living = new Set<string>();
    for (const text of livingTexts(store)) finder.find(text, (piece) => living.add(piece));
    for (const piece of given) living.delete(piece);
    const known = createFinder(wanted, given, living);
    const isDatabase = databaseNames(file);
    return {
      chain: store.read(() => verifyErasures(store)),
      sought: given.size + wanted.reduce((sum, { hashes }) => sum + hashes.size, 0),
      living: living.size,
      searchPath: (place) => searchPath(place, known, isDatabase),
      async *searchTenant() {
        for (const name of listOwnCopies(file)) yield* searchPath(name, known, isDatabase);
        yield* searchPath(uploadsFolder(file), known, isDatabase);
        const open = openStore(file, { role: 'reader' });
        try {
          yield searchIndex(`word index of ${file}`, indexTerms(open), known);
        } finally {
          open.close();
        }
      },
      async searchTexts(place, texts) {
        const found = new Set<string>();
        const at: string[] = [];
        let bytes = 0;
        for await (const entry of texts) {
          bytes += entry.text.length;
          known.find(entry.text, (piece) => note(found, at, piece, () => entry.at));
        }
        return { place, bytes, found: found.size, at, note: null };
      },
    };
  } finally {
    store.close();
  }
}

interface Finder {
  /** Calls `onFound` for each word and phrase of a text that is searched for. */
  find(text: string, onFound: (piece: string) => void): void;
  /** Whether a word, phrase or term of the word index is searched for. */
  has(term: string): boolean;
}

function createFinder(
  wanted: readonly { readonly salt: string; readonly hashes: ReadonlySet<string> }[],
  given: ReadonlySet<string>,
  without: ReadonlySet<string> = new Set(),
): Finder {
  const seen = new Map<string, boolean>();
  const has = (piece: string): boolean => {
    let known = seen.get(piece);
    if (known !== undefined) return known;
    if (seen.size >= SEEN) seen.clear();
    known =
      !without.has(piece) &&
      (given.has(piece) || wanted.some(({ salt, hashes }) => hashes.has(saltedHash(salt, piece))));
    seen.set(piece, known);
    return known;
  };
  return {
    has,
    find(text, onFound) {
      for (const word of tellingWords(text)) if (has(word)) onFound(word);
      for (const phrase of phrasesOf(text)) if (has(phrase)) onFound(phrase);
    },
  };
}

/**
 * Returns what a caller's text is searched by: its words that are neither common nor very short, as they are and as
 * stems, and each four words in a row.
 */
function piecesOfGiven(text: string): Set<string> {
  return new Set([...tellingWords(text), ...phrasesOf(text)]);
}

/**
 * Makes the function that tells by its name whether a file is a database, which is sealed if it does not begin like
 * one. A database may have any ending: that of the tenant's own file counts, too.
 */
function databaseNames(tenantFile: string): (file: string) => boolean {
  const own = path.extname(tenantFile);
  return (file) => {
    const ending = DATABASE.exec(file)?.[1] ?? '';
    return file === tenantFile || ENDINGS.has(ending) || (ending !== '' && ending === own);
  };
}

type IsDatabase = ReturnType<typeof databaseNames>;

async function* searchPath(place: string, finder: Finder, isDatabase: IsDatabase): AsyncIterable<Searched> {
  try {
    const stat = fs.statSync(place, { throwIfNoEntry: false });
    if (stat?.isDirectory() === true) {
      for (const entry of fs.readdirSync(place).sort()) yield* searchPath(path.join(place, entry), finder, isDatabase);
    } else if (stat?.isFile() === true) {
      yield await searchFile(place, finder, isDatabase);
    }
  } catch (error) {
    const { code, errno } = error as NodeJS.ErrnoException;
    if (errno === undefined) throw error;
    if (code === 'ENOENT') return; // It was removed meanwhile.
    yield { place, bytes: 0, found: 0, at: [], note: `cannot be read (${code})` };
  }
}

/** Searches a part of a file's bytes, which begins at `offset`. */
type SearchBytes = (bytes: Buffer, offset: number) => void;

/** Searches all bytes of a file, free pages included. A gzip file is unpacked; an encrypted one is noted as such. */
async function searchFile(file: string, finder: Finder, isDatabase: IsDatabase): Promise<Searched> {
  const found = new Set<string>();
  const at: string[] = [];
  const search: SearchBytes = (bytes, offset) =>
    finder.find(bytes.toString('utf8'), (piece) =>
      note(found, at, piece, () => String(offset + placeOf(bytes, piece))),
    );
  const handle = fs.openSync(file, 'r');
  try {
    const { size } = fs.fstatSync(handle);
    const head = Buffer.alloc(16);
    fs.readSync(handle, head, 0, 16, 0);
    const damage = head.subarray(0, 2).equals(GZIP) ? await searchUnpacked(file, search) : null;
    if (damage !== null || !head.subarray(0, 2).equals(GZIP)) searchStored(handle, size, search);
    const isSealed = isDatabase(file.replace(/-wal$/, '')) && !isClear(file, head);
    const sealed = isSealed && size > 0 ? 'sealed: its bytes say nothing without the key' : null;
    return { place: file, bytes: size, found: found.size, at, note: damage ?? sealed };
  } finally {
    fs.closeSync(handle);
  }
}

function searchStored(handle: number, size: number, search: SearchBytes): void {
  const chunk = Buffer.alloc(CHUNK + OVERLAP);
  for (let offset = 0; offset < size; offset += CHUNK) {
    const read = fs.readSync(handle, chunk, 0, chunk.length, offset);
    search(chunk.subarray(0, read), offset);
  }
}

/** Searches what gzip packed. Returns a note for a file that does not unpack to its end; else null. */
async function searchUnpacked(file: string, search: SearchBytes): Promise<string | null> {
  let [bytes, offset] = [Buffer.alloc(0), 0];
  try {
    await pipeline(fs.createReadStream(file), createGunzip({ chunkSize: CHUNK }), async (unpacked) => {
      for await (const more of unpacked as AsyncIterable<Buffer>) {
        bytes = Buffer.concat([bytes, more]);
        for (; bytes.length >= CHUNK + OVERLAP; offset += CHUNK) {
          search(bytes.subarray(0, CHUNK + OVERLAP), offset);
          bytes = bytes.subarray(CHUNK);
        }
      }
    });
    return null;
  } catch (error) {
    const { code = '', errno } = error as NodeJS.ErrnoException;
    if (errno === undefined || !code.startsWith('Z_')) throw error;
    return 'damaged: gzip does not unpack it to its end';
  } finally {
    search(bytes, offset);
  }
}

/**
 * Whether a database is unencrypted. For a log, that is decided by its database; without one it counts as unencrypted.
 */
function isClear(file: string, head: Buffer): boolean {
  if (!file.endsWith('-wal')) return head.equals(SQLITE_HEADER);
  const database = file.slice(0, -'-wal'.length);
  if (!fs.existsSync(database)) return true;
  const first = Buffer.alloc(16);
  const handle = fs.openSync(database, 'r');
  fs.readSync(handle, first, 0, 16, 0);
  fs.closeSync(handle);
  return first.equals(SQLITE_HEADER);
}

/**
 * Returns the offset in the bytes at which a word or phrase begins; if its words are not separated by single blanks,
 * that of its first word. ASCII letters may be capitals. Returns 0 if it is spelled differently, such as with accents.
 */
function placeOf(bytes: Buffer, piece: string): number {
  // Capitals of ASCII alone: another byte above 127 would be part of another letter of UTF-8.
  const text = bytes.toString('latin1').replace(/[A-Z]+/g, (capitals) => capitals.toLowerCase());
  const offsetOf = (words: string) => text.indexOf(Buffer.from(words, 'utf8').toString('latin1'));
  const whole = offsetOf(piece);
  return whole >= 0 ? whole : Math.max(0, offsetOf(piece.split(' ')[0]!));
}

/** Searches the terms of a word index, because its pages do not hold terms as whole words. */
function searchIndex(place: string, terms: Iterable<string>, finder: Finder): Searched {
  const found = new Set<string>();
  let bytes = 0;
  for (const term of terms) {
    bytes += term.length;
    if (finder.has(term)) found.add(term);
  }
  return { place, bytes, found: found.size, at: [], note: null };
}

function note(found: Set<string>, at: string[], piece: string, findPlace: () => string): void {
  if (found.has(piece)) return;
  found.add(piece);
  if (at.length === MAX_AT) return;
  const where = findPlace();
  if (!at.includes(where)) at.push(where);
}
