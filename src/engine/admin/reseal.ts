/** Copies of databases that have another key, or none, than the file they were made from. */

import fs from 'node:fs';
import path from 'node:path';
import { EngineError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import type { FileKey } from '../file-keys.ts';
import { requireUnused } from '../store/check-database.ts';
import { changeKey, openDatabase, openForSealing } from '../store/open-database.ts';
import { storageError } from '../store/storage-errors.ts';

/**
 * Copies a database into the empty file `to` as one snapshot, even while it is written, and gives the copy its key.
 * @param fromKey key of `from`, null for a file in clear; `toKey` is that of the copy
 * @throws EngineError as `openDatabase`; `storage_full`
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
 * Seals a database with another key, or with null stores it in clear: a copy is made and compared, and takes the name
 * of the file in one step. If that is broken off, the file is the old one or the new one, as a whole. No process may
 * have the file open.
 * @param change work on the copy before it is compared, such as wrapping its keys anew
 */
export async function resealFile(
  file: string,
  fromKey: FileKey | null,
  toKey: FileKey | null,
  change: (copy: string) => void = () => {},
): Promise<void> {
  requireUnused(file, fromKey);
  const copy = `${file}.sealing`;
  try {
    fs.rmSync(copy, { force: true });
    fs.closeSync(fs.openSync(copy, 'wx', 0o600));
    copyWithKey(file, fromKey, copy, toKey);
    change(copy);
    compare(file, fromKey, copy, toKey);
    syncToDisk(copy);
    await failpoint('before-reseal');
    fs.renameSync(copy, file);
    syncToDisk(path.dirname(file));
    await failpoint('after-reseal');
  } finally {
    for (const suffix of ['', '-wal', '-shm']) fs.rmSync(copy + suffix, { force: true });
  }
}

function isSameKey(one: FileKey | null, other: FileKey | null): boolean {
  if (one === null || other === null) return one === other;
  return one.cipher === other.cipher && Buffer.compare(one.bytes, other.bytes) === 0;
}

/** Throws EngineError `internal` unless the copy is sound and has as many rows in each table as the file. */
function compare(file: string, fromKey: FileKey | null, copy: string, toKey: FileKey | null): void {
  const [before, after] = [countRows(file, fromKey), countRows(copy, toKey)];
  if (before === after) return;
  throw new EngineError(
    'internal',
    `the copy of ${path.basename(file)} is not equal to it; the file is left as it was`,
  );
}

/** Checks a database, and returns its tables with their numbers of rows. */
function countRows(file: string, key: FileKey | null): string {
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
