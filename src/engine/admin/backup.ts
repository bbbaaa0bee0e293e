import fs from 'node:fs';
import path from 'node:path';
import { hasUpload } from '../documents/uploads.ts';
import { NOT_MOVED } from '../control/control-file.ts';
import { isOfSameTenant } from '../control/key-file.ts';
import { EngineError } from '../errors.ts';
import { keyOfFile, type FileKey } from '../find-file-key.ts';
import { listUnreadUploads } from '../store/uploads.ts';
import { BUSY_TIMEOUT_MS, openForLook, openStore } from '../store/open-store.ts';
import { renewFeed } from '../store/events.ts';
import { openDatabase } from '../store/open-database.ts';
import { storageError } from '../store/storage-errors.ts';
import { copyWithKey } from './reseal.ts';
import { checkDatabase, requireUnused, type DatabaseSummary } from '../store/check-database.ts';
import { unfinishedName } from './unfinished-copy.ts';

/**
 * Called after each step of a copy with the number of bytes that are done and of all bytes. If the file or its copy is
 * encrypted, it is called once, after the copy. The checks of the copy follow without a call.
 */
export type CopyProgress = (done: number, total: number) => void;

/** What a backup contains. */
export interface BackedUp extends DatabaseSummary {
  /**
   * Number of uploaded documents that have not been read yet. Their files are outside of the database and so not in the
   * copy.
   */
  readonly unread: number;
}

/**
 * Number of database pages copied in one step: some milliseconds, so that a progress bar moves and a signal is noticed.
 */
const STEP_PAGES = 2_000;

/**
 * Copies a tenant's file as it is now, even while it is being written, into a single file, and checks the whole copy.
 * The copy of an encrypted file is encrypted with the same key. If `wrappedKey` is given (the data key of the file,
 * encrypted with the master key), it is written beside the copy, so that this can be restored without the control
 * database. Afterwards `to` is either a complete backup or does not exist. `from` and `to` are paths.
 * @throws EngineError `not_found` if there is no file at `from`; `conflict` if `to` exists, or a file with the name of
 *   its key file that is not this tenant's; `unprocessable` if the copy is damaged or no tenant's file; `unavailable`
 *   if another process locks the file; `storage_full`
 */
export async function backupDatabase({
  from,
  to,
  wrappedKey,
  onProgress,
}: {
  readonly from: string;
  readonly to: string;
  readonly wrappedKey?: string | null;
  readonly onProgress?: CopyProgress;
}): Promise<BackedUp> {
  if (fs.existsSync(to)) throw new EngineError('conflict', `${to} exists: choose another name, or remove it`);
  const key = keyOfFile(from);
  const partial = unfinishedName(to);
  try {
    await copyDatabase({ from, fromKey: key, to: partial, toKey: key, onProgress });
    const summary = checkDatabase(partial, key);
    const unread = listUnread(partial, key).length;
    if (wrappedKey) writeKeyFile(keyFileOf(to), wrappedKey);
    giveName(partial, to);
    return { ...summary, unread };
  } catch (error) {
    throw fullDiskError(error);
  } finally {
    fs.rmSync(partial, { force: true });
  }
}

/**
 * Copies the control database as `backupDatabase` copies a tenant's file. The copy of an encrypted one is encrypted
 * with the same key, which is derived from the master key.
 * @returns ids of the tenants in the copy, without those that were moved away
 * @throws EngineError `not_found` if there is no file at `from`; `conflict` if `to` exists; `unprocessable` if the copy
 *   is damaged; `unavailable` if another process locks the file; `storage_full`
 */
export async function backupControl(from: string, to: string): Promise<string[]> {
  if (fs.existsSync(to)) throw new EngineError('conflict', `${to} exists: choose another name, or remove it`);
  const key = keyOfFile(from);
  const partial = unfinishedName(to);
  try {
    await copyDatabase({ from, fromKey: key, to: partial, toKey: key, onProgress: undefined });
    const tenants = checkControl(partial, key);
    giveName(partial, to);
    return tenants;
  } catch (error) {
    throw fullDiskError(error);
  } finally {
    fs.rmSync(partial, { force: true });
  }
}

