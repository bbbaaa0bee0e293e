import fs from 'node:fs';
import path from 'node:path';
import type Database from 'better-sqlite3';
import * as sqliteVec from 'sqlite-vec';
import { EngineError, isEngineError } from '../errors.ts';
import { databaseForm, notADatabase } from './database-form.ts';
import { keyOfFile } from '../find-file-key.ts';
import { openDatabase } from './open-database.ts';
import { isBusy, sqliteCode, storageError } from './storage-errors.ts';

/** Contents of a database that passed the check. */
export interface DatabaseSummary {
  /** Number of memories in the file, including hidden, expired and superseded ones. */
  readonly memories: number;
  /** Size of the database file without its write-ahead log, in bytes. */
  readonly bytes: number;
}

/**
 * Checks a tenant's file from end to end (`PRAGMA integrity_check`) without changing it.
 * @param key key of the file, null for an unencrypted file; by default what `keyOfFile` finds
 * @throws EngineError `not_found` if the file does not exist; `unprocessable` if it is no database, no tenant's file or
 *   damaged; `unavailable` if another process locks it
 */
export function checkDatabase(file: string, key = keyOfFile(file)): DatabaseSummary {
  const name = path.basename(file);
  if (!fs.existsSync(file)) throw new EngineError('not_found', `no file ${file}`);
  const db = openDatabase(file, { readonly: true, key });
  try {
    sqliteVec.load(db);
    const tables = db.prepare(
      `SELECT count(*) AS n FROM sqlite_schema WHERE name IN ('store_info', 'memories', 'jobs')`,
    );
    if ((tables.get() as { n: number }).n !== 3) {
      throw new EngineError('unprocessable', `${name} is a SQLite database, but not one that holds memories`);
    }
    const problems = db.pragma('integrity_check(1)', { simple: true }) as string;
    if (problems !== 'ok') throw new EngineError('unprocessable', `${name} is damaged: ${problems.split('\n')[0]}`);
    const { n: memories } = db.prepare('SELECT count(*) AS n FROM memory_dynamics').get() as { n: number };
    return { memories, bytes: fs.statSync(file).size };
  } catch (error) {
    const code = sqliteCode(error);
    if (code === 'SQLITE_NOTADB') throw notADatabase(file, false, error);
    if (code?.startsWith('SQLITE_CORRUPT'))
      throw new EngineError('unprocessable', `${name} is damaged`, { cause: error });
    throw storageError(error);
  } finally {
    db.close();
  }
}

/**
 * Makes sure that no process has a database file open, and moves its write-ahead log into it, so that the file may be
 * replaced or removed. An instance lock does not prove that, since a program that embeds the engine takes none. The
 * proof is that the file can leave WAL mode, which takes an exclusive lock; the file is not put back into WAL mode. A
 * file that does not exist, is no database, is damaged, or cannot be opened with `key` passes unchecked.
 * @param key key of the file, null for an unencrypted file; by default what `keyOfFile` finds
 * @throws EngineError `conflict` if another process has the file open
 */
export function requireUnused(file: string, key = keyOfFile(file)): void {
  // SQLite would remove the log of a file whose start is damaged.
  if (databaseForm(file) !== (key === null ? 'clear' : 'sealed')) return;
  let db: Database.Database | undefined;
  try {
    db = openDatabase(file, { timeout: 0, key });
    if (db.pragma('journal_mode = DELETE', { simple: true }) === 'delete') return;
  } catch (error) {
    // The file is damaged, or sealed with another key, which is why it is replaced.
    const isUnreadable = isEngineError(error, 'unprocessable') || (sqliteCode(error) !== undefined && !isBusy(error));
    if (isUnreadable) return;
    if (!isBusy(error)) throw error;
  } finally {
    db?.close();
  }
  throw new EngineError(
    'conflict',
    `another process has ${path.basename(file)} open: stop the server and its workers first`,
  );
}
