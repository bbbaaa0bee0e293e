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
import Database from 'better-sqlite3';
import { EngineError } from '../errors.ts';
import { retryWhileBusy } from '../store/open-store.ts';
import { sqliteCode, storageError } from '../store/storage-errors.ts';
import { createPrivateFile } from '../store/private-file.ts';

/** The prepared statements of the file by name. They are valid only inside the `write` or `note` that passes them. */
export type BudgetStatements = Readonly<Record<keyof typeof STATEMENTS, Database.Statement>>;

/** The open file of a budget. */
interface BudgetFile {
  /**
   * Runs `work` in one `BEGIN IMMEDIATE` transaction. `work` runs a second time, on a new file, if the first run shows
   * that the file is damaged.
   * @throws EngineError `unavailable` once closed; what `storageError` says
   */
  write<T>(work: (statements: BudgetStatements) => T): T;
  /** Like `write`, but if the file is closed or locked or the disk is full, the change is lost without an error. */
  note(work: (statements: BudgetStatements) => void): void;
  close(): void;
}

interface OpenFile {
  readonly db: Database.Database;
  readonly transact: Database.Transaction<(work: (statements: BudgetStatements) => unknown) => unknown>;
  readonly inode: number;
}

/** Opens the file, and makes it if it is absent. Throws what `BudgetFile.write` does. */
export function openBudgetFile(file: string): BudgetFile {
  let open: OpenFile | undefined;
  let isClosed = false;

  const current = () => {
    if (open !== undefined && fs.statSync(file, { throwIfNoEntry: false })?.ino === open.inode) return open;
    open?.db.close();
    open = undefined;
    const db = connect(file);
    const statements = prepare(db);
    const transact = db.transaction((work: (statements: BudgetStatements) => unknown) => work(statements));
    return (open = { db, transact, inode: fs.statSync(file).ino });
  };
  const startAnew = () => {
    open?.db.close();
    open = undefined;
    for (const name of [file, `${file}-wal`, `${file}-shm`]) fs.rmSync(name, { force: true });
  };
  const write = <T>(work: (statements: BudgetStatements) => T): T => {
    const attempt = () => {
      const { transact } = current();
      return retryWhileBusy(() => transact.immediate(work) as T);
    };
    if (isClosed) throw new EngineError('unavailable', 'the budget of the provider is closed');
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

function connect(file: string): Database.Database {
  createPrivateFile(file);
  const db = new Database(file, { timeout: 0 });
  try {
    retryWhileBusy(() => db.pragma('journal_mode = WAL'));
    // The counts of the last minute are not worth an fsync.
    db.pragma('synchronous = OFF');
    retryWhileBusy(() =>
      db.exec(
        `CREATE TABLE IF NOT EXISTS slots (
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
         ) STRICT;`,
      ),
    );
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

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

function prepare(db: Database.Database): BudgetStatements {
  const prepared = Object.entries(STATEMENTS).map(([name, sql]) => [name, db.prepare(sql)] as const);
  return Object.fromEntries(prepared) as BudgetStatements;
}
