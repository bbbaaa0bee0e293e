import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { hasUpload } from '../documents/uploads.ts';
import { EngineError } from '../errors.ts';
import { listUnreadUploads } from '../store/uploads.ts';
import { BUSY_TIMEOUT_MS, openForLook, openStore } from '../store/open-store.ts';
import { storageError } from '../store/storage-errors.ts';
import { createPrivateFile } from '../store/private-file.ts';
import { checkDatabase, requireUnused, type DatabaseSummary } from '../store/check-database.ts';

/** Called after each step of a copy with the number of bytes that are done and of all bytes. */
export type CopyProgress = (done: number, total: number) => void;

/** What a backup holds. */
export interface BackedUp extends DatabaseSummary {
  /** Number of uploaded documents that were not read yet. Their files are outside of the database, not in the copy. */
  readonly unread: number;
}

/** Database pages copied in one step: some milliseconds, so that a progress bar moves and a signal is noticed. */
const STEP_PAGES = 2_000;

/**
 * Copies a tenant's file as it is now, even while it is written, into one file that needs no other beside it, and
 * checks the whole copy. Afterwards `to` is either a complete backup or does not exist. `from` and `to` are paths.
 * @throws EngineError `not_found` without a file at `from`; `conflict` if `to` exists; `unprocessable` if the copy is
 *   damaged or no tenant's file; `storage_full`
 */
export async function backupDatabase({
  from,
  to,
  onProgress,
}: {
  readonly from: string;
  readonly to: string;
  readonly onProgress?: CopyProgress;
}): Promise<BackedUp> {
  if (fs.existsSync(to)) throw new EngineError('conflict', `${to} exists: choose another name, or remove it`);
  const partial = `${to}.partial`;
  try {
    await copyDatabase({ from, to: partial, onProgress });
    const summary = checkDatabase(partial);
    const unread = listUnread(partial).length;
    fs.renameSync(partial, to);
    syncFolder(to);
    return { ...summary, unread };
  } finally {
    fs.rmSync(partial, { force: true });
  }
}

/** Contents of the restored file, and what became of the file that it replaced. */
export interface Restored extends DatabaseSummary {
  /** New path of the replaced file; null if there was none. */
  readonly kept: string | null;
  /** Number of unread documents whose files are gone. The first worker ends them as failed, with `upload_missing`. */
  readonly lost: number;
}

/**
 * Replaces the tenant's file at `to`, if there is one, by a copy of the backup at `from`. The copy is checked and
 * migrated to the current schema before anything is replaced, and the replaced file stays beside it under a new name.
 * The caller holds the instance lock.
 * @param options.now time for the name of the replaced file, Unix ms
 * @throws EngineError the errors of `checkDatabase` for the backup; `unprocessable` for a backup of a newer Cairn;
 *   `conflict` if a process has the file at `to` open; `storage_full`
 */
export async function restoreDatabase({
  from,
  to,
  now,
  onProgress,
}: {
  readonly from: string;
  readonly to: string;
  readonly now: number;
  readonly onProgress?: CopyProgress;
}): Promise<Restored> {
  checkDatabase(from);
  const incoming = `${to}.restoring`;
  try {
    await copyDatabase({ from, to: incoming, onProgress });
    openStore(incoming, { role: 'worker' }).close();
    const summary = checkDatabase(incoming);
    requireUnused(to);
    const lost = listUnread(incoming).filter((upload) => !hasUpload(to, upload)).length;
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
  to,
  onProgress,
}: {
  from: string;
  to: string;
  onProgress: CopyProgress | undefined;
}): Promise<void> {
  if (!fs.existsSync(from)) throw new EngineError('not_found', `no file ${from}`);
  fs.rmSync(to, { force: true });
  createPrivateFile(to);
  const source = new Database(from, { readonly: true, timeout: BUSY_TIMEOUT_MS });
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

/** Lists the names of the uploaded files that the database at `file` has yet to read. */
function listUnread(file: string): string[] {
  const store = openForLook(file);
  try {
    return store === undefined ? [] : listUnreadUploads(store);
  } finally {
    store?.close();
  }
}

/** Switches the database at `file` out of WAL mode, in which it could not be read without files beside it. */
function leaveLogMode(file: string): void {
  const db = new Database(file);
  try {
    db.pragma('journal_mode = DELETE');
  } finally {
    db.close();
  }
}

/**
 * Gives the file a second name, so that there is a file at every moment. A log that was too damaged to be merged moves
 * to that name.
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
