import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { hasUpload } from '../documents/uploads.ts';
import { EngineError } from '../errors.ts';
import { listUnreadUploads } from '../store/documents.ts';
import { BUSY_TIMEOUT_MS, openForLook, openStore, storageError } from '../store/open-store.ts';
import { createPrivateFile } from '../store/private-file.ts';
import { checkDatabase, requireUnused, type DatabaseSummary } from '../store/check-database.ts';

/** Told after each step of a copy how many bytes are done, of how many. */
export type CopyProgress = (done: number, total: number) => void;

export interface BackedUp extends DatabaseSummary {
  /** Documents that had not been read. Their files stand outside of the database and are not in the copy. */
  readonly unread: number;
}

/** Some milliseconds of work, so that a bar moves and a signal is heard. */
const STEP_PAGES = 2_000;

/**
 * Copies a tenant's file as of now, also while it is being written, into one file that needs nothing beside it, and checks the
 * copy from end to end. What stands at `to` is a finished backup or nothing.
 * @throws EngineError `not_found` without a file at `from`, `conflict` if `to` exists, `unprocessable` for a damaged file,
 *         `storage_full`
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

export interface Restored extends DatabaseSummary {
  /** Where the replaced file is now; null if there was none. */
  readonly kept: string | null;
  /** Documents that had not been read and whose files are not here: the first worker ends them as failed, with `upload_missing`. */
  readonly lost: number;
}

/**
 * Puts a backup in the place of a tenant's file. The copy is checked and brought to today's schema before anything is replaced, and
 * the replaced file stays beside it. Call with the instance lock held.
 * @param now names the kept file
 * @throws EngineError as `checkDatabase` does for the backup; `unprocessable` for one of a newer Cairn; `conflict` if a process has
 *         the file at `to` open
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

/** The files that documents of a database have yet to be read from. */
function listUnread(file: string): string[] {
  const store = openForLook(file);
  try {
    return store === undefined ? [] : listUnreadUploads(store);
  } finally {
    store?.close();
  }
}

/** In WAL mode a copy would need files beside it to be read. */
function leaveLogMode(file: string): void {
  const db = new Database(file);
  try {
    db.pragma('journal_mode = DELETE');
  } finally {
    db.close();
  }
}

/** Gives the file a second name, so that there is no moment without one; its log, if it was too damaged to fold in, moves along. */
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

/** Makes the new name as durable as the bytes. */
function syncFolder(file: string): void {
  if (process.platform === 'win32') return; // Folders cannot be opened there.
  const folder = fs.openSync(path.dirname(file), 'r');
  try {
    fs.fsyncSync(folder);
  } finally {
    fs.closeSync(folder);
  }
}
