import fs from 'node:fs';
import path from 'node:path';
import type Database from 'better-sqlite3';
import { EngineError } from '../errors.ts';
import { isBusy, pathError } from './storage-errors.ts';
import { openDatabase } from './open-database.ts';
import { createPrivateFile } from './private-file.ts';

/** The lock of a process on its data folder, exclusive or shared. */
export interface InstanceLock {
  /** Releases the lock. A second call has no effect. */
  release(): void;
}

/**
 * Longest time that a process waits for a shared lock (ms). Another process that tries in vain to take the exclusive
 * lock blocks it only for a moment.
 */
const PASSING_TRY_MS = 1_000;

/**
 * Open connections that hold locks. They are referenced here, since a connection that is garbage-collected is closed
 * and loses its lock.
 */
const held = new Set<Database.Database>();

/**
 * Takes the exclusive lock of a data folder. Its holder then knows that the owners of all job leases there are dead.
 * The lock is an open exclusive transaction on an empty SQLite file. The kernel releases it however the process ends,
 * so no stale lock remains.
 * @param file file of the lock; `<file>.pid` beside it is only for the error message, which names the holder
 * @throws EngineError `conflict` while another process, or another lock of this process, holds or shares the lock;
 *   `invalid` for a path where no file can be
 */
export function acquireInstanceLock(file: string): InstanceLock {
  const pidFile = `${file}.pid`;
  const db = openLock(file, 0);
  try {
    db.exec('BEGIN EXCLUSIVE');
    fs.writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 });
  } catch (error) {
    const isShared = isBusy(error) && canShare(db);
    db.close();
    throw isShared ? shared(file, error) : isBusy(error) ? inUse(file, error) : error;
  }
  return hold(db, () => fs.rmSync(pidFile, { force: true }));
}

/**
 * Takes a shared lock of a data folder, so that no process takes the exclusive lock meanwhile. Any number of processes,
 * such as the API and workers, may share it.
 * @param file file of the lock, as in `acquireInstanceLock`
 * @throws EngineError `conflict` while another process, or a lock of this process, holds it exclusively; `invalid` for
 *   a path where no file can be
 */
export function shareInstanceLock(file: string): InstanceLock {
  const db = openLock(file, PASSING_TRY_MS);
  try {
    beginShared(db);
  } catch (error) {
    db.close();
    throw isBusy(error) ? inUse(file, error) : error;
  }
  return hold(db, () => {});
}

/**
 * Makes a lock of an open connection, and keeps the connection until the lock is released.
 * @param beforeRelease called while the lock is still held, to remove files that the next holder may use afterwards
 */
function hold(db: Database.Database, beforeRelease: () => void): InstanceLock {
  held.add(db);
  return {
    release() {
      if (!held.delete(db)) return;
      beforeRelease();
      db.close();
    },
  };
}

/**
 * Begins a shared lock: SQLite keeps its shared lock from the first read of a transaction until the transaction ends.
 */
function beginShared(db: Database.Database): void {
  db.exec('BEGIN');
  db.prepare('SELECT count(*) FROM sqlite_schema').get();
}

function canShare(db: Database.Database): boolean {
  try {
    beginShared(db);
    return true;
  } catch {
    return false;
  }
}

function openLock(file: string, timeout: number): Database.Database {
  try {
    createPrivateFile(file);
    return openDatabase(file, { timeout, key: null }); // It stays empty, so there is nothing to seal.
  } catch (error) {
    throw pathError(error, file);
  }
}

function shared(file: string, cause: unknown): EngineError {
  return new EngineError(
    'conflict',
    `an API or workers use the data in ${path.dirname(file)}: stop them first, or set OM_DB_PATH to another file ` +
      '(`serve` runs beside them with their REDIS_URL)',
    { cause },
  );
}

function inUse(file: string, cause: unknown): EngineError {
  const pid = readPid(`${file}.pid`);
  return new EngineError(
    'conflict',
    `another Cairn process${pid === undefined ? '' : ` (pid ${pid})`} uses the data in ${path.dirname(file)}: ` +
      'stop it first, or set OM_DB_PATH to another file',
    { cause },
  );
}

/**
 * Reads the process id in the file beside a lock; undefined if there is no such file, or it holds no number. A process
 * that was killed leaves its id there.
 */
function readPid(pidFile: string): number | undefined {
  try {
    const pid = Number.parseInt(fs.readFileSync(pidFile, 'utf8'), 10);
    return pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}
