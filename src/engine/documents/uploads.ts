/**
 * Files that wait to be read, in a folder beside the tenant's database. `tenantPath` is the path of the database file;
 * `name` is a file's name in the folder, as `createUploadFile` gave it. The service chooses their names; the caller's
 * file name is data.
 */

import fs from 'node:fs';
import path from 'node:path';
import { v7 as uuidv7 } from 'uuid';
import { EngineError } from '../errors.ts';
import { createPrivateFile } from '../store/private-file.ts';
import { DocumentError } from './document-error.ts';

const NAME = /^[0-9a-f-]{36}\.upload$/;
/**
 * Time after which a file that no document names counts as left by a killed process: no upload takes longer than 15
 * minutes.
 */
const ABANDONED_MS = 1_200_000;

/** Returns the path of the folder for a tenant's waiting files, by the path of the tenant's database file. */
export function uploadsFolder(tenantPath: string): string {
  return `${tenantPath.replace(/\.(sqlite3?|db)$/, '')}.uploads`;
}

/**
 * Number of bytes that documents leave free on the disk, or an eighth of the disk if that is less: without room for its
 * log SQLite cannot even delete.
 */
const RESERVE_BYTES = 64 * 1024 * 1024;
/**
 * Room that reading a file takes, in sizes of the file: its chunks, their words, and more than both their vectors (of
 * 768 dimensions).
 */
const READING_SIZES = 5;

/**
 * Checks that the disk of a tenant's database has room to store and to read a file of `bytes` bytes.
 * @throws EngineError `storage_full` if that would leave less than the reserve of 64 MiB (of a small disk, an eighth)
 */
export function requireRoomToTakeIn(tenantPath: string, bytes: number): void {
  requireRoom(tenantPath, (1 + READING_SIZES) * bytes);
}

/**
 * Checks that the disk of a tenant's database has room to read a file of `bytes` bytes that is stored already.
 * @throws EngineError `storage_full` if that would leave less than the reserve of 64 MiB (of a small disk, an eighth)
 */
export function requireRoomToRead(tenantPath: string, bytes: number): void {
  requireRoom(tenantPath, READING_SIZES * bytes);
}

function requireRoom(tenantPath: string, bytes: number): void {
  const { bavail, blocks, bsize } = fs.statfsSync(path.dirname(tenantPath));
  if (blocks === 0) return; // The file system does not tell its size.
  if (bavail * bsize - bytes < Math.min(RESERVE_BYTES, (blocks * bsize) / 8))
    throw new EngineError('storage_full', 'the disk is too full to take in documents');
}

/**
 * Creates an empty file in a tenant's folder of waiting files that only this process's user may read. Returns its new
 * name in the folder and its path.
 */
export function createUploadFile(tenantPath: string): { name: string; path: string } {
  const name = `${uuidv7()}.upload`;
  const folder = uploadsFolder(tenantPath);
  if (!fs.existsSync(folder)) makeFolder(folder);
  const file = path.join(folder, name);
  createPrivateFile(file);
  return { name, path: file };
}

/** Makes a folder and syncs its parent to disk: else a power cut would take the folder and the files in it. */
function makeFolder(folder: string): void {
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  const parent = fs.openSync(path.dirname(folder), 'r');
  try {
    fs.fsyncSync(parent);
  } finally {
    fs.closeSync(parent);
  }
}

/**
 * Reads the waiting file of a name in the tenant's folder.
 * @throws DocumentError `upload_missing` if it cannot be read
 */
export function readUpload(tenantPath: string, name: string): Promise<Buffer> {
  return fs.promises.readFile(path.join(uploadsFolder(tenantPath), name)).catch((error: unknown) => {
    throw new DocumentError('upload_missing', 'its file is gone; hand the document in again', { cause: error });
  });
}

/** Tells whether a waiting file is there. */
export function hasUpload(tenantPath: string, name: string): boolean {
  return fs.existsSync(path.join(uploadsFolder(tenantPath), name));
}

/** Removes a waiting file, if it is there. Names that `createUploadFile` does not make are ignored. */
export function removeUpload(tenantPath: string, name: string): void {
  if (NAME.test(name)) fs.rmSync(path.join(uploadsFolder(tenantPath), name), { force: true });
}

/**
 * Removes waiting files that no document names and nobody has written to for twenty minutes.
 * @param named names (not paths) of the files that documents still need
 * @param now   current time, Unix ms
 * @returns the number of files removed
 */
export function sweepUploads(tenantPath: string, named: ReadonlySet<string>, now: number): number {
  const folder = uploadsFolder(tenantPath);
  const isAbandoned = (name: string) => {
    const stats = NAME.test(name) ? fs.statSync(path.join(folder, name), { throwIfNoEntry: false }) : undefined;
    return stats !== undefined && now - stats.mtimeMs > ABANDONED_MS;
  };
  const abandoned = listNames(folder).filter((name) => !named.has(name) && isAbandoned(name));
  for (const name of abandoned) removeUpload(tenantPath, name);
  return abandoned.length;
}

/** Removes a tenant's folder of waiting files with all of them. */
export function removeUploads(tenantPath: string): void {
  fs.rmSync(uploadsFolder(tenantPath), { recursive: true, force: true });
}

function listNames(folder: string): string[] {
  return fs.existsSync(folder) ? fs.readdirSync(folder) : [];
}
