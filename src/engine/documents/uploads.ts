/**
 * The files of documents that wait to be read (uploads), in a folder beside the tenant's database file. With
 * OM_DATABASE_URL a file is there only while it arrives, and then waits in rows of the database
 * (`store/upload-parts.ts`). `tenantPath` is the path of the database file; `name` is a file's name in the folder,
 * which `createUploadFile` chose. The name that the caller gave is never part of a path.
 */

import fs from 'node:fs';
import path from 'node:path';
import { v7 as uuidv7 } from 'uuid';
import { EngineError } from '../errors.ts';
import { createPrivateFile } from '../store/private-file.ts';
import type { Store } from '../store/open-store.ts';
import { findUploadPart, hasPartsOf, hasUploadParts, PART_BYTES, type UploadPart } from '../store/upload-parts.ts';
import { keyOfFile, type FileKey } from '../find-file-key.ts';
import type { Encoder } from '../types.ts';
import { DocumentError } from './document-error.ts';
import { createSealer, isSealed, plainEncoder, unseal, unsealPart } from './sealed-bytes.ts';

const NAME = /^[0-9a-f-]{36}\.upload$/;
/**
 * Time since its last change (ms) after which a file that no document refers to counts as left behind by a killed
 * process: 20 minutes. An upload that arrives too slowly is given up within a minute or two, and a complete one soon
 * gets its document.
 */
const ABANDONED_MS = 1_200_000;

/**
 * Returns the path of the folder with a tenant's waiting files.
 * @param tenantPath path of the tenant's database file
 */
export function uploadsFolder(tenantPath: string): string {
  return `${tenantPath.replace(/\.(sqlite3?|db)$/, '')}.uploads`;
}

/**
 * Returns the path of a waiting file. A name may come from a restored database of a stranger, and could lead to any
 * file of the server.
 * @returns undefined for a name that `createUploadFile` cannot have made
 */
function findPath(tenantPath: string, name: string): string | undefined {
  return NAME.test(name) ? path.join(uploadsFolder(tenantPath), name) : undefined;
}

/**
 * Returns the path of a waiting file that is to be read.
 * @throws DocumentError `upload_missing` for a name that `createUploadFile` cannot have made
 */
function pathOf(tenantPath: string, name: string): string {
  return findPath(tenantPath, name) ?? throwGone(undefined);
}

/**
 * Number of bytes on the disk that must stay free when documents are stored, or an eighth of the disk if that is less:
 * without space for its log, SQLite cannot even delete.
 */
const RESERVE_BYTES = 64 * 1024 * 1024;
/**
 * Disk space that reading a file takes, as a multiple of the file's size: for its chunks, their words, and their
 * vectors (of 768 dimensions).
 */
const READING_SIZES = 5;

/**
 * Checks that the disk of a tenant's database has space to store and to read a file of `bytes` bytes, six times its
 * size, beside the `expected` bytes that other files still write there while they arrive. Nothing is checked on a file
 * system that does not report its size.
 * @throws EngineError `storage_full` if less than the reserve would be left: 64 MiB, or an eighth of a small disk
 */
export function requireRoomToTakeIn(
  tenantPath: string,
  { bytes, expected }: { readonly bytes: number; readonly expected: number },
): void {
  requireRoom(tenantPath, (1 + READING_SIZES) * bytes + expected);
}

/**
 * Checks that the disk of a tenant's database has space for the `expected` bytes that arriving files still write there.
 * Nothing is checked on a file system that does not report its size.
 * @throws EngineError `storage_full` if less than the reserve would be left: 64 MiB, or an eighth of a small disk
 */
export function requireRoomToGoOn(tenantPath: string, expected: number): void {
  requireRoom(tenantPath, expected);
}

/**
 * Checks that the disk of a tenant's database has space to read a stored file of `bytes` bytes: five times its size.
 * Nothing is checked on a file system that does not report its size.
 * @throws EngineError `storage_full` if less than the reserve would be left: 64 MiB, or an eighth of a small disk
 */
export function requireRoomToRead(tenantPath: string, bytes: number): void {
  requireRoom(tenantPath, READING_SIZES * bytes);
}

