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
import { keyOfFile, type FileKey } from '../file-keys.ts';
import type { Encoder } from '../types.ts';
import { DocumentError } from './document-error.ts';
import { createSealer, isSealed, plainEncoder, unseal } from './sealed-bytes.ts';

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
 * @throws DocumentError `upload_missing` if it cannot be read, or was changed after it was sealed
 */
export async function readUpload(tenantPath: string, name: string): Promise<Buffer> {
  const stored = await fs.promises.readFile(path.join(uploadsFolder(tenantPath), name)).catch((error: unknown) => {
    throw new DocumentError('upload_missing', 'its file is gone; hand the document in again', { cause: error });
  });
  const key = keyOfFile(tenantPath);
  const bytes = key === null ? stored : unseal(key.bytes, name, stored);
  if (bytes !== undefined) return bytes;
  throw new DocumentError('upload_missing', 'its file was changed, or sealed with another key; hand it in again');
}

/** Bytes of a waiting file that are read at once. */
const READ_BYTES = 256 * 1024;

/**
 * Reads a part of a waiting file in pieces. Of a sealed file the whole is held in memory meanwhile.
 * @param part offsets in the file as it was sent; `end` is excluded
 * @throws DocumentError as `readUpload`, for a sealed file
 */
export async function* readUploadPart(
  tenantPath: string,
  name: string,
  { start, end }: { readonly start: number; readonly end: number },
): AsyncGenerator<Buffer> {
  if (start === end) return;
  if (keyOfFile(tenantPath) === null) {
    const file = path.join(uploadsFolder(tenantPath), name);
    yield* fs.createReadStream(file, { start, end: end - 1, highWaterMark: READ_BYTES }) as AsyncIterable<Buffer>;
    return;
  }
  const bytes = (await readUpload(tenantPath, name)).subarray(start, end);
  for (let at = 0; at < bytes.length; at += READ_BYTES) yield bytes.subarray(at, at + READ_BYTES);
}

/** Makes what turns the bytes of a waiting file into what is stored: sealed if the tenant's data is. */
export function createUploadEncoder(tenantPath: string, name: string): Encoder {
  const key = keyOfFile(tenantPath);
  return key === null ? plainEncoder : createSealer(key.bytes, name);
}

/**
 * Seals a tenant's waiting files with another key, or with null stores them in clear, one after the other. Files that
 * have that form already are left, so that it can be repeated after it was broken off.
 * @returns the number of files changed
 */
export function resealUploads(tenantPath: string, from: FileKey | null, to: FileKey | null): number {
  const folder = uploadsFolder(tenantPath);
  let changed = 0;
  for (const name of listNames(folder)) {
    const file = path.join(folder, name);
    if (name.endsWith('.sealing')) fs.rmSync(file);
    if (!NAME.test(name)) continue;
    const stored = fs.readFileSync(file);
    if (to === null ? !isSealed(stored) : unseal(to.bytes, name, stored) !== undefined) continue;
    const bytes = from === null ? stored : unseal(from.bytes, name, stored);
    if (bytes === undefined) continue; // It is damaged, and its document will fail.
    const encoder = to === null ? plainEncoder : createSealer(to.bytes, name);
    fs.writeFileSync(`${file}.sealing`, Buffer.concat([encoder.update(bytes), encoder.end()]), {
      mode: 0o600,
      flush: true,
    });
    fs.renameSync(`${file}.sealing`, file);
    changed += 1;
  }
  return changed;
}

/** Counts a tenant's waiting files, by whether they are sealed. */
export function countUploads(tenantPath: string): { readonly sealed: number; readonly clear: number } {
  const folder = uploadsFolder(tenantPath);
  const names = listNames(folder).filter((name) => NAME.test(name));
  const sealed = names.filter((name) => isSealed(fs.readFileSync(path.join(folder, name)))).length;
  return { sealed, clear: names.length - sealed };
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
