import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { LRUCache } from 'lru-cache';
import * as sqliteVec from 'sqlite-vec';
import { EngineError } from '../errors.ts';
import { migrate } from './migrate.ts';
import { createPrivateFile } from './private-file.ts';
import { requireTenantFile } from './tenant-file.ts';

/**
 * One open tenant file. The files beside this one each hold one table's statements and take a `Store`; nothing else
 * writes SQL.
 */
export interface Store {
  readonly db: Database.Database;
  readonly path: string;
  /** Prepared once per connection and text. */
  prepare(sql: string): Database.Statement<unknown[], unknown>;
  /** Runs `work` in one short `BEGIN IMMEDIATE` transaction. Nothing is awaited inside. */
  write<T>(work: () => T): T;
  /** Inside a write: has `work` run once before its commit, however often it is asked for. */
  beforeCommit(work: (store: Store) => void): void;
  /** Whether `write` is at work. */
  readonly isWriting: boolean;
  /** A number for the transaction at work, of which this connection has only one; undefined outside. */
  readonly transactionNo: number | undefined;
  /** Runs `work` on one snapshot. */
  read<T>(work: () => T): T;
  /**
   * To be called every second: suits the cache to the size of the file. A reader maps a large one into memory once no other connection has
   * committed for some seconds, and until one does. Every so often what is mapped is let go of; it stays in the cache of the operating system.
   */
  suitToFile(): void;
  close(): void;
}

export interface OpenStoreOptions {
  /**
   * `reader` refuses writes. `acknowledger` answers clients, so its commits are fsynced (FULL) and leave checkpoints to
   * others. `worker` commits at NORMAL: its work is repeated from the ledger if a power cut takes it back.
   */
  readonly role: 'reader' | 'acknowledger' | 'worker';
  /** Make the file if it is not there. */
  readonly create?: boolean;
}

/** How long a connection waits for another's write before it gives up with `unavailable`. */
export const BUSY_TIMEOUT_MS = 5_000;
const RETRY_PAUSE_MS = 0.5;
const LOOK_CACHE_KB = 256;
/**
 * A query of a large file reads some thousand pages all over it: mapped they cost a tenth to a third less than one call each. But whenever
 * another connection has committed, SQLite lets go of all that was mapped, and to have it back, 64 KB a page, costs more: over HTTP, where
 * commits follow queries, a third of the time. Of a smaller file a mapping saves less, and some hundred queries make all of it count as the
 * process's own memory. Writers gain nothing by it, and to let go of two gigabytes takes 30 ms.
 */
const MAPPED_LEAST = 512 * 1024 * 1024;
const MAPPED_MOST = 2_147_418_112;
const MAPPED_FOR_LOOKS = 5;
/**
 * SQLite's own cache is forgotten with every commit of others, so that a large one serves nobody; but where it does not hold the inner pages of
 * the trees, a 300th of the file, every row that is looked up reads another page: a user of 100 in a million waits a sixth longer.
 */
const READER_CACHE_KB = 2_000;
const WRITER_CACHE_KB = 8_000;
const CACHE_KB_MOST = 16_000;
const CACHE_SHARE = 1 / 200;
const STATEMENTS_MOST = 500;

/**
 * Opens a tenant's file and brings its schema up to date.
 * @throws EngineError `not_found` without `create`; `invalid` for a path that cannot be a database's; `unprocessable` for a file
 *         that is no database, no tenant's, from before 0.1.0 or from a newer version of Cairn (left unchanged)
 */
export function openStore(file: string, options: OpenStoreOptions): Store {
  try {
    return connect(file, options);
  } catch (error) {
    throw pathError(error, file);
  }
}

function connect(file: string, options: OpenStoreOptions): Store {
  if (!fs.existsSync(file)) {
    if (!options.create) throw new EngineError('not_found', `no database at ${path.basename(file)}`);
    createPrivateFile(file);
  }
  const writable = options.role !== 'reader';
  prepareFile(file);
  const db = new Database(file, { readonly: !writable, fileMustExist: true });
  try {
    // The first of these reads the file, and may meet another process that closes its last connection.
    retryWhileBusy(() => configure(db, options));
  } catch (error) {
    db.close();
    throw error;
  }
  sqliteVec.load(db);
  const store = makeStore(db, file, writable ? WRITER_CACHE_KB : READER_CACHE_KB, writable ? Infinity : MAPPED_LEAST);
  store.suitToFile();
  return store;
}