/**
 * Writes the key file of a backup, whole or not at all. It replaces what a process left that died before the backup had
 * its name: the key of the same tenant, or nothing.
 * @throws EngineError `conflict` if another file has the name
 */
function writeKeyFile(file: string, wrappedKey: string): void {
  const left = fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
  if (left !== '' && !isOfSameTenant(left, wrappedKey))
    throw new EngineError(
      'conflict',
      `${file} exists, and is not this tenant's key: choose another name, or remove it`,
    );
  const partial = unfinishedName(file);
  try {
    fs.writeFileSync(partial, wrappedKey, { mode: 0o600, flag: 'wx', flush: true });
    fs.renameSync(partial, file);
  } finally {
    fs.rmSync(partial, { force: true });
  }
}

/** Turns the file system's error about a full disk into an EngineError `storage_full`. Returns others as they are. */
function fullDiskError(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error;
  return new EngineError('storage_full', 'the disk has no room for the backup', { cause: error });
}

/**
 * Checks the integrity of a whole control database.
 * @returns ids of its tenants, without those that were moved away
 * @throws EngineError `unprocessable` if it is damaged
 */
function checkControl(file: string, key: FileKey | null): string[] {
  const db = openDatabase(file, { readonly: true, key });
  try {
    const problem = db.pragma('integrity_check(1)', { simple: true }) as string;
    if (problem !== 'ok') throw new EngineError('unprocessable', 'the control database is damaged');
    return db.prepare(`SELECT id FROM tenants WHERE ${NOT_MOVED}`).pluck().all() as string[];
  } catch (error) {
    throw storageError(error);
  } finally {
    db.close();
  }
}

/**
 * Syncs a complete copy to disk and renames it to its final name, so that even after a power cut a file of that name is
 * complete.
 */
function giveName(partial: string, to: string): void {
  const handle = fs.openSync(partial, 'r+');
  try {
    fs.fsyncSync(handle);
  } finally {
    fs.closeSync(handle);
  }
  fs.renameSync(partial, to);
  syncFolder(to);
}

/** Result of a restore: size and number of memories of the restored file, and what was replaced or is missing. */
export interface Restored extends DatabaseSummary {
  /** New path of the replaced file; null if there was none. */
  readonly kept: string | null;
  /**
   * Number of unread documents whose uploaded files are missing. The first worker marks them as failed, with
   * `upload_missing`.
   */
  readonly lost: number;
}

/**
 * Replaces the tenant's file at `to`, if there is one, by a copy of the backup at `from`. The copy is checked and
 * migrated to the current schema before anything is replaced, and the replaced file stays beside it under a new name.
 * The change feed begins anew, so that cursors of readers become invalid. The caller holds the instance lock.
 * @param options.fromKey key of the backup; null, the default, for an unencrypted one. The restored file has the key of
 *   `to`
 * @param options.now time for the name of the replaced file, Unix ms
 * @throws EngineError the errors of `checkDatabase` for the backup; `unprocessable` for a backup of a newer Cairn;
 *   `conflict` if a process has the file at `to` open; `storage_full`
 */
export async function restoreDatabase({
  from,
  to,
  now,
  fromKey = null,
  onProgress,
}: {
  readonly fromKey?: FileKey | null;
  readonly from: string;
  readonly to: string;
  readonly now: number;
  readonly onProgress?: CopyProgress;
}): Promise<Restored> {
  const key = keyOfFile(to);
  checkDatabase(from, fromKey);
  const incoming = `${to}.restoring`;
  try {
    fs.rmSync(incoming, { force: true });
    await copyDatabase({ from, fromKey, to: incoming, toKey: key, onProgress });
    const store = openStore(incoming, { role: 'worker', key });
    store.write(() => renewFeed(store));
    store.close();
    const summary = checkDatabase(incoming, key);
    requireUnused(to);
    const lost = listUnread(incoming, key).filter((upload) => !hasUpload(to, upload)).length;
    const kept = keep(to, now);
    fs.renameSync(incoming, to);
    syncFolder(to);
    return { ...summary, kept, lost };
  } finally {
    for (const file of [incoming, `${incoming}-wal`, `${incoming}-shm`]) fs.rmSync(file, { force: true });
  }
}

