/** The one place where Cairn opens a SQLite database; lint refuses it elsewhere. */

import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import Database from 'better-sqlite3';
import { EngineError } from '../errors.ts';
import { databaseForm, notADatabase } from './database-form.ts';
import { keyOfFile, type FileKey } from '../find-file-key.ts';
import { createPrivateFile } from './private-file.ts';
import { isBusy, sqliteCode } from './storage-errors.ts';

export interface OpenDatabaseOptions extends Pick<Database.Options, 'readonly' | 'fileMustExist' | 'timeout'> {
  /** Key of the file, null for an unencrypted file; if left out, what `keyOfFile` finds. */
  readonly key?: FileKey | null;
}

/**
 * Opens a database, encrypted if the file has a key. SQLite is in defensive mode, better-sqlite3's default, so no
 * statement can write to the schema table or to the tables behind a word index. With `trusted_schema` off, expressions
 * in the schema of a file cannot run functions with side effects, as a restored backup may come from a stranger.
 * @param file path, or `:memory:`
 * @throws EngineError `unprocessable` for an unencrypted file that should be encrypted, or one that another key
 *   encrypted; `invalid` if a key is set and the package with the ciphers is not installed; SQLite's errors as they are
 */
export function openDatabase(file: string, { key, ...options }: OpenDatabaseOptions = {}): Database.Database {
  const found = file === ':memory:' ? null : key === undefined ? keyOfFile(file) : key;
  if (found === null) return harden(new Database(file, options));
  const db = unlock(file, found, options);
  if (db !== undefined) return db;
  // Another process may have erased the file and made it anew, with another key.
  const fresh = key === undefined ? keyOfFile(file, true) : null;
  const again = fresh && unlock(file, fresh, options);
  if (again) return again;
  throw notADatabase(file, true, undefined);
}

/**
 * Opens an encrypted file; undefined if the key is wrong. The key of a file that is locked at present is not checked.
 */
function unlock(file: string, key: FileKey, options: Database.Options): Database.Database | undefined {
  const Sealed = loadCipherLibrary();
  const db = new Sealed(file, options);
  try {
    db.pragma(`cipher = '${key.cipher}'`);
    setKey(db, 'key', key);
    harden(db);
    db.pragma('temp_store = MEMORY');
    db.prepare('SELECT count(*) FROM sqlite_schema').get();
    return db;
  } catch (error) {
    if (isBusy(error)) return db; // Whoever holds the lock has the file open, and the first statement will tell.
    db.close();
    if (sqliteCode(error) === 'SQLITE_NOTADB') return undefined;
    throw error;
  }
}

/** A database that was opened with the encryption library, which can set and change its key. */
type SealedDatabase = Database.Database & Record<'key' | 'rekey', (key: Buffer) => number>;

/**
 * Sets or changes the key of a connection. The key is passed as bytes, since the text of a statement would appear in
 * errors. The form `x'…'` says that the bytes are the key itself, not a passphrase from which it is derived.
 */
function setKey(db: SealedDatabase, how: 'key' | 'rekey', { bytes }: FileKey): void {
  db[how](Buffer.from(`x'${Buffer.from(bytes).toString('hex')}'`));
}

/**
 * Encrypts the file of an open connection with another key, or decrypts it if the key is null. There is no rollback
 * journal, as it would hold the pages unencrypted, so an interrupted change destroys the file: use a copy.
 */
export function changeKey(db: Database.Database, key: FileKey | null): void {
  const sealed = db as SealedDatabase;
  sealed.pragma('journal_mode = OFF');
  if (key === null) {
    sealed.rekey(Buffer.alloc(0));
    return;
  }
  sealed.pragma(`cipher = '${key.cipher}'`);
  setKey(sealed, 'rekey', key);
}

/**
 * Opens a file with the encryption library, even an unencrypted one (`key` null), so that `changeKey` can encrypt it.
 * @throws EngineError as `openDatabase`
 */
export function openForSealing(file: string, key: FileKey | null): Database.Database {
  return key === null ? harden(new (loadCipherLibrary())(file)) : openDatabase(file, { key });
}

function harden<T extends Database.Database>(db: T): T {
  db.pragma('trusted_schema = OFF');
  return db;
}

/**
 * Makes an empty database that only its owner can read, unless a non-empty file exists. An encrypted database is first
 * made under another name, and renamed once its first bytes are found to be encrypted. So no fault of the encryption
 * library can leave text unencrypted.
 * @throws EngineError as `openDatabase`; `internal` if the library did not encrypt the file
 */
export function createDatabaseFile(file: string, key = keyOfFile(file)): void {
  if (key === null) return createPrivateFile(file);
  if ((fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0) return;
  const made = `${file}.${randomBytes(6).toString('hex')}.new`;
  try {
    createPrivateFile(made);
    const db = openDatabase(made, { key });
    db.pragma('journal_mode = WAL'); // Writes the first page.
    db.close();
    if (databaseForm(made) !== 'sealed') {
      throw new EngineError('internal', `${path.basename(file)} was not encrypted by the library: nothing was stored`);
    }
    giveName(made, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    for (const suffix of ['', '-wal', '-shm']) fs.rmSync(made + suffix, { force: true });
  }
}

/**
 * Gives a newly made file its final name. Throws EEXIST if a non-empty file has that name; an empty file is kept
 * instead.
 */
function giveName(made: string, file: string): void {
  if (fs.statSync(file, { throwIfNoEntry: false })?.size === 0) return; // It is sealed when its first page is written.
  try {
    fs.linkSync(made, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw error;
    fs.copyFileSync(made, file, fs.constants.COPYFILE_EXCL); // A file system without hard links.
  }
}

/** Package of the encryption library, with the version with which Cairn was tested. */
const CIPHER_PACKAGE = 'better-sqlite3-multiple-ciphers@13.0.3';
const require = createRequire(import.meta.url);
let cipherLibrary: (new (file: string, options?: Database.Options) => SealedDatabase) | undefined;

/** Loads the optional encryption library on first use: 34 MB that only encrypted files need. */
function loadCipherLibrary(): NonNullable<typeof cipherLibrary> {
  try {
    return (cipherLibrary ??= require('better-sqlite3-multiple-ciphers') as NonNullable<typeof cipherLibrary>);
  } catch (error) {
    throw new EngineError(
      'invalid',
      `an encryption key is set, but the package with the ciphers is missing: run \`npm install ${CIPHER_PACKAGE}\``,
      { cause: error },
    );
  }
}
