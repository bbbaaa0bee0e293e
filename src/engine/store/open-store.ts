import fs from 'node:fs';
import path from 'node:path';
import type Database from 'better-sqlite3';
import * as sqliteVec from 'sqlite-vec';
import { EngineError } from '../errors.ts';
import { defineLabelFunctions } from './label-conditions.ts';
import { migrate } from './migrate.ts';
import { notADatabase } from './database-form.ts';
import { keyOfFile, type FileKey } from '../find-file-key.ts';
import type { Foresight } from './foresight.ts';
import { createDatabaseFile, openDatabase } from './open-database.ts';
import { IN_FILE, type Positioned } from './position.ts';
import { damageError, isBusy, pathError, sqliteCode, storageError } from './storage-errors.ts';
import { createStatements } from './prepared-statements.ts';
import type { Statement } from './statement.ts';
import { requireTenantFile } from './tenant-file.ts';
import type { WordTable } from './word-table.ts';

/**
 * One connection to a tenant's database. The SQL statements are in the other files of this folder, mostly one file for
 * each table, as functions that take a `Store`.
 */
export interface Store extends Positioned {
  /** Path of the database file. */
  readonly path: string;
  /**
   * Returns the prepared statement for an SQL text. Callers with the same text share one statement. The text must have
   * no `?` or `:name` that is not a parameter.
   */
  prepare(sql: string): Statement;
  /** Prefetches query answers; null for a SQLite file, where a query has no round trip. */
  readonly ahead: Foresight | null;
  /**
   * Runs `work` in one short `BEGIN IMMEDIATE` transaction, which is rolled back if it throws. Nothing is awaited
   * inside, and a write is not begun inside another transaction.
   * @param ask called before `work` if `ahead` is not null: what it prefetches shares the first round trip
   * @throws EngineError `unavailable` if another connection writes for BUSY_TIMEOUT_MS; `storage_full`; `internal` for
   *   a damaged file; in PostgreSQL as `inWrite`, also with `mayBeWritten`; any other error of `work` as it is
   */
  write<T>(work: () => T, ask?: () => void): T;
  /**
   * Runs `work` once just before the present write commits. Passing the same function again has no further effect. Call
   * inside a write.
   */
  beforeCommit(work: (store: Store) => void): void;
  /** Whether `write` is running on this connection. */
  readonly isWriting: boolean;
  /** Number of the open transaction of this connection, which is never reused; undefined outside of a transaction. */
  readonly transactionNo: number | undefined;
  /** Counter that rises when a statement of this connection changes rows, even if the change is rolled back later. */
  readonly changes: number;
  /**
   * Runs `work` on one snapshot of the database, or in the open transaction if there is one. Nothing can be awaited
   * inside.
   */
  read<T>(work: () => T): T;
  /**
   * Adapts the connection's memory to the size of the file; call it every second. It sets the size of the page cache.
   * For a reader it also maps an unencrypted file of 512 MB or more into memory after five calls without a commit of
   * another connection; such a commit ends the mapping. Every fifth call renews the mapping; the pages stay in the
   * cache of the operating system.
   */
  suitToFile(): void;
  /** Reads a number that changes when another connection has committed to the database. */
  othersVersion(): number;
  /** The word index of a tenant in PostgreSQL; null for a SQLite file, whose word index is FTS5. */
  readonly words: WordTable | null;
  /** Whether `close` has not been called yet. */
  readonly isOpen: boolean;
  close(): void;
}

/** One connection of SQLite to a tenant's file. */
export interface SqliteStore extends Store {
  readonly db: Database.Database;
}

/** Use for which a connection is opened. */
export interface OpenStoreOptions {
  /**
   * Use of the connection. A `reader` refuses writes. An `acknowledger` confirms writes to clients, so its commits are
   * fsynced (`synchronous=FULL`). A `worker` commits at NORMAL: if a power failure undoes its work, the jobs are run
   * again. Commits never make a checkpoint of the write-ahead log; maintenance does (`checkpointLog`).
   */
  readonly role: 'reader' | 'acknowledger' | 'worker';
  /** Whether the file is created if it does not exist; false by default. */
  readonly create?: boolean;
  /** Key of the file, null for an unencrypted file; if left out, what `keyOfFile` finds. */
  readonly key?: FileKey | null;
}

/**
 * Longest time for which a connection waits for another connection's write before it fails with `unavailable`, in ms.
 */
export const BUSY_TIMEOUT_MS = 5_000;
/**
 * Pause between two attempts to get the write lock (ms). It is short, so that even a short gap between other writes is
 * used.
 */
