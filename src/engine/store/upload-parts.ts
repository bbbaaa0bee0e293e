/**
 * The uploaded files of a tenant in PostgreSQL that are not processed yet, stored as rows, so that a worker on any
 * machine can read them. A tenant in a SQLite file does not use this table: its uploaded files are in a folder beside
 * the file. A trigger deletes the parts of a file when no document generation refers to it any more, in the same
 * commit.
 */

import type { Store } from './open-store.ts';

/** Size of a part of an uploaded file, in bytes; the last part may be smaller. */
export const PART_BYTES = 256 * 1024;
/**
 * Age (ms) of the first part of a file after which all its parts are deleted if no document generation names them.
 * Parts are stored one after the other once the whole file has arrived, which takes far less than this, so a process
 * that was killed must have left them.
 */
const ABANDONED_MS = 1_200_000;

/** A part of an uploaded file that is not processed yet. */
export interface UploadPart {
  /** Name of the uploaded file, as in `UploadedFile.name`. */
  readonly name: string;
  /** Number of the part, from 0. */
  readonly part: number;
  readonly data: Uint8Array;
}

/** Whether the uploaded files of this tenant are stored as rows, as they are in PostgreSQL. */
export function hasUploadParts(store: Store): boolean {
  return store.words !== null;
}

/** Stores a part of an uploaded file. Call inside a write. */
export function putUploadPart(store: Store, { name, part, data }: UploadPart, now: number): void {
  store
    .prepare('INSERT INTO upload_parts (upload, part, created_at, data) VALUES (?, ?, ?, ?)')
    .run(name, part, now, data);
}

/** Reads a part of an uploaded file; undefined if there is none, as after the last part. */
export function findUploadPart(store: Store, name: string, part: number): Buffer | undefined {
  return store.prepare('SELECT data FROM upload_parts WHERE upload = ? AND part = ?').pluck().get(name, part) as
    Buffer | undefined;
}

/** Whether an uploaded file is stored: its first part, before all others, with which it is swept away. */
export function hasPartsOf(store: Store, name: string): boolean {
  return store.prepare('SELECT 1 FROM upload_parts WHERE upload = ? AND part = 0').get(name) !== undefined;
}

/** Deletes the parts of an uploaded file that has become part of no document. Call inside a write. */
export function deleteUploadParts(store: Store, name: string): void {
  store.prepare('DELETE FROM upload_parts WHERE upload = ?').run(name);
}

/**
 * Lists the names of the uploaded files that document generations still refer to, in a SQLite file or in PostgreSQL.
 */
export function listNamedUploads(store: Store): string[] {
  return store
    .prepare(`SELECT DISTINCT upload FROM document_generations WHERE upload <> '' ORDER BY upload`)
    .pluck()
    .all() as string[];
}

/**
 * Deletes parts that no document generation refers to and that are older than `ABANDONED_MS`. It writes only if it
 * finds some.
 * @param now present time, Unix ms
 */
export function sweepUploadParts(store: Store, now: number): void {
  const names = store
    .prepare(
      `SELECT DISTINCT upload FROM upload_parts WHERE part = 0 AND created_at < ?
         AND upload NOT IN (SELECT upload FROM document_generations WHERE upload <> '')`,
    )
    .pluck()
    .all(now - ABANDONED_MS) as string[];
  if (names.length === 0) return;
  store.write(() => {
    for (const name of names) deleteUploadParts(store, name);
  });
}