function requireRoom(tenantPath: string, bytes: number): void {
  let folder = path.dirname(tenantPath);
  // A tenant of a database has no file here, so its folder and those above may not be made yet.
  while (!fs.existsSync(folder)) folder = path.dirname(folder);
  const { bavail, blocks, bsize } = fs.statfsSync(folder);
  if (blocks === 0) return; // The file system does not tell its size.
  if (bavail * bsize - bytes < Math.min(RESERVE_BYTES, (blocks * bsize) / 8))
    throw new EngineError(
      'storage_full',
      'the disk is too full to take in documents: its rest is for files that are arriving, for adds and for deletes',
    );
}

/**
 * Creates an empty file in a tenant's folder of waiting files, and the folder if needed. Only the user of this process
 * may read the file. Returns its new name in the folder and its path.
 */
export function createUploadFile(tenantPath: string): { name: string; path: string } {
  const name = `${uuidv7()}.upload`;
  const folder = uploadsFolder(tenantPath);
  if (!fs.existsSync(folder)) makeFolder(folder);
  const file = path.join(folder, name);
  createPrivateFile(file);
  return { name, path: file };
}

/** Creates a folder and syncs its parent to disk; otherwise a power cut could remove the folder with its files. */
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
 * Reads a whole waiting file: from the tenant's folder, decrypted if the tenant's data is encrypted, or from its rows
 * in PostgreSQL.
 * @throws DocumentError `upload_missing` if it is gone, if the file in the folder cannot be read or decrypted, or if
 *   `createUploadFile` cannot have made its name; in PostgreSQL also the errors of the database
 */
export async function readUpload(store: Store, name: string): Promise<Buffer> {
  return hasUploadParts(store) ? readParts(store, name) : readFile(store.path, name);
}

function readParts(store: Store, name: string): Buffer {
  const parts: Buffer[] = [];
  for (let part = findUploadPart(store, name, 0); part !== undefined; part = findUploadPart(store, name, parts.length))
    parts.push(part);
  if (parts.length === 0) throw new DocumentError('upload_missing', 'its file is gone; hand the document in again');
  return Buffer.concat(parts);
}

/**
 * Reads a waiting file of the tenant's folder as it is on the disk, in parts of 256 KiB (`PART_BYTES`), in order, so
 * that each can be stored as a row in PostgreSQL. An empty file gives one empty part.
 * @throws DocumentError `upload_missing` for a name that `createUploadFile` cannot have made; a system error if the
 *   file is gone
 */
export function* readInParts(tenantPath: string, name: string): Generator<UploadPart> {
  const file = fs.openSync(pathOf(tenantPath, name), 'r');
  try {
    for (let part = 0; ; part += 1) {
      const data = Buffer.alloc(PART_BYTES);
      const bytes = fs.readSync(file, data, 0, PART_BYTES, part * PART_BYTES);
      if (bytes > 0 || part === 0) yield { name, part, data: data.subarray(0, bytes) };
      if (bytes < PART_BYTES) return;
    }
  } finally {
    fs.closeSync(file);
  }
}

/**
 * Writes one part of a waiting file, as `readInParts` returned it, at its place in the file. The file and the tenant's
 * folder are created if needed.
 * @throws EngineError `unprocessable` for a name that `createUploadFile` cannot have made
 */
export function writeUploadPart(tenantPath: string, { name, part, data }: UploadPart): void {
  const file = findPath(tenantPath, name);
  if (file === undefined) throw new EngineError('unprocessable', 'a waiting file has a name that is no name of one');
  const folder = path.dirname(file);
  if (!fs.existsSync(folder)) makeFolder(folder);
  createPrivateFile(file);
  const opened = fs.openSync(file, 'r+');
  try {
    fs.writeSync(opened, data, 0, data.length, part * PART_BYTES);
    fs.fsyncSync(opened);
  } finally {
    fs.closeSync(opened);
  }
}

async function readFile(tenantPath: string, name: string): Promise<Buffer> {
  const stored = await fs.promises.readFile(pathOf(tenantPath, name)).catch(throwGone);
  const key = keyOfFile(tenantPath);
  const bytes = key === null ? stored : unseal(key.bytes, name, stored);
  if (bytes !== undefined) return bytes;
  throw damaged();
}

function throwGone(error: unknown): never {
  throw new DocumentError('upload_missing', 'its file is gone; hand the document in again', { cause: error });
}

function damaged(): DocumentError {
  return new DocumentError('upload_missing', 'its file was changed, or sealed with another key; hand it in again');
}

/** Number of bytes of an unencrypted waiting file that are read at a time. */
const READ_BYTES = 256 * 1024;