/**
 * A look into a file that others keep: neither made nor migrated, and without vectors, which takes a tenth of the time.
 * @returns undefined where there is no file, or nobody has made its tables yet
 * @throws EngineError `unavailable` at once while another process makes it
 */
export function openForLook(file: string): Store | undefined {
  if (!fs.existsSync(file)) return undefined;
  const db = new Database(file, { readonly: true, fileMustExist: true, timeout: 0 });
  try {
    db.pragma(`cache_size = -${LOOK_CACHE_KB}`);
    const isMade = db.prepare(`SELECT 1 FROM sqlite_schema WHERE type = 'index' AND name = 'jobs_leased'`).get();
    if (isMade !== undefined) return makeStore(db, file, LOOK_CACHE_KB, Infinity);
    db.close();
    return undefined;
  } catch (error) {
    db.close();
    throw storageError(error);
  }
}

function configure(db: Database.Database, { role }: OpenStoreOptions): void {
  // BUSY is met with short retries of our own in `write`: SQLite's handler backs off to 100 ms and loses to eager peers.
  db.pragma(`busy_timeout = ${role === 'reader' ? BUSY_TIMEOUT_MS : 0}`);
  db.pragma(`synchronous = ${role === 'acknowledger' ? 'FULL' : 'NORMAL'}`);
  db.pragma('wal_autocheckpoint = 0');
  db.pragma('secure_delete = ON');
  db.pragma('foreign_keys = ON');
  db.pragma('temp_store = MEMORY');
}

/** Migrates on a connection of its own, with SQLite's patient handler: several processes may start at once. */
function prepareFile(file: string): void {
  const db = new Database(file);
  try {
    db.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
    retryWhileBusy(() => requireTenantFile(db, file));
    retryWhileBusy(() => db.pragma('journal_mode = WAL'));
    // Tables that are written anew leave pages full of words behind, which no later erasure would reach.
    db.pragma('secure_delete = ON');
    sqliteVec.load(db);
    migrate(db, file);
  } catch (error) {
    if (sqliteCode(error) === 'SQLITE_NOTADB') {
      throw new EngineError('unprocessable', `${path.basename(file)} is not a SQLite database, or it is damaged`, {
        cause: error,
      });
    }
    throw error;
  } finally {
    db.close();
  }
}

/**
 * @param cacheKbLeast the cache of a small file
 * @param mappedLeast bytes of a file that is mapped
 */
function makeStore(db: Database.Database, file: string, cacheKbLeast: number, mappedLeast: number): Store {
  // Bounded, since the shapes of filters are the callers' making.
  const statements = new LRUCache<string, Database.Statement<unknown[], unknown>>({ max: STATEMENTS_MOST });
  const prepare = (sql: string) => {
    let statement = statements.get(sql);
    if (statement === undefined) statements.set(sql, (statement = db.prepare<unknown[], unknown>(hideParameters(sql))));
    return statement;
  };
  let isWriting = false;
  let transactions = 0;
  let lastVersion: number | undefined;
  let quietLooks = 0;
  let cacheKb = 0;
  const lastWork = new Set<(store: Store) => void>();
  const store: Store = {
    db,
    path: file,
    prepare,
    get isWriting() {
      return isWriting;
    },
    get transactionNo() {
      return db.inTransaction ? transactions : undefined;
    },
    write(work) {
      beginImmediate(db);
      transactions += 1;
      isWriting = true;
      try {
        return finish(db, () => {
          const result = work();
          for (const last of lastWork) last(store);
          return result;
        });
      } finally {
        isWriting = false;
        lastWork.clear();
      }
    },
    beforeCommit: (work) => void lastWork.add(work),
    read(work) {
      if (db.inTransaction) return work();
      db.exec('BEGIN');
      transactions += 1;
      return finish(db, work);
    },
    suitToFile() {
      try {
        const size = fs.statSync(file).size;
        const cacheKbWanted = Math.round(Math.min(CACHE_KB_MOST, Math.max(cacheKbLeast, (CACHE_SHARE * size) / 1_000)));
        if (cacheKbWanted !== cacheKb) {
          db.pragma(`cache_size = -${cacheKbWanted}`);
          cacheKb = cacheKbWanted;
        }
        const version = othersVersion(store);
        const looks = version === lastVersion ? quietLooks + 1 : 0;
        if (looks % MAPPED_FOR_LOOKS === 0) db.pragma('mmap_size = 0');
        [quietLooks, lastVersion] = [looks, version];
        if (looks > 0 && looks % MAPPED_FOR_LOOKS === 0 && size >= mappedLeast) db.pragma(`mmap_size = ${MAPPED_MOST}`);
      } catch {
        // A statement is being read, or another process has the file for itself; the next time will do.
      }
    },
    close: () => db.close(),
  };
  return store;
}