const RETRY_PAUSE_MS = 0.5;
/** Size of the page cache of a connection of `openForLook`, in KB. */
const LOOK_CACHE_KB = 256;
/**
 * Least size of a file that a reader maps into memory, in bytes. A query of a large file reads some thousand pages all
 * over it, and mapped pages cost a tenth to a third less than one call each. But SQLite drops the mapping after a
 * commit of another connection, and restoring it, in pages of 64 KB, costs more: a third of the time over HTTP, where
 * commits follow queries. A mapping of a smaller file saves less, and after some hundred queries all of it counts as
 * memory of the process. Writers gain nothing from a mapping, and dropping 2 GB takes 30 ms.
 */
const MIN_MAPPED = 512 * 1024 * 1024;
/** Greatest number of bytes that are mapped: just below 2 GiB. */
const MAX_MAPPED = 2_147_418_112;
/**
 * Number of successive calls of `suitToFile` without a commit of another connection after which the file is mapped into
 * memory, and after which a mapping is renewed.
 */
const MAPPED_FOR_LOOKS = 5;
/**
 * Smallest page cache of a reader, in KB. SQLite's own cache becomes invalid at every commit of another connection, so
 * a large one is useless. But it has to hold the inner pages of the b-trees, a 300th of the file: otherwise every
 * lookup of a row reads another page, and a query for a user of 100 memories in a million takes a sixth longer.
 */
const READER_CACHE_KB = 2_000;
/** Smallest page cache of a writer, in KB. */
const WRITER_CACHE_KB = 8_000;
/** Largest page cache of any connection, in KB. */
const MAX_CACHE_KB = 16_000;
/**
 * Size of the page cache as a share of the file's size, more than the 300th that the inner pages of the b-trees take.
 */
const CACHE_SHARE = 1 / 200;

/**
 * Opens a tenant's file and brings its schema to the newest version, also for a reader.
 * @throws EngineError `not_found` if the file does not exist and `create` is not set; `invalid` for a path where no
 *   database can be; `unprocessable` for a file that is no database, no tenant's file, from before version 0.1.0 or of
 *   a newer schema (it is left unchanged); `unavailable` if another process locks it for more than 5 seconds, but it
 *   waits up to 30 minutes for a migration (`migrate`); what `createDatabaseFile` and `openDatabase` throw
 */
export function openStore(file: string, options: OpenStoreOptions): SqliteStore {
  try {
    return connect(file, options);
  } catch (error) {
    throw damageError(pathError(error, file), file);
  }
}

function connect(file: string, options: OpenStoreOptions): SqliteStore {
  const { key = keyOfFile(file) } = options;
  if (!fs.existsSync(file)) {
    if (!options.create) throw new EngineError('not_found', `no database at ${path.basename(file)}`);
    createDatabaseFile(file, key);
  }
  const writable = options.role !== 'reader';
  prepareFile(file, options);
  const db = openDatabase(file, { readonly: !writable, fileMustExist: true, ...keyOption(options) });
  try {
    // The first pragma reads the file, and may meet another process that closes its last connection.
    retryWhileBusy(() => configure(db, options));
  } catch (error) {
    db.close();
    throw error;
  }
  sqliteVec.load(db);
  // A sealed file is never mapped: its pages have to be decrypted.
  const minMapped = writable || key !== null ? Infinity : MIN_MAPPED;
  const store = makeStore(db, file, writable ? WRITER_CACHE_KB : READER_CACHE_KB, minMapped);
  store.suitToFile();
  return store;
}

/**
 * Opens a file read-only for a few quick reads. It neither creates nor migrates the file, and does not load sqlite-vec,
 * so it takes a tenth of the time of `openStore`.
 * @returns undefined if the file does not exist or has no tables yet
 * @throws EngineError `unavailable` at once if another process locks the file, for example while it creates the file;
 *   what `openDatabase` throws
 */
export function openForLook(file: string, key?: FileKey | null): SqliteStore | undefined {
  if (!fs.existsSync(file)) return undefined;
  const db = openDatabase(file, { readonly: true, fileMustExist: true, timeout: 0, ...keyOption({ key }) });
  try {
    db.pragma(`cache_size = -${LOOK_CACHE_KB}`);
    const isMade = db.prepare(`SELECT 1 FROM sqlite_schema WHERE type = 'index' AND name = 'jobs_leased'`).get();
    if (isMade !== undefined) return makeStore(db, file, LOOK_CACHE_KB, Infinity);
    db.close();
    return undefined;
  } catch (error) {
    db.close();
    throw storageError(error, file);
  }
}

function configure(db: Database.Database, { role }: OpenStoreOptions): void {
  // `write` meets BUSY with short retries of its own: SQLite's handler backs off to 100 ms and loses to eager writers.
  db.pragma(`busy_timeout = ${role === 'reader' ? BUSY_TIMEOUT_MS : 0}`);
  db.pragma(`synchronous = ${role === 'acknowledger' ? 'FULL' : 'NORMAL'}`);
  db.pragma('wal_autocheckpoint = 0');
  db.pragma('secure_delete = ON');
  db.pragma('foreign_keys = ON');
  db.pragma('temp_store = MEMORY');
}