/**
 * Reads a part of a waiting file in buffers of at most 256 KiB. Of an encrypted file, only the frames that the part
 * touches are read.
 * @param part offsets in the file as it was sent (bytes); `end` is exclusive
 * @throws DocumentError `upload_missing` for an encrypted file that cannot be opened or decrypted, and for a name that
 *   `createUploadFile` cannot have made; a system error for an unencrypted file that cannot be read
 */
export async function* readUploadPart(
  tenantPath: string,
  name: string,
  { start, end }: { readonly start: number; readonly end: number },
): AsyncGenerator<Buffer> {
  if (start === end) return;
  const file = pathOf(tenantPath, name);
  const key = keyOfFile(tenantPath);
  if (key === null) {
    yield* fs.createReadStream(file, { start, end: end - 1, highWaterMark: READ_BYTES }) as AsyncIterable<Buffer>;
    return;
  }
  const opened = await fs.promises.open(file).catch(throwGone);
  try {
    const { size } = await opened.stat();
    const read = async (at: number, bytes: number) => {
      const { buffer, bytesRead } = await opened.read(Buffer.allocUnsafe(bytes), 0, bytes, at);
      return buffer.subarray(0, bytesRead);
    };
    for await (const bytes of unsealPart(key.bytes, name, { file: { size, read }, start, end })) {
      if (bytes === undefined) throw damaged();
      yield bytes;
    }
  } finally {
    await opened.close();
  }
}

/** Creates the encoder for the bytes of a waiting file. It encrypts them if the tenant's data is encrypted. */
export function createUploadEncoder(tenantPath: string, name: string): Encoder {
  const key = keyOfFile(tenantPath);
  return key === null ? plainEncoder : createSealer(key.bytes, name);
}

/**
 * Encrypts a tenant's waiting files with another key, or stores them unencrypted if `to` is null. Files that already
 * have that form are not changed, so an interrupted call can be repeated; its unfinished copies (`.sealing`) are
 * removed. A file that `from` does not decrypt is skipped.
 * @param from key with which the files are encrypted; null if they are unencrypted
 * @param to key with which the files will be encrypted; null for unencrypted files
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

/** Counts the waiting files in a tenant's folder: the encrypted ones (`sealed`) and the unencrypted ones (`clear`). */
export function countUploads(tenantPath: string): { readonly sealed: number; readonly clear: number } {
  const folder = uploadsFolder(tenantPath);
  const names = listNames(folder).filter((name) => NAME.test(name));
  const sealed = names.filter((name) => isSealed(fs.readFileSync(path.join(folder, name)))).length;
  return { sealed, clear: names.length - sealed };
}

/**
 * Tells whether a waiting file exists in the tenant's folder, which is false for a name that `createUploadFile` cannot
 * have made. Files that wait in rows of PostgreSQL are not looked for.
 */
export function hasUpload(tenantPath: string, name: string): boolean {
  const file = findPath(tenantPath, name);
  return file !== undefined && fs.existsSync(file);
}

/** Tells whether a waiting file exists: in the tenant's folder, or in its rows in PostgreSQL. */
export function isUploadThere(store: Store, name: string): boolean {
  return hasUploadParts(store) ? hasPartsOf(store, name) : hasUpload(store.path, name);
}

/**
 * Removes a waiting file from the tenant's folder, if it is there; rows in PostgreSQL stay. A name that
 * `createUploadFile` cannot have made is ignored.
 */
export function removeUpload(tenantPath: string, name: string): void {
  const file = findPath(tenantPath, name);
  if (file !== undefined) fs.rmSync(file, { force: true });
}

/**
 * Removes a waiting file as `removeUpload` does, without holding up the thread, as the thread that serves requests
 * needs it: a file system may take 15 ms to free the blocks of some megabytes.
 */
export async function discardUpload(tenantPath: string, name: string): Promise<void> {
  const file = findPath(tenantPath, name);
  if (file !== undefined) await fs.promises.rm(file, { force: true });
}

/**
 * Removes waiting files that no document refers to and that were last changed more than twenty minutes ago.
 * @param named names (not paths) of the files to keep: those that documents still need or, if files wait in PostgreSQL,
 *   those that are arriving
 * @param now current time, Unix ms
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

/** Removes a tenant's folder of waiting files with all its files. */
export function removeUploads(tenantPath: string): void {
  fs.rmSync(uploadsFolder(tenantPath), { recursive: true, force: true });
}

function listNames(folder: string): string[] {
  return fs.existsSync(folder) ? fs.readdirSync(folder) : [];
}
