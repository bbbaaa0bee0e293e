/** Turns errors of SQLite and of the file system into errors that tell a caller what to do. */

import fs from 'node:fs';
import path from 'node:path';
import { EngineError } from '../errors.ts';

/** Returns the code of an error of SQLite, such as SQLITE_BUSY; undefined for any other error. */
export function sqliteCode(error: unknown): string | undefined {
  // By its name, since the library with the ciphers has a class of its own.
  return error instanceof Error && error.name === 'SqliteError'
    ? String((error as { code?: unknown }).code)
    : undefined;
}

/** Tells whether an error says that another connection locks the database. */
export function isBusy(error: unknown): boolean {
  return sqliteCode(error)?.startsWith('SQLITE_BUSY') ?? false;
}

const PATH_ERRORS: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'ENOTDIR', 'EISDIR', 'EROFS', 'EEXIST']);

/**
 * Turns an error about a file that cannot be opened or created because of its path into an EngineError `invalid` that
 * names the setting `OM_DB_PATH`. Returns any other error as it is.
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
 * Matches messages of SQLite, with the general code SQLITE_ERROR, about a schema or word index that it cannot read. An
 * undamaged file has every table and column that Cairn's statements name. So a missing one shows a damaged trigger.
 */
const DAMAGE_TEXTS = /^(?:malformed database schema|invalid fts5 file format|no such (?:table|column):)/;

/**
 * Turns SQLite's errors about damaged data into an EngineError `internal` that names the file and says what to do.
 * Returns any other error as it is.
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
 * Makes the EngineError `internal` for a file whose data cannot be read.
 * @param file path of the database; left out if it is not known
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
 * Turns an error of SQLite into the EngineError that a caller gets: `storage_full` for a disk that is full or to which
 * a write failed, `unavailable` for a locked database, or `internal` for a damaged one. Returns any other error as it
 * is.
 * @param file path of the database, which the error about a damaged one names
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
