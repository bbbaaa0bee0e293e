/**
 * A small SQLite file in which all processes of a data folder count together: calls of providers, rates, wrong keys,
 * streams. Its commits wait for no fsync, since a power failure may lose these counts. It is opened again when another
 * process replaced it, and made anew when it is damaged. With OM_DATABASE_URL all nodes count together in PostgreSQL,
 * except for wrong keys, which each data folder counts in its own file.
 */

import fs from 'node:fs';
import type Database from 'better-sqlite3';
import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { FileKey } from '../find-file-key.ts';
import { createDatabaseFile, openDatabase } from '../store/open-database.ts';
import { retryWhileBusy } from '../store/open-store.ts';
import type { Statement } from '../store/statement.ts';
import { sqliteCode, storageError } from '../store/storage-errors.ts';
import type { CounterFile, CounterPlace, CounterTables, Prepared } from './counters.ts';
import { openSharedCounts } from './shared-counts.ts';

interface OpenFile<Name extends string> {
  readonly db: Database.Database;
  readonly transact: Database.Transaction<(work: (statements: Prepared<Name>) => unknown) => unknown>;
  readonly inode: number;
}

/**
 * Returns where counts are kept: in the given file, or with OM_DATABASE_URL in the database, under a name that does not
 * depend on OM_DB_PATH, so that all nodes use the same counts.
 * @param file path of a counter file, which begins like that of the control database
 */
export function counterPlaceOf({ OM_DATABASE_URL: database, paths }: Config, file: string): CounterPlace {
  if (database === undefined) return file;
  return { database, name: file.slice(paths.control.length - 'control.sqlite'.length, -'.sqlite'.length) };
}

/** Names of the tables that counter files have, and SQLite's own one for ids. */
const TABLE_NAMES: ReadonlySet<unknown> = new Set([
  ...['buckets', 'guessers', 'stream_counts', 'slots', 'breaker', 'started', 'flights', 'told', 'sqlite_sequence'],
]);

/**
 * Whether a file is a database that has no other tables than counters, so that it may be removed.
 * @param key key of the file; null for an unencrypted one
 * @returns false also for a file that cannot be read with this key
 */
export function isCounterFile(file: string, key: FileKey | null): boolean {
  let db: Database.Database | undefined;
  try {
    db = openDatabase(file, { readonly: true, fileMustExist: true, key });
    const tables = db.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).pluck().all();
    return tables.every((name) => TABLE_NAMES.has(name));
  } catch {
    return false;
  } finally {
    db?.close();
  }
}

/**
 * Opens counters, and makes them if they do not exist.
 * @throws EngineError for a file, `unavailable` if it is locked and `storage_full` for a full disk; in PostgreSQL the
 *   errors of `openSharedCounts`
 */
export function openCounterFile<Name extends string>(
  place: CounterPlace,
  tables: CounterTables<Name>,
): CounterFile<Name> {
  return typeof place === 'string' ? openFile(place, tables) : openSharedCounts(place, tables.statements);
}

function openFile<Name extends string>(file: string, tables: CounterTables<Name>): CounterFile<Name> {
  let open: OpenFile<Name> | undefined;
  let isClosed = false;

  const current = () => {
    if (open !== undefined && fs.statSync(file, { throwIfNoEntry: false })?.ino === open.inode) return open;
    open?.db.close();
    open = undefined;
    const db = connect(file, tables.schema);
    const statements = prepare(db, tables.statements);
    const transact = db.transaction((work: (statements: Prepared<Name>) => unknown) => work(statements));
    return (open = { db, transact, inode: fs.statSync(file).ino });
  };
  const startAnew = () => {
    open?.db.close();
    open = undefined;
    for (const name of [file, `${file}-wal`, `${file}-shm`]) fs.rmSync(name, { force: true });
  };
  const write = <T>(work: (statements: Prepared<Name>) => T): T => {
    const attempt = () => {
      const { transact } = current();
      return retryWhileBusy(() => transact.immediate(work) as T);
    };
    if (isClosed) throw new EngineError('unavailable', 'the file of counters is closed');
    try {
      return attempt();
    } catch (error) {
      if (!isDamage(error)) throw storageError(error);
      startAnew();
      return attempt();
    }
  };
  write(() => {});
  return {
    write,
    note(work) {
      try {
        if (!isClosed) write(work);
      } catch (error) {
        // The call itself is not affected; the next call reads the file again.
        if (!(error instanceof EngineError)) throw error;
      }
    },
    close() {
      isClosed = true;
      open?.db.close();
      open = undefined;
    },
  };
}

/**
 * Whether a SQLite error is of a kind that comes from a file that is no database, has a damaged page, or has tables of
 * another schema. A fault in a statement looks the same.
 */
function isDamage(error: unknown): boolean {
  return /^SQLITE_(?:CORRUPT|NOTADB|ERROR|SCHEMA|CONSTRAINT|MISMATCH)/.test(sqliteCode(error) ?? '');
}

function connect(file: string, schema: string): Database.Database {
  createDatabaseFile(file);
  const db = openDatabase(file, { timeout: 0 });
  try {
    retryWhileBusy(() => db.pragma('journal_mode = WAL'));
    // The counts of the last minute are not worth an fsync.
    db.pragma('synchronous = OFF');
    retryWhileBusy(() => db.exec(schema));
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function prepare<Name extends string>(
  db: Database.Database,
  statements: Readonly<Record<Name, string>>,
): Prepared<Name> {
  const prepared = Object.entries<string>(statements).map(
    ([name, sql]) => [name, db.prepare(sql) as Statement] as const,
  );
  return Object.fromEntries(prepared) as Prepared<Name>;
}
