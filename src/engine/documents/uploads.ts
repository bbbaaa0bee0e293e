import fs from 'node:fs';
import path from 'node:path';
import { v7 as uuidv7 } from 'uuid';
import { EngineError } from '../errors.ts';
import { createPrivateFile } from '../store/private-file.ts';
import { DocumentError } from './document-error.ts';

/** Files that wait to be read, in a folder beside the tenant's own file. Their names are ours; the caller's name is data. */

const NAME = /^[0-9a-f-]{36}\.upload$/;
/** A file that no document names for so long was left by a process that was killed: no upload takes longer than 15 minutes. */
const ABANDONED_MS = 1_200_000;

export function uploadsFolder(tenantPath: string): string {
  return `${tenantPath.replace(/\.(sqlite3?|db)$/, '')}.uploads`;
}

/** What documents leave free on the disk (bytes), or an eighth of a small one: without room for its log SQLite cannot even delete. */
const RESERVE_BYTES = 64 * 1024 * 1024;
/** What reading a file takes, in sizes of the file: its chunks, their words, and more than both their vectors (of 768 dimensions). */
const READING_SIZES = 5;

/** @throws EngineError `storage_full` where a file of so many bytes could be taken in but not read */
export function requireRoomToTakeIn(tenantPath: string, bytes: number): void {
  requireRoom(tenantPath, (1 + READING_SIZES) * bytes);
}

/** @throws EngineError `storage_full` where reading a file of so many bytes would take the last of the disk */
export function requireRoomToRead(tenantPath: string, bytes: number): void {
  requireRoom(tenantPath, READING_SIZES * bytes);
}

function requireRoom(tenantPath: string, bytes: number): void {
  const { bavail, blocks, bsize } = fs.statfsSync(path.dirname(tenantPath));
  if (blocks === 0) return; // A file system that does not say.
  if (bavail * bsize - bytes < Math.min(RESERVE_BYTES, (blocks * bsize) / 8))
    throw new EngineError('storage_full', 'the disk is too full to take in documents');
}

/** A new, empty file that only this user may read. */
export function createUploadFile(tenantPath: string): { name: string; path: string } {
  const name = `${uuidv7()}.upload`;
  const folder = uploadsFolder(tenantPath);
  if (!fs.existsSync(folder)) makeFolder(folder);
  const file = path.join(folder, name);
  createPrivateFile(file);
  return { name, path: file };
}

/** On disk for good, like the files in it: else a power cut takes them all. */
function makeFolder(folder: string): void {
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  const parent = fs.openSync(path.dirname(folder), 'r');
  try {
    fs.fsyncSync(parent);
  } finally {
    fs.closeSync(parent);
  }
}

/** @throws DocumentError `upload_missing` */
export function readUpload(tenantPath: string, name: string): Promise<Buffer> {
  return fs.promises.readFile(path.join(uploadsFolder(tenantPath), name)).catch((error: unknown) => {
    throw new DocumentError('upload_missing', 'its file is gone; hand the document in again', { cause: error });
  });
}

export function hasUpload(tenantPath: string, name: string): boolean {
  return fs.existsSync(path.join(uploadsFolder(tenantPath), name));
}

export function removeUpload(tenantPath: string, name: string): void {
  if (NAME.test(name)) fs.rmSync(path.join(uploadsFolder(tenantPath), name), { force: true });
}

/** Removes files that no document names and nobody has written to for twenty minutes. */
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

export function removeUploads(tenantPath: string): void {
  fs.rmSync(uploadsFolder(tenantPath), { recursive: true, force: true });
}

function listNames(folder: string): string[] {
  return fs.existsSync(folder) ? fs.readdirSync(folder) : [];
}
