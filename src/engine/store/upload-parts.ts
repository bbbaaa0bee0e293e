/**
 * The files of documents of a tenant in PostgreSQL that wait to be read, as rows of parts, so that a worker on any
 * machine can read them. A tenant in a file has no such table: its waiting files stand beside it. A trigger deletes the
 * parts of a file that no generation needs any more, in the commit that says so.
 */

import type { Store } from './open-store.ts';

/** Bytes of a part. */
export const PART_BYTES = 256 * 1024;
/** Time after which parts that no generation names count as left by a killed process, ms. */
const ABANDONED_MS = 1_200_000;

/** A part of a waiting file. */
export interface UploadPart {
  /** Name of the file, which `UploadedFile.name` gives. */
  readonly name: string;
  /** Number of the part, from 0. */
  readonly part: number;
  readonly data: Uint8Array;
}

/** Whether the waiting files of a tenant are rows. */
export function hasUploadParts(store: Store): boolean {
  return store.words !== null;
}

/** Stores a part. Call inside a write. */
export function putUploadPart(store: Store, { name, part, data }: UploadPart, now: number): void {
  store
    .prepare('INSERT INTO upload_parts (upload, part, created_at, data) VALUES (?, ?, ?, ?)')
    .run(name, part, now, data);
}

/** Reads a part; undefined after the last one. */
export function findUploadPart(store: Store, name: string, part: number): Buffer | undefined {
  return store.prepare('SELECT data FROM upload_parts WHERE upload = ? AND part = ?').pluck().get(name, part) as
    Buffer | undefined;
}

/** Deletes the parts of a file that no generation came to own. Call inside a write. */
export function deleteUploadParts(store: Store, name: string): void {
  store.prepare('DELETE FROM upload_parts WHERE upload = ?').run(name);
}

/** Lists the names of the files that documents still wait for, in a file or in PostgreSQL. */
export function listNamedUploads(store: Store): string[] {
  return store
    .prepare(`SELECT DISTINCT upload FROM document_generations WHERE upload <> '' ORDER BY upload`)
    .pluck()
    .all() as string[];
}

/** Deletes parts that no generation names and that are older than any upload takes. It writes only if it finds some. */
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
