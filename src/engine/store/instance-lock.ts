import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { EngineError } from '../errors.ts';
import { isBusy, pathError } from './open-store.ts';
import { createPrivateFile } from './private-file.ts';

export interface InstanceLock {
  /** May be called twice. */
  release(): void;
}

/** A connection that is garbage-collected closes and lets its lock go, so what is held is kept here. */
const held = new Set<Database.Database>();

/**
 * Makes this process the only one that serves a data folder. The lock is an open exclusive transaction on an empty SQLite file:
 * the kernel releases it however the process ends, so no stale lock is ever to be cleaned up.
 * @param file the lock's own file; `<file>.pid` beside it names the holder for the message and decides nothing
 * @throws EngineError `conflict` while another process, or another lock of this one, holds it
 */
export function acquireInstanceLock(file: string): InstanceLock {
  const pidFile = `${file}.pid`;
  const db = openLock(file);
  try {
    db.exec('BEGIN EXCLUSIVE');
    fs.writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 });
  } catch (error) {
    db.close();
    throw isBusy(error) ? inUse(file, pidFile, error) : error;
  }
  held.add(db);
  return {
    release() {
      if (!held.delete(db)) return;
      fs.rmSync(pidFile, { force: true }); // While the lock is held: afterwards the file may be the next holder's.
      db.close();
    },
  };
}

function openLock(file: string): Database.Database {
  try {
    createPrivateFile(file);
    return new Database(file, { timeout: 0 });
  } catch (error) {
    throw pathError(error, file);
  }
}

function inUse(file: string, pidFile: string, cause: unknown): EngineError {
  const pid = readPid(pidFile);
  return new EngineError(
    'conflict',
    `another Cairn process${pid === undefined ? '' : ` (pid ${pid})`} uses the data in ${path.dirname(file)}: ` +
      'stop it first, or set OM_DB_PATH to another file',
    { cause },
  );
}

/** The holder may have ended, or not have written its number yet. */
function readPid(pidFile: string): number | undefined {
  try {
    const pid = Number.parseInt(fs.readFileSync(pidFile, 'utf8'), 10);
    return pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}
