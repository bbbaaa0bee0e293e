/**
 * A small SQLite file that all processes of a data folder share to count what is worth no fsync: calls of providers,
 * rates, wrong keys, streams. It is opened again when another process replaced it, and made anew when it is damaged.
 */

import fs from 'node:fs';
import type Database from 'better-sqlite3';
import { EngineError } from '../errors.ts';
import { createDatabaseFile, openDatabase } from '../store/open-database.ts';
import { retryWhileBusy } from '../store/open-store.ts';
import { sqliteCode, storageError } from '../store/storage-errors.ts';

/** Prepared statements by name. They are valid only inside the `write` or `note` that passes them. */
export type Prepared<Name extends string> = Readonly<Record<Name, Database.Statement>>;

/** The tables of a file of counters, and the statements on them by name. */
interface CounterTables<Name extends string> {
  readonly schema: string;
  readonly statements: Readonly<Record<Name, string>>;
}

/** An open file of counters. */
export interface CounterFile<Name extends string> {
  /**
   * Runs `work` in one `BEGIN IMMEDIATE` transaction. `work` runs a second time, on a new file, if the first run shows
   * that the file is damaged.
   * @throws EngineError `unavailable` once closed; what `storageError` says
   */
  write<T>(work: (statements: Prepared<Name>) => T): T;
  /** Like `write`, but if the file is closed or locked or the disk is full, the change is lost without an error. */
  note(work: (statements: Prepared<Name>) => void): void;
  close(): void;
}

interface OpenFile<Name extends string> {
  readonly db: Database.Database;
  readonly transact: Database.Transaction<(work: (statements: Prepared<Name>) => unknown) => unknown>;
  readonly inode: number;
}

/** Opens a file of counters, and makes it if it is absent. Throws what `CounterFile.write` does. */
export function openCounterFile<Name extends string>(file: string, tables: CounterTables<Name>): CounterFile<Name> {
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

/** True for a file that is no database, a damaged page, or tables with another schema. */
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
  const prepared = Object.entries<string>(statements).map(([name, sql]) => [name, db.prepare(sql)] as const);
  return Object.fromEntries(prepared) as Prepared<Name>;
}
