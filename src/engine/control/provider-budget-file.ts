/**
 * The small SQLite file that all processes of a data folder share to count what a provider is asked. It is opened again
 * when another process replaced it, and made anew when it is damaged. Its tables:
 *
 * - `slots`: calls and tokens of the last minute, by slot of time
 * - `breaker`: one row with failures in a row and the present pause
 * - `started`: one row with the time the last call started
 * - `flights`: calls under way
 * - `told`: limits that the provider's replies told of
 */

import fs from 'node:fs';
import type Database from 'better-sqlite3';
import { EngineError } from '../errors.ts';
import { createDatabaseFile, openDatabase } from '../store/open-database.ts';
import { retryWhileBusy } from '../store/open-store.ts';
import { sqliteCode, storageError } from '../store/storage-errors.ts';

/** The prepared statements of the file by name. They are valid only inside the `write` or `note` that passes them. */
export type BudgetStatements = Prepared<keyof typeof STATEMENTS>;

type Prepared<Name extends string> = Readonly<Record<Name, Database.Statement>>;

/** The tables of a file of counters, and the statements on them by name. */
interface CounterTables<Name extends string> {
  readonly schema: string;
  readonly statements: Readonly<Record<Name, string>>;
}

/** An open file of counters. */
interface CounterFile<Name extends string> {
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

/** Opens the file of a provider's budget, and makes it if it is absent. Throws what `CounterFile.write` does. */
export function openBudgetFile(file: string): CounterFile<keyof typeof STATEMENTS> {
  return openCounterFile(file, { schema: SCHEMA, statements: STATEMENTS });
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

const SCHEMA = `CREATE TABLE IF NOT EXISTS slots (
  slot INTEGER PRIMARY KEY, requests INTEGER NOT NULL, tokens INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS breaker (
  one INTEGER PRIMARY KEY CHECK (one = 1), failures INTEGER NOT NULL, opened_at INTEGER NOT NULL,
  open_ms INTEGER NOT NULL, probe_at INTEGER NOT NULL
) STRICT;
INSERT INTO breaker VALUES (1, 0, 0, 0, 0) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS started (one INTEGER PRIMARY KEY CHECK (one = 1), at INTEGER NOT NULL) STRICT;
INSERT INTO started VALUES (1, 0) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS flights (
  flight INTEGER PRIMARY KEY AUTOINCREMENT, tokens INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS told (
  kind TEXT PRIMARY KEY, remaining INTEGER NOT NULL, reserve INTEGER NOT NULL, at INTEGER NOT NULL,
  reset_ms INTEGER NOT NULL
) STRICT;`;

const STATEMENTS = {
  breaker: 'SELECT failures, opened_at, open_ms, probe_at FROM breaker',
  setBreaker:
    'UPDATE breaker SET failures = :failures, opened_at = :opened_at, open_ms = :open_ms, probe_at = :probe_at',
  probe: 'UPDATE breaker SET probe_at = :now',
  rebaseBreaker: `UPDATE breaker SET opened_at = min(opened_at, :now), probe_at = min(probe_at, :now)
       WHERE opened_at > :now OR probe_at > :now`,
  started: 'SELECT at FROM started',
  rebaseStarted: 'UPDATE started SET at = :now WHERE at > :now',
  setStarted: 'UPDATE started SET at = :now',
  depart: 'INSERT INTO flights (tokens, at) VALUES (:tokens, :now)',
  land: 'DELETE FROM flights WHERE flight = :flight',
  forgetFlights: 'DELETE FROM flights WHERE at < :before OR at > :now',
  underWay: 'SELECT count(*) AS requests, coalesce(sum(tokens), 0) AS tokens FROM flights',
  told: 'SELECT kind, remaining, reserve, at + reset_ms AS reset_at FROM told WHERE at + reset_ms > :now',
  rebaseTold: 'UPDATE told SET at = :now WHERE at > :now',
  spend: 'UPDATE told SET remaining = remaining - :cost WHERE kind = :kind',
  setTold: `INSERT INTO told VALUES (:kind, :remaining, :reserve, :now, :resetMs) ON CONFLICT (kind) DO UPDATE
       SET remaining = excluded.remaining, reserve = excluded.reserve, at = excluded.at, reset_ms = excluded.reset_ms
       WHERE excluded.remaining < remaining OR at + reset_ms <= excluded.at`,
  rebaseSlots: `INSERT INTO slots SELECT :slot, sum(requests), sum(tokens) FROM slots WHERE slot > :slot
       HAVING count(*) > 0
       ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, tokens = tokens + excluded.tokens`,
  forgetSlots: 'DELETE FROM slots WHERE slot <= :last OR slot > :slot',
  totals: 'SELECT coalesce(sum(requests), 0) AS requests, coalesce(sum(tokens), 0) AS tokens FROM slots',
  slots: 'SELECT slot, requests, tokens FROM slots ORDER BY slot',
  count: `INSERT INTO slots VALUES (:slot, 1, :tokens)
       ON CONFLICT DO UPDATE SET requests = requests + 1, tokens = tokens + excluded.tokens`,
} as const;

function prepare<Name extends string>(
  db: Database.Database,
  statements: Readonly<Record<Name, string>>,
): Prepared<Name> {
  const prepared = Object.entries<string>(statements).map(([name, sql]) => [name, db.prepare(sql)] as const);
  return Object.fromEntries(prepared) as Prepared<Name>;
}