/** Returns the option `key` for `openDatabase`; an empty object if `openDatabase` has to find the key itself. */
function keyOption({ key }: { readonly key?: FileKey | null | undefined }): { key?: FileKey | null } {
  return key === undefined ? {} : { key };
}

/**
 * Checks the file and migrates its schema, on a separate connection that waits long for locks (SQLite's busy handler),
 * since several processes may start at once.
 */
function prepareFile(file: string, options: OpenStoreOptions): void {
  const db = openDatabase(file, keyOption(options));
  try {
    db.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
    retryWhileBusy(() => requireTenantFile(db, file));
    retryWhileBusy(() => db.pragma('journal_mode = WAL'));
    // Rewriting a table leaves pages full of words behind, which no later erasure would reach.
    db.pragma('secure_delete = ON');
    sqliteVec.load(db);
    migrate(db, file);
  } catch (error) {
    if (sqliteCode(error) === 'SQLITE_NOTADB') throw notADatabase(file, false, error);
    throw error;
  } finally {
    db.close();
  }
}

/**
 * Makes a store of an open connection.
 * @param minCacheKb size of the page cache for a small file, in KB
 * @param minMapped least size of a file that is mapped into memory, in bytes; Infinity for never
 */
function makeStore(db: Database.Database, file: string, minCacheKb: number, minMapped: number): SqliteStore {
  defineLabelFunctions(db);
  const statements = createStatements(db, file);
  let isWriting = false;
  let transactions = 0;
  let lastVersion: number | undefined;
  let [quietLooks, cacheKb] = [0, 0];
  const lastWork = new Set<(store: Store) => void>();
  const store: SqliteStore = {
    db,
    path: file,
    prepare: statements.prepare,
    ...IN_FILE,
    get isWriting() {
      return isWriting;
    },
    get transactionNo() {
      return db.inTransaction ? transactions : undefined;
    },
    get changes() {
      return statements.changes;
    },
    write(work) {
      beginImmediate(db, file);
      transactions += 1;
      isWriting = true;
      try {
        return finish(db, file, () => {
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
      return finish(db, file, work);
    },
    suitToFile() {
      try {
        const size = fs.statSync(file).size;
        const cacheKbWanted = Math.round(Math.min(MAX_CACHE_KB, Math.max(minCacheKb, (CACHE_SHARE * size) / 1_000)));
        if (cacheKbWanted !== cacheKb) {
          db.pragma(`cache_size = -${cacheKbWanted}`);
          cacheKb = cacheKbWanted;
        }
        const version = store.othersVersion();
        const looks = version === lastVersion ? quietLooks + 1 : 0;
        if (looks % MAPPED_FOR_LOOKS === 0) db.pragma('mmap_size = 0');
        [quietLooks, lastVersion] = [looks, version];
        if (looks > 0 && looks % MAPPED_FOR_LOOKS === 0 && size >= minMapped) db.pragma(`mmap_size = ${MAX_MAPPED}`);
      } catch {
        // A statement is being read, or another process has locked the file. The next call will do it.
      }
    },
    othersVersion: () => store.prepare('SELECT data_version FROM pragma_data_version').pluck().get() as number,
    get isOpen() {
      return db.open;
    },
    close: () => db.close(),
  };
  return store;
}

function finish<T>(db: Database.Database, file: string, work: () => T): T {
  try {
    const result = work();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK');
    throw storageError(error, file);
  }
}

/**
 * Begins a write transaction. It tries every half millisecond, so that even a short gap between other writes is used.
 */
function beginImmediate(db: Database.Database, file: string): void {
  try {
    retryWhileBusy(() => db.exec('BEGIN IMMEDIATE'));
  } catch (error) {
    throw storageError(error, file);
  }
}

/**
 * Repeats `attempt` while another connection blocks it; in between, the whole thread sleeps for half a millisecond.
 * SQLite does not call its own busy handler everywhere: not when a file changes to WAL, nor when the last connection to
 * close removes the log.
 * @throws EngineError `unavailable` after 5 seconds; any other error of `attempt` as it is
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

/** How often and how long this thread has waited for locks of other connections since it began. */
export interface BusyTotals {
  /** Number of repeated attempts to get a lock; the first attempt of each wait is not counted. */
  readonly retries: number;
  readonly waitedMs: number;
  /** Number of waits that ended with `unavailable`. */
  readonly timeouts: number;
}

const busy = { retries: 0, waitedMs: 0, timeouts: 0 };

/** Returns how often and how long this thread has waited for locks so far: a copy, which does not change afterwards. */
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
