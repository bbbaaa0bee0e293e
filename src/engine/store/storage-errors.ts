/** Errors of SQLite and of the file system, and what they mean to a caller. */
import fs from 'node:fs';
import path from 'node:path';
import { EngineError } from '../errors.ts';

/** Returns SQLite's code of an error, such as SQLITE_BUSY; undefined for an error that is not SQLite's. */
export function sqliteCode(error: unknown): string | undefined {
  // By its name, since the library with the ciphers has a class of its own.
  return error instanceof Error && error.name === 'SqliteError'
    ? String((error as { code?: unknown }).code)
    : undefined;
}

/** Tells whether an error of SQLite says that another connection blocks the database. */
export function isBusy(error: unknown): boolean {
  return sqliteCode(error)?.startsWith('SQLITE_BUSY') ?? false;
}

const PATH_ERRORS: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'ENOTDIR', 'EISDIR', 'EROFS', 'EEXIST']);

/**
 * Turns the error for a file that cannot be opened or created because of its path into an EngineError `invalid` that
 * names the setting. Returns other errors unchanged.
 */
export function pathError(error: unknown, file: string): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  // SQLite reports CANTOPEN for too many open files too, where another path would not help.
  const isOurs = /^SQLITE_(?:CANTOPEN|READONLY)/.test(code) ? !isWritableFile(file) : PATH_ERRORS.has(code);
  if (!isOurs) return error;
  return new EngineError(
    'invalid',
    `cannot open or make the database file ${path.basename(file)} (${code}): set OM_DB_PATH to a file, not a folder, ` +
      'in a folder that Cairn may write to',
    { cause: error },
  );
}

function isWritableFile(file: string): boolean {
  try {
    fs.accessSync(path.dirname(file), fs.constants.W_OK);
    fs.accessSync(file, fs.constants.R_OK | fs.constants.W_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

/**
 * What SQLite says, with the code of a wrong statement, of a schema or of a word index that it cannot read. In a whole
 * file there is every table and column that a statement names, so one that is missing is named by a damaged trigger.
 */
const DAMAGE_TEXTS = /^(?:malformed database schema|invalid fts5 file format|no such (?:table|column):)/;

/**
 * Turns SQLite's errors for damaged data into an EngineError `internal` that names the file and says what to do.
 * Returns other errors unchanged.
 * @param file path of the database
 */
export function damageError(error: unknown, file: string): unknown {
  const code = sqliteCode(error);
  if (code === undefined) return error;
  const isDamage =
    code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB' || DAMAGE_TEXTS.test((error as Error).message);
  return isDamage ? damaged(file, error) : error;
}

/**
 * Makes the error for a file whose data cannot be read.
 * @param file path of the database; left out where it is not known
 */
export function damaged(file?: string, cause?: unknown): EngineError {
  const name = file === undefined ? 'the database file' : path.basename(file);
  return new EngineError(
    'internal',
    `${name} is damaged: keep a copy of it, then restore a backup with \`cairn restore\`, or try ` +
      '`cairn rebuild-index`',
    { cause },
  );
}

/**
 * Turns an error of SQLite into the EngineError that a caller gets: `storage_full`, `unavailable` for a locked database
 * or `internal` for a damaged one. Returns other errors unchanged.
 * @param file path of the database, which the error for a damaged one names
 */
export function storageError(error: unknown, file?: string): unknown {
  const code = sqliteCode(error);
  if (code === undefined) return error;
  if (
    code === 'SQLITE_FULL' ||
    code === 'SQLITE_IOERR_WRITE' ||
    code === 'SQLITE_IOERR_FSYNC' ||
    code === 'SQLITE_IOERR_SHMSIZE'
  ) {
    return new EngineError('storage_full', 'the disk that holds the database is full', { cause: error });
  }
  if (code.startsWith('SQLITE_BUSY')) {
    return new EngineError('unavailable', 'the database is locked', { cause: error, retryAfterMs: 1_000 });
  }
  return damageError(error, file ?? 'the database file');
}
