import type { Store } from './open-store.ts';

/**
 * Notes that a generation's file is no longer needed. The caller deletes the file after the commit.
 * @returns the file's name in the uploads folder; '' if the generation has none or is unknown
 */
export function releaseUpload(store: Store, generationNo: number): string {
  const row = store.prepare('SELECT upload FROM document_generations WHERE generation_no = ?').get(generationNo) as
    { upload: string } | undefined;
  store.prepare(`UPDATE document_generations SET upload = '' WHERE generation_no = ?`).run(generationNo);
  return row?.upload ?? '';
}

/** A file in the uploads folder, with the generation that it belongs to. */
export interface NamedUpload {
  readonly generationNo: number;
  /** Name of the file in the uploads folder. */
  readonly upload: string;
}

/** Lists files of generations that have been shown, at most 1,000. Nobody reads them again. */
export function listReadUploads(store: Store): NamedUpload[] {
  return store
    .prepare(
      `SELECT generation_no AS generationNo, upload FROM document_generations INDEXED BY document_generations_uploads
       WHERE upload <> '' AND shown_at > 0 LIMIT 1000`,
    )
    .all() as NamedUpload[];
}

/** Lists files of generations that gave up before `before` (Unix ms) and were not retried since, at most 1,000. */
export function listFailedUploads(store: Store, before: number): NamedUpload[] {
  return store
    .prepare(
      `SELECT generation_no AS generationNo, upload FROM document_generations INDEXED BY document_generations_uploads
       WHERE upload <> '' AND failed_at < ? LIMIT 1000`,
    )
    .all(before) as NamedUpload[];
}

/** Lists the names of all files in the uploads folder that any generation still has. */
export function listUploads(store: Store): Set<string> {
  const rows = store.prepare(`SELECT upload FROM document_generations WHERE upload <> ''`).all() as {
    upload: string;
  }[];
  return new Set(rows.map(({ upload }) => upload));
}

/** Lists the names of the files of generations that were neither shown nor given up, so that a worker may read them. */
export function listUnreadUploads(store: Store): string[] {
  return store
    .prepare(
      `SELECT upload FROM document_generations INDEXED BY document_generations_uploads
       WHERE upload <> '' AND failed_at IS NULL AND shown_at IS NULL`,
    )
    .pluck()
    .all() as string[];
}

/** Lists the names of the files that any generation of these documents still has. */
export function listUploadsOf(store: Store, documentNos: readonly number[]): string[] {
  return store
    .prepare(
      `SELECT g.upload FROM json_each(?) AS wanted CROSS JOIN document_generations g ON g.document_no = wanted.value
       WHERE g.upload <> ''`,
    )
    .pluck()
    .all(JSON.stringify(documentNos)) as string[];
}

/**
 * Adds up the sizes of the files that wait to be read, in bytes. Files of failed generations are kept for a while but
 * not counted, so that they do not keep new files out.
 */
export function waitingBytes(store: Store): number {
  const row = store
    .prepare(
      `SELECT coalesce(sum(bytes), 0) AS bytes FROM document_generations INDEXED BY document_generations_uploads
       WHERE upload <> '' AND failed_at IS NULL`,
    )
    .get() as { bytes: number };
  return row.bytes;
}