async function copyDatabase({
  from,
  fromKey,
  to,
  toKey,
  onProgress,
}: {
  from: string;
  fromKey: FileKey | null;
  to: string;
  toKey: FileKey | null;
  onProgress: CopyProgress | undefined;
}): Promise<void> {
  if (!fs.existsSync(from)) throw new EngineError('not_found', `no file ${from}`);
  fs.closeSync(fs.openSync(to, 'wx', 0o600)); // Fails if there is such a file.
  if (fromKey !== null || toKey !== null) {
    copyWithKey(from, fromKey, to, toKey);
    const { size } = fs.statSync(to);
    onProgress?.(size, size);
    return;
  }
  const source = openDatabase(from, { readonly: true, timeout: BUSY_TIMEOUT_MS, key: null });
  try {
    const pageBytes = source.pragma('page_size', { simple: true }) as number;
    // One snapshot for the whole copy: otherwise every commit of another process would make it start again.
    source.exec('BEGIN; SELECT 1 FROM sqlite_schema');
    const { totalPages } = await source.backup(to, {
      progress({ totalPages, remainingPages }) {
        onProgress?.((totalPages - remainingPages) * pageBytes, totalPages * pageBytes);
        return STEP_PAGES;
      },
    });
    onProgress?.(totalPages * pageBytes, totalPages * pageBytes);
  } catch (error) {
    throw storageError(error);
  } finally {
    source.close();
  }
  leaveLogMode(to);
}

/** Returns the path of the file with the wrapped key of an encrypted backup. */
export function keyFileOf(backup: string): string {
  return `${backup}.key`;
}

/**
 * Lists the names of the uploaded files that wait to be read, from the database at `file`. Those of failed readings are
 * left out.
 */
function listUnread(file: string, key: FileKey | null): string[] {
  const store = openForLook(file, key);
  try {
    return store === undefined ? [] : listUnreadUploads(store);
  } finally {
    store?.close();
  }
}

/** Takes the database at `file` out of WAL mode, so that it can be read without `-wal` and `-shm` files beside it. */
function leaveLogMode(file: string): void {
  const db = openDatabase(file, { key: null });
  try {
    db.pragma('journal_mode = DELETE');
  } finally {
    db.close();
  }
}

/**
 * Gives the file that is about to be replaced a second name (a hard link, or a copy where there are none), and renames
 * its `-wal` and `-shm` files to match. A file exists under the first name all the time.
 * @param now time for the second name, Unix ms
 * @returns the path with the second name; null if there is no file
 */
function keep(file: string, now: number): string | null {
  if (!fs.existsSync(file)) return null;
  const kept = `${file}.before-restore-${new Date(now).toISOString().replaceAll(/[:.]/g, '-')}`;
  try {
    fs.linkSync(file, kept);
  } catch {
    fs.copyFileSync(file, kept); // A file system without hard links.
  }
  for (const suffix of ['-wal', '-shm']) {
    if (fs.existsSync(file + suffix)) fs.renameSync(file + suffix, kept + suffix);
  }
  return kept;
}

/** Syncs the folder of a file to disk, so that the file's new name is as durable as its bytes. */
function syncFolder(file: string): void {
  if (process.platform === 'win32') return; // Folders cannot be opened there.
  const folder = fs.openSync(path.dirname(file), 'r');
  try {
    fs.fsyncSync(folder);
  } finally {
    fs.closeSync(folder);
  }
}
