import type { Store } from './open-store.ts';

/**
 * Removes the name of a generation's file, which is no longer needed, from its row. The caller deletes the file after
 * the commit. Call inside a write.
 * @returns name of the file in the uploads folder; '' if the generation has none or does not exist
 */
export function releaseUpload(store: Store, generationNo: number): string {
  const row = store.prepare('SELECT upload FROM document_generations WHERE generation_no = ?').get(generationNo) as
    { upload: string } | undefined;
  store.prepare(`UPDATE document_generations SET upload = '' WHERE generation_no = ?`).run(generationNo);
  return row?.upload ?? '';
}

/** A file in the uploads folder, with the generation to which it belongs. */
export interface NamedUpload {
  readonly generationNo: number;
  /** Name of the file in the uploads folder. */
  readonly upload: string;
}

/** Lists at most 1,000 files of generations that queries find or found. No step reads these files again. */
export function listReadUploads(store: Store): NamedUpload[] {
  return store
    .prepare(
      `SELECT generation_no AS generationNo, upload FROM document_generations INDEXED BY document_generations_uploads
       WHERE upload <> '' AND shown_at > 0 LIMIT 1000`,
    )
    .all() as NamedUpload[];
}

/** Lists at most 1,000 files of generations whose job gave up before `before` (Unix ms) and was not retried since. */
export function listFailedUploads(store: Store, before: number): NamedUpload[] {
  return store
    .prepare(
      `SELECT generation_no AS generationNo, upload FROM document_generations INDEXED BY document_generations_uploads
       WHERE upload <> '' AND failed_at < ? LIMIT 1000`,
    )
    .all(before) as NamedUpload[];
}

/** Lists the names of all files in the uploads folder that some generation still has. */
export function listUploads(store: Store): Set<string> {
  const rows = store.prepare(`SELECT upload FROM document_generations WHERE upload <> ''`).all() as {
    upload: string;
  }[];
  return new Set(rows.map(({ upload }) => upload));
}

/**
 * Lists the names of the files of generations that a worker may still read: queries have not found them, and their job
 * has not given up.
 */
export function listUnreadUploads(store: Store): string[] {
  return store
    .prepare(
      `SELECT upload FROM document_generations INDEXED BY document_generations_uploads
       WHERE upload <> '' AND failed_at IS NULL AND shown_at IS NULL`,
    )
    .pluck()
    .all() as string[];
}

/** Lists the names of the files that generations of these documents still have. */
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
 * Sums the sizes of the files that wait to be read, in bytes. Files of failed generations, which are kept for a while,
 * are not counted, so that they keep no new files out.
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
