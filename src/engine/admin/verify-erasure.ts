/**
 * Looks for what was erased: in the bytes of files, in the word index, in Redis. It knows the hashes of receipts, or
 * words that it is given, and reports where a piece of text has one of them.
 */
import fs from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { uploadsFolder } from '../documents/uploads.ts';
import { EngineError } from '../errors.ts';
import { getErasure, verifyErasures } from '../store/erasures.ts';
import { indexTerms, livingTexts } from '../store/living-texts.ts';
import { openStore } from '../store/open-store.ts';
import { phrasesOf, saltedHash, tellingWords } from '../text/erased-words.ts';
import type { AuditVerdict } from '../types.ts';

/** What is looked for. */
export interface Sought {
  /** Names of receipts with their salts, as the deletes told them: `id.salt`. */
  readonly receipts: readonly string[];
  /** Words and phrases that the caller knows. They count wherever they are found. */
  readonly words: readonly string[];
}

/** What was found in a place. */
export interface Searched {
  /** Path of a file, `word index of …`, or `redis …`. */
  readonly place: string;
  readonly bytes: number;
  /** Number of distinct words and phrases that were found. */
  readonly found: number;
  /** Where the first of them are: offsets in a file, or names of keys. */
  readonly at: readonly string[];
  /** Why the place says nothing, such as that it is sealed; null where it was read. */
  readonly note: string | null;
}

/** Offsets that are told of one place. */
const MAX_AT = 5;
/** Bytes of a file that are read at once, and those that are read again so that no phrase is cut. */
const CHUNK = 1024 * 1024;
const OVERLAP = 512;
/** Most pieces of text that are remembered as looked at. */
const SEEN = 1_000_000;
/** The first bytes of a database in clear. */
const SQLITE_HEADER = Buffer.from('SQLite format 3\0');
/** The first bytes of compressed files that are unpacked. */
const GZIP = Buffer.from([0x1f, 0x8b]);

/** A search for what was erased from the file of one tenant. */
export interface ErasureSearch {
  /** State of the chain of receipts. */
  readonly chain: AuditVerdict;
  /** Number of hashes and words that are looked for. */
  readonly sought: number;
  /** Number of those that a living memory holds, too, and that are passed over. */
  readonly living: number;
  /** Searches a file or, with all that is below, a folder. */
  searchPath(place: string): Iterable<Searched>;
  /** Searches the tenant's file with its log, its uploads and its word index. */
  searchTenant(): Iterable<Searched>;
  /** Searches texts of one place, such as the values of a Redis. */
  searchTexts(place: string, texts: AsyncIterable<{ readonly at: string; readonly text: string }>): Promise<Searched>;
}

/**
 * Begins a search. The file may be in use by a server.
 * @throws EngineError `not_found` for an unknown receipt; `invalid` for the name of a receipt without its salt
 */
export function openErasureSearch(file: string, { receipts, words }: Sought): ErasureSearch {
  const store = openStore(file, { role: 'reader' });
  try {
    const wanted = receipts.map((name) => {
      const [id = '', salt = ''] = name.split('.');
      if (salt === '') throw new EngineError('invalid', 'expected a receipt as the delete told it: id.salt');
      const erasure = getErasure(store, id);
      return { salt, hashes: new Set([...erasure.words, ...erasure.phrases]) };
    });
    const given = new Set(words.flatMap((text) => [...piecesOfGiven(text)]));
    const finder = createFinder(wanted, given);
    const living = new Set<string>();
    for (const text of livingTexts(store)) finder.find(text, (piece) => living.add(piece));
    for (const piece of given) living.delete(piece);
    const known = createFinder(wanted, given, living);
    return {
      chain: store.read(() => verifyErasures(store)),
      sought: given.size + wanted.reduce((sum, { hashes }) => sum + hashes.size, 0),
      living: living.size,
      searchPath: (place) => searchPath(place, known),
      *searchTenant() {
        for (const suffix of ['', '-wal', '-shm']) yield* searchPath(`${file}${suffix}`, known);
        yield* searchPath(uploadsFolder(file), known);
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
          known.find(entry.text, (piece) => note(found, at, piece, entry.at));
        }
        return { place, bytes, found: found.size, at, note: null };
      },
    };
  } finally {
    store.close();
  }
}

interface Finder {
  /** Calls `onFound` for each piece of a text that is looked for. */
  find(text: string, onFound: (piece: string) => void): void;
  /** Tells whether a single term is looked for. */
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

/** The pieces of what a caller names: telling words, and phrases of four words. */
function piecesOfGiven(text: string): Set<string> {
  return new Set([...tellingWords(text), ...phrasesOf(text)]);
}

function* searchPath(place: string, finder: Finder): Iterable<Searched> {
  const stat = fs.statSync(place, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (stat.isDirectory()) {
    for (const entry of fs.readdirSync(place).sort()) yield* searchPath(path.join(place, entry), finder);
    return;
  }
  if (stat.isFile()) yield searchFile(place, finder);
}

/** Searches the bytes of a file, free pages and all. A compressed file is unpacked; a sealed one says nothing. */
function searchFile(file: string, finder: Finder): Searched {
  const found = new Set<string>();
  const at: string[] = [];
  const handle = fs.openSync(file, 'r');
  try {
    const { size } = fs.fstatSync(handle);
    const head = Buffer.alloc(16);
    fs.readSync(handle, head, 0, 16, 0);
    const search = (bytes: Buffer, offset: number) =>
      finder.find(bytes.toString('utf8'), (piece) => note(found, at, piece, String(offset + place(bytes, piece))));
    if (head.subarray(0, 2).equals(GZIP)) {
      search(gunzipSync(fs.readFileSync(file)), 0);
    } else {
      const chunk = Buffer.alloc(CHUNK + OVERLAP);
      for (let offset = 0; offset < size; offset += CHUNK) {
        const read = fs.readSync(handle, chunk, 0, chunk.length, offset);
        search(chunk.subarray(0, read), offset);
      }
    }
    const isSealed = /\.(sqlite|db)(-wal)?$/.test(file) && !isClear(file, head);
    const sealed = isSealed && size > 0 ? 'sealed: its bytes say nothing without the key' : null;
    return { place: file, bytes: size, found: found.size, at, note: sealed };
  } finally {
    fs.closeSync(handle);
  }
}

/** Whether a database is in clear; a log is as its database. */
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

/** The place of a piece in the bytes, or of its first word where it is written otherwise; 0 where it is not told. */
function place(bytes: Buffer, piece: string): number {
  const text = bytes.toString('latin1').toLowerCase();
  return Math.max(0, text.indexOf(Buffer.from(piece.split(' ')[0]!, 'utf8').toString('latin1')));
}

/** Searches the terms of a word index, whose pages hold them in pieces. */
function searchIndex(place: string, terms: Iterable<string>, finder: Finder): Searched {
  const found = new Set<string>();
  let bytes = 0;
  for (const term of terms) {
    bytes += term.length;
    if (finder.has(term)) found.add(term);
  }
  return { place, bytes, found: found.size, at: [], note: null };
}

function note(found: Set<string>, at: string[], piece: string, where: string): void {
  if (found.has(piece)) return;
  found.add(piece);
  if (at.length < MAX_AT && !at.includes(where)) at.push(where);
}
