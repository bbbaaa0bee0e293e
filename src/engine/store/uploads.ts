import type { Store } from './open-store.ts';

/**
 * Clears the name of the uploaded file in a generation's row, since the file is no longer needed. The caller deletes
 * the file after the commit. Call inside a write.
 * @returns name of the file in the uploads folder; '' if the generation has none or does not exist
 */
export function releaseUpload(store: Store, generationNo: number): string {
  const row = store.prepare('SELECT upload FROM document_generations WHERE generation_no = ?').get(generationNo) as
    { upload: string } | undefined;
  store.prepare(`UPDATE document_generations SET upload = '' WHERE generation_no = ?`).run(generationNo);
  return row?.upload ?? '';
}

/** An uploaded file, with the document generation (parsed version) to which it belongs. */
export interface NamedUpload {
  readonly generationNo: number;
  /** Name of the file in the uploads folder. */
  readonly upload: string;
}

/**
 * Lists at most 1,000 uploaded files of generations that queries find or have found. No job reads these files again.
 */
export function listReadUploads(store: Store): NamedUpload[] {
  return store
    .prepare(
      `SELECT generation_no AS generationNo, upload FROM document_generations INDEXED BY document_generations_uploads
       WHERE upload <> '' AND shown_at > 0 LIMIT 1000`,
    )
    .all() as NamedUpload[];
}

/**
 * Lists at most 1,000 uploaded files of generations whose job failed for good before `before` (Unix ms) and was not
 * retried since.
 */
export function listFailedUploads(store: Store, before: number): NamedUpload[] {
  return store
    .prepare(
      `SELECT generation_no AS generationNo, upload FROM document_generations INDEXED BY document_generations_uploads
       WHERE upload <> '' AND failed_at < ? LIMIT 1000`,
    )
    .all(before) as NamedUpload[];
}

/** Lists the names of all files in the uploads folder that some document generation still refers to. */
export function listUploads(store: Store): Set<string> {
  const rows = store.prepare(`SELECT upload FROM document_generations WHERE upload <> ''`).all() as {
    upload: string;
  }[];
  return new Set(rows.map(({ upload }) => upload));
}

/**
 * Lists the names of the uploaded files that a worker may still read: queries have not found their generations yet, and
 * their jobs have not failed for good.
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

/** Lists the names of the uploaded files that the generations of these documents still refer to. */
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
 * Returns the total size in bytes of the uploaded files of failed generations. They are kept for a while, so that their
 * jobs can be retried.
 */
export function failedBytes(store: Store): number {
  return store
    .prepare(
      `SELECT coalesce(sum(bytes), 0) FROM document_generations INDEXED BY document_generations_uploads
       WHERE upload <> '' AND failed_at IS NOT NULL`,
    )
    .pluck()
    .get() as number;
}

/**
 * Returns the total size of the uploaded files that wait to be read, in bytes; one that was read counts until it is
 * deleted. Files of failed generations are kept for a while but not counted, so that they do not keep new files out.
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