/**
 * Writes each parameter as `+?`. SQLite built with STAT4, as better-sqlite3 is, looks at bound values while it plans a join, an
 * ORDER BY or a LIMIT, and then prepares the statement again at every binding: 3 to 40 microseconds, a quarter of an add. A unary
 * plus hides the parameter and changes neither its value nor which index is used.
 */
function hideParameters(sql: string): string {
  return sql.replace(/\?|:[a-z]\w*/gi, '+$&');
}

function finish<T>(db: Database.Database, work: () => T): T {
  try {
    const result = work();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK');
    throw storageError(error);
  }
}

/** Tries for the write lock every half millisecond, so that a short pause of another writer is enough to get in. */
function beginImmediate(db: Database.Database): void {
  try {
    retryWhileBusy(() => db.exec('BEGIN IMMEDIATE'));
  } catch (error) {
    throw storageError(error);
  }
}

/**
 * Runs `attempt` again for as long as another connection is in its way. SQLite's own handler is not asked everywhere: not where a
 * file turns to WAL, nor where the last connection to close takes the log away.
 * @throws EngineError `unavailable` after `BUSY_TIMEOUT_MS`; what else `attempt` throws, as it is
 */
export function retryWhileBusy<T>(attempt: () => T): T {
  const startedAt = performance.now();
  for (let retries = 0; ; retries++) {
    try {
      const result = attempt();
      if (retries > 0) noteBusy(retries, startedAt);
      return result;
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (performance.now() > startedAt + BUSY_TIMEOUT_MS) {
        noteBusy(retries, startedAt);
        busy.timeouts += 1;
        throw new EngineError('unavailable', `the database was locked for ${BUSY_TIMEOUT_MS} ms`, {
          cause: error,
          retryAfterMs: 1_000,
        });
      }
      sleep(RETRY_PAUSE_MS);
    }
  }
}

/** A number that changes whenever another connection committed something to the file. */
export function othersVersion(store: Store): number {
  const row = store.prepare('SELECT data_version AS version FROM pragma_data_version').get() as { version: number };
  return row.version;
}

/** How many rows this connection has changed since it was opened. */
export function totalChanges(store: Store): number {
  return (store.prepare('SELECT total_changes() AS n').get() as { n: number }).n;
}

/** What waiting for others has cost this thread since it began. */
export interface BusyTotals {
  /** Attempts beyond the first. */
  readonly retries: number;
  readonly waitedMs: number;
  /** Waits that ended without success. */
  readonly timeouts: number;
}

const busy = { retries: 0, waitedMs: 0, timeouts: 0 };

export function busyTotals(): BusyTotals {
  return { ...busy };
}

function noteBusy(retries: number, startedAt: number): void {
  busy.retries += retries;
  busy.waitedMs += performance.now() - startedAt;
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));
function sleep(ms: number): void {
  Atomics.wait(sleeper, 0, 0, ms);
}

export function sqliteCode(error: unknown): string | undefined {
  return error instanceof Database.SqliteError ? error.code : undefined;
}

export function isBusy(error: unknown): boolean {
  return sqliteCode(error)?.startsWith('SQLITE_BUSY') ?? false;
}

const PATH_ERRORS: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'ENOTDIR', 'EISDIR', 'EROFS', 'EEXIST']);

/** Names the setting behind a file that cannot be opened or made because of where it lies; other errors pass as they are. */
export function pathError(error: unknown, file: string): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  // SQLite says CANTOPEN for too many open files too, which no other path would help.
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

/** What a storage failure means to a caller; other errors pass as they are. */
export function storageError(error: unknown): unknown {
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
  if (code === 'SQLITE_CORRUPT' || code === 'SQLITE_NOTADB' || code === 'SQLITE_CORRUPT_VTAB') {
    return new EngineError('internal', 'the database file is damaged; restore a backup, or try `cairn rebuild-index`', {
      cause: error,
    });
  }
  return error;
}
