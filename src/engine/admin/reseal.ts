/** Makes copies of databases with another key, or none, than the original. */

import fs from 'node:fs';
import path from 'node:path';
import { EngineError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import type { FileKey } from '../find-file-key.ts';
import { requireUnused } from '../store/check-database.ts';
import { changeKey, openDatabase, openForSealing } from '../store/open-database.ts';
import { storageError } from '../store/storage-errors.ts';

/**
 * Copies a database into the empty file `to` as one snapshot, even while it is being written, and gives the copy its
 * key.
 * @param fromKey key of `from`, null for an unencrypted file; `toKey` is that of the copy
 * @throws EngineError what `openDatabase` throws; `storage_full`
 */
export function copyWithKey(from: string, fromKey: FileKey | null, to: string, toKey: FileKey | null): void {
  try {
    const source = openForSealing(from, fromKey);
    try {
      source.prepare('VACUUM INTO ?').run(to);
    } finally {
      source.close();
    }
    if (isSameKey(fromKey, toKey)) return;
    const copy = openForSealing(to, fromKey);
    try {
      changeKey(copy, toKey);
    } finally {
      copy.close();
    }
  } catch (error) {
    throw storageError(error);
  }
}

/**
 * Encrypts a database with another key, or decrypts it if `toKey` is null: a copy is made and compared (`compare`), and
 * replaces the file in one step. If that is interrupted, the file is completely the old one or completely the new one.
 * No process may have the file open, or write to it before it is replaced.
 * @param change work on the copy before it is compared, such as wrapping its keys anew
 * @throws EngineError `conflict` if a process has the file open at the beginning or at the end, or has written to it
 *   meanwhile; `internal` if the copy differs; `unprocessable` if the file or the copy is damaged; what `copyWithKey`
 *   and `change` throw
 */
export async function resealFile(
  file: string,
  fromKey: FileKey | null,
  toKey: FileKey | null,
  change: (copy: string) => void = () => {},
): Promise<void> {
  requireUnused(file, fromKey);
  const before = readFirstPage(file);
  const copy = `${file}.sealing`;
  try {
    fs.rmSync(copy, { force: true });
    fs.closeSync(fs.openSync(copy, 'wx', 0o600));
    copyWithKey(file, fromKey, copy, toKey);
    change(copy);
    compare(file, fromKey, copy, toKey);
    syncToDisk(copy);
    await failpoint('before-reseal');
    // A program that embeds the engine takes no lock, and may have written to the file since it was copied.
    requireUnused(file, fromKey);
    if (!readFirstPage(file).equals(before))
      throw new EngineError('conflict', `another process wrote to ${path.basename(file)}: stop all, and begin again`);
    fs.renameSync(copy, file);
    syncToDisk(path.dirname(file));
    await failpoint('after-reseal');
  } finally {
    for (const suffix of ['', '-wal', '-shm']) fs.rmSync(copy + suffix, { force: true });
  }
}

/**
 * Reads the beginning of a database, which each commit changes that is in no log: it has the counter of changes, and of
 * an encrypted page another nonce.
 */
function readFirstPage(file: string): Buffer {
  const page = Buffer.alloc(4_096);
  const handle = fs.openSync(file, 'r');
  try {
    fs.readSync(handle, page, 0, page.length, 0);
  } finally {
    fs.closeSync(handle);
  }
  return page;
}

function isSameKey(one: FileKey | null, other: FileKey | null): boolean {
  if (one === null || other === null) return one === other;
  return one.cipher === other.cipher && Buffer.compare(one.bytes, other.bytes) === 0;
}

/**
 * Compares the copy with the file. Throws EngineError `internal` unless both have the same schema version and as many
 * rows in each table, and `unprocessable` if the file or the copy is damaged.
 */
function compare(file: string, fromKey: FileKey | null, copy: string, toKey: FileKey | null): void {
  const [before, after] = [describeContents(file, fromKey), describeContents(copy, toKey)];
  if (before === after) return;
  throw new EngineError(
    'internal',
    `the copy of ${path.basename(file)} is not equal to it; the file is left as it was`,
  );
}

/**
 * Checks the integrity of a database, and returns its schema version and its tables with their numbers of rows, as
 * JSON.
 * @throws EngineError `unprocessable` if it is damaged
 */
function describeContents(file: string, key: FileKey | null): string {
  const db = openDatabase(file, { key, readonly: true });
  try {
    const problem = db.pragma('integrity_check(1)', { simple: true }) as string;
    if (problem !== 'ok') throw new EngineError('unprocessable', `${path.basename(file)} is damaged`);
    const tables = db
      .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name`)
      .pluck()
      .all() as string[];
    const counts = tables.map((name) => db.prepare(`SELECT count(*) FROM "${name}"`).pluck().get());
    return JSON.stringify([db.pragma('user_version'), tables, counts]);
  } finally {
    db.close();
  }
}

function syncToDisk(file: string): void {
  if (process.platform === 'win32') return; // Folders cannot be opened there.
  const handle = fs.openSync(file, 'r');
  try {
    fs.fsyncSync(handle);
  } finally {
    fs.closeSync(handle);
  }
}
