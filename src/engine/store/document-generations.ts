import { EngineError } from '../errors.ts';
import type { ParseResult } from '../ports.ts';
import type { DocumentFormat, NewDocument, DocumentReceipt } from '../types.ts';
import { ABANDONED, findDocumentRow, takeIdentity, type DocumentRow, findErasedDocument } from './documents.ts';
import { cancelDocumentJobs } from './document-jobs.ts';
import { hashOfPieces } from '../text/content-hash.ts';
import type { Store } from './open-store.ts';
import { storedExpiry } from './stored-expiry.ts';

/**
 * A row of `document_generations`: one version of a document. The row is made when the version is handed in, so it may
 * not have been read yet, or reading it may have failed. Times are Unix ms.
 *
 * `session_id` to `expires_at` are what was handed in: `upload` is the name of the file in the uploads folder, '' for a
 * page and once the file was deleted; `always` is 1 if the version is read even if its page has not changed; `declared`
 * is the format that the request or the file's name states. Of a page, `file_hash` (SHA-256) and `bytes` are null until
 * it is fetched.
 *
 * `format` to `omissions` are what reading it found, and have their empty values until then. `stages` is an object with
 * the duration of each stage of the work (ms). `tags`, `authors` and `warnings` are lists, `metadata`, `receipt` and
 * `stages` objects, all as JSON. `shown_at`, `failed_at` and `settled_at` are null until queries can find the version,
 * until it failed, and until all work on it has ended. `hidden` is 0 once queries find the version.
 */
export interface GenerationRow {
  readonly generation_no: number;
  readonly document_no: number;
  readonly hidden: number;
  readonly created_at: number;
  readonly session_id: string;
  readonly source: 'upload' | 'url';
  readonly url: string;
  readonly always: number;
  readonly upload: string;
  readonly file_name: string;
  readonly declared: DocumentFormat | null;
  readonly charset: string | null;
  readonly file_hash: Buffer | null;
  readonly bytes: number | null;
  readonly given_title: string;
  readonly type: string | null;
  readonly tags: string;
  readonly metadata: string;
  readonly event_time: number | null;
  readonly expires_at: number | null;
  readonly format: DocumentFormat | null;
  readonly title: string;
  readonly authors: string;
  readonly language: string | null;
  readonly published_at: number | null;
  readonly modified_at: number | null;
  readonly etag: string | null;
  readonly last_modified: string | null;
  readonly pages: number | null;
  readonly pages_done: number;
  readonly characters: number;
  readonly tokens: number;
  readonly chunks: number;
  readonly warnings: string;
  readonly receipt: string | null;
  readonly stages: string;
  /**
   * SHA-256 of the extracted text as UTF-8; null until the document is read, and in rows of older versions of Cairn,
   * which did not store it.
   */
  readonly text_hash: Buffer | null;
  /** Parts of the file that are missing in the extracted text: an array of `Omission` as JSON. */
  readonly omissions: string;
  readonly shown_at: number | null;
  readonly failed_at: number | null;
  readonly settled_at: number | null;
  /** Number of the writer (key) who added this version; null if it is not known. */
  readonly writer_no: number | null;
}

/**
 * Makes the SQL condition over an alias of memory_dynamics that queries may find the memory. A memory that is a part of
 * a document passes only if its generation is shown, not while the generation is being made or erased. Any other memory
 * passes. Each generation is looked up by its number: a list of all hidden ones would also hold those of documents that
 * wait to be read or could not be read, of which there may be any number.
 */
export const isShown = (
  alias: string,
) => `(${alias}.generation_no IS NULL OR NOT EXISTS (SELECT 1 FROM document_generations hidden_one
  WHERE hidden_one.generation_no = ${alias}.generation_no AND hidden_one.hidden > 0))`;
/** The condition `isShown` over the alias `d`. */
export const IS_SHOWN = isShown('d');

/**
 * Adds a new generation of a document, the version that is to be read next. Queries do not find it yet. An earlier next
 * generation is marked to be erased. The document becomes `queued`, and its error is removed. If queries find no
 * earlier generation, the document also takes session, source and URL of the new one. Call inside a write.
 * @returns the number of the generation
 */
export function insertGeneration(
  store: Store,
  {
    documentNo,
    document,
    always,
    writerNo,
    now,
  }: {
    readonly documentNo: number;
    readonly document: NewDocument;
    /** Whether the document is read even if its web page has not changed. */
    readonly always: boolean;
    /** Number of the writer (key) who adds the generation, as `ensureWriter` returns it; null if no key does. */
    readonly writerNo: number | null;
    readonly now: number;
  },
): number {
  const { source } = document;
  const file = source.kind === 'upload' ? source : null;
  const result = store
    .prepare(
      `INSERT INTO document_generations (document_no, created_at, session_id, source, url, always, upload, file_name,
         declared, charset, file_hash, bytes, given_title, type, tags, metadata, event_time, expires_at,
         writer_no, nameless_of)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
         (SELECT user_id FROM documents WHERE document_no = ? AND external_id = ''))`,
    )
    .run(
      documentNo,
      now,
      document.sessionId,
      source.kind,
      source.kind === 'url' ? source.url : '',
      always ? 1 : 0,
      file?.name ?? '',
      file?.fileName ?? '',
      file?.declared ?? null,
      file?.charset ?? null,
      file === null ? null : Buffer.from(file.sha256),
      file?.bytes ?? null,
      document.title,
      document.type,
      JSON.stringify(document.tags),
      JSON.stringify(document.metadata),
      document.eventTime,
      storedExpiry(document.expiresAt),
      writerNo,
      documentNo,
    );
  const generationNo = Number(result.lastInsertRowid);
  abandonNext(store, documentNo);
  store
    .prepare(
      `UPDATE documents SET next_no = ?, state = 'queued', error_code = NULL, error = NULL, updated_at = ?
       WHERE document_no = ?`,
    )
    .run(generationNo, now, documentNo);
  if (findDocumentRow(store, documentNo)?.live_no === null) takeIdentity(store, documentNo, generationNo);
  return generationNo;
}

/**
 * Reads the row of a generation (one version of a document, read already or not) by its number. @throws EngineError
 * `not_found`
 */
export function getGenerationRow(store: Store, generationNo: number): GenerationRow {
  const row = store.prepare('SELECT * FROM document_generations WHERE generation_no = ?').get(generationNo) as
    GenerationRow | undefined;
  if (row === undefined) throw new EngineError('not_found', 'no reading with this number');
  return row;
}

/** Stores how many pages of a document generation were read so far. Call inside a write. */
export function notePagesDone(store: Store, generationNo: number, done: number): void {
  store.prepare('UPDATE document_generations SET pages_done = ? WHERE generation_no = ?').run(done, generationNo);
}

/**
 * Stores size, hash and HTTP validators (`etag`, `lastModified`; null without one) of the web page that was fetched for
 * a document generation. Call inside a write.
 */
export function putFetched(
  store: Store,
  generationNo: number,
  file: {
    readonly bytes: Uint8Array;
    readonly sha256: Uint8Array;
    readonly etag: string | null;
    readonly lastModified: string | null;
  },
): void {
  store
    .prepare(
      'UPDATE document_generations SET bytes = ?, file_hash = ?, etag = ?, last_modified = ? WHERE generation_no = ?',
    )
    .run(file.bytes.length, Buffer.from(file.sha256), file.etag, file.lastModified, generationNo);
}

/**
 * Stores the title of a document generation, and what the parser found in its file: its properties, sizes, warnings,
 * missing parts (omissions) and the hash of the text. All its pages count as read then. Call inside a write.
 */
export function putParsed(store: Store, generationNo: number, title: string, parsed: ParseResult): void {
  store
    .prepare(
      `UPDATE document_generations SET format = ?, title = ?, authors = ?, language = ?, published_at = ?,
         modified_at = ?, pages = ?, pages_done = coalesce(?, 0), characters = ?, tokens = ?, chunks = ?, warnings = ?,
         omissions = ?, text_hash = ?
       WHERE generation_no = ?`,
    )
    .run(
      parsed.format,
      title,
      JSON.stringify(parsed.authors),
      parsed.language,
      parsed.publishedAt,
      parsed.modifiedAt,
      parsed.pages,
      parsed.pages,
      parsed.characters,
      parsed.tokens,
      parsed.chunks.length,
      JSON.stringify(parsed.warnings),
      JSON.stringify(parsed.omissions ?? []),
      hashOfPieces(ownTexts(parsed.chunks)),
      generationNo,
    );
}

/** Yields the text of each chunk without the beginning that overlaps the chunk before it. */
function* ownTexts(chunks: ParseResult['chunks']): Iterable<string> {
  let end = 0;
  for (const { startOffset, endOffset, content } of chunks) {
    yield content.slice(Math.max(0, end - startOffset));
    end = endOffset;
  }
}

/**
 * Stores durations of processing stages (ms), by name, with a document generation. A stage that has a duration already
 * gets the new one. Call inside a write.
 */
export function putStages(store: Store, generationNo: number, stages: Readonly<Record<string, number>>): void {
  store
    .prepare('UPDATE document_generations SET stages = json_patch(stages, ?) WHERE generation_no = ?')
    .run(JSON.stringify(stages), generationNo);
}

/**
 * The generation that `showGeneration` makes visible, with the counts of its stored, kept and removed chunks (receipt).
 */
export interface ShowOptions {
  readonly documentNo: number;
  readonly generationNo: number;
  readonly receipt: DocumentReceipt;
  readonly now: number;
}

/**
 * Makes a generation visible to queries, in place of the one that they found before. Chunks that both generations hold
 * move to the new one, and become its writer's. The document becomes `processing`, loses its error, has no next
 * generation any more, and takes session, source and URL of the generation. Jobs that wait for chunks of the replaced
 * one are cancelled. Call inside a write.
 * @returns `replaced`: number of the generation that queries found before; null if there was none
 */
export function showGeneration(
  store: Store,
  { documentNo, generationNo, receipt, now }: ShowOptions,
): { readonly replaced: number | null } {
  const { live_no: replaced } = findDocumentRow(store, documentNo) as DocumentRow;
  if (replaced !== null) {
    store
      .prepare(
        `UPDATE memory_dynamics SET generation_no = :next,
           writer_no = (SELECT writer_no FROM document_generations WHERE generation_no = :next)
         WHERE generation_no = :live
           AND seq IN (SELECT memory FROM chunks WHERE generation_no = :next)`,
      )
      .run({ next: generationNo, live: replaced });
    store.prepare(`UPDATE document_generations SET hidden = ${ABANDONED} WHERE generation_no = ?`).run(replaced);
    cancelDocumentJobs(store, documentNo, { which: 'awaiting', now });
  }
  store
    .prepare('UPDATE document_generations SET hidden = 0, shown_at = ?, receipt = ? WHERE generation_no = ?')
    .run(now, JSON.stringify(receipt), generationNo);
  store
    .prepare(
      `UPDATE documents SET live_no = ?, next_no = NULL, state = 'processing', error_code = NULL, error = NULL,
         updated_at = ?
       WHERE document_no = ?`,
    )
    .run(generationNo, now, documentNo);
  takeIdentity(store, documentNo, generationNo);
  return { replaced };
}

/**
 * Stores that no job of a chunk of a document's live generation is unfinished: a `processing` document becomes `ready`,
 * unless a next generation is being read.
 * If it is the first time, the generation gets `now` as the time at which it settled, and the time since it was shown
 * (ms) as the duration of its stage `encode`. Call inside a write.
 */
export function noteSettled(store: Store, documentNo: number, now: number): void {
  store
    .prepare(
      `UPDATE documents SET state = 'ready', updated_at = ? WHERE document_no = ? AND state = 'processing'
         AND (next_no IS NULL OR error_code IS NOT NULL)`,
    )
    .run(now, documentNo);
  store
    .prepare(
      `UPDATE document_generations SET settled_at = :now, stages = json_set(stages, '$.encode', :now - shown_at)
       WHERE generation_no = (SELECT live_no FROM documents WHERE document_no = :documentNo) AND settled_at IS NULL`,
    )
    .run({ now, documentNo });
}

/**
 * Gives up a document's next generation, which waits, is being read or could not be read. Queries never found its
 * memories, which a later step erases. Call inside a write.
 */
export function dropNextGeneration(store: Store, documentNo: number): void {
  abandonNext(store, documentNo);
  store.prepare('UPDATE documents SET next_no = NULL WHERE document_no = ?').run(documentNo);
}

/** Marks a document's next generation, if it has one, as one that must be erased. */
function abandonNext(store: Store, documentNo: number): void {
  store
    .prepare(
      `UPDATE document_generations SET hidden = ${ABANDONED}
       WHERE generation_no = (SELECT next_no FROM documents WHERE document_no = ?)`,
    )
    .run(documentNo);
}

/** What is to be erased next of a document. */
export interface Abandoned {
  readonly documentNo: number;
  /** Number of the generation of which something is left; null if only the document's own row is left. */
  readonly generationNo: number | null;
}

/**
 * Finds what must be erased next; undefined if nothing must.
 * @param erasure id of the erasure whose hidden documents are to be erased; null for what no erasure is at: replaced,
 *   cancelled and expired generations, and those deleted without a receipt
 * @param last `memoryNo` of memories; a generation that has one of them comes after the other generations of its
 *   document. Only for an erasure
 */
export function findAbandoned(
  store: Store,
  erasure: string | null = null,
  last: readonly number[] = [],
): Abandoned | undefined {
  if (erasure !== null && last.length > 0) {
    return store
      .prepare(
        `SELECT o.document_no AS documentNo,
           (SELECT g.generation_no FROM document_generations g WHERE g.document_no = o.document_no
            ORDER BY g.generation_no IN (SELECT d.generation_no FROM json_each(?) AS wanted
              CROSS JOIN memory_dynamics d ON d.seq = wanted.value WHERE d.generation_no > 0), g.generation_no
            LIMIT 1) AS generationNo
         FROM documents o WHERE o.erasure = ? ORDER BY o.document_no LIMIT 1`,
      )
      .get(JSON.stringify(last), erasure) as Abandoned | undefined;
  }
  if (erasure !== null) {
    return store
      .prepare(
        `SELECT o.document_no AS documentNo,
           (SELECT min(g.generation_no) FROM document_generations g WHERE g.document_no = o.document_no) AS generationNo
         FROM documents o WHERE o.erasure = ? ORDER BY o.document_no LIMIT 1`,
      )
      .get(erasure) as Abandoned | undefined;
  }
  const generation = store
    .prepare(
      `SELECT document_no AS documentNo, generation_no AS generationNo
       FROM document_generations INDEXED BY document_generations_abandoned WHERE hidden = ${ABANDONED}
       ORDER BY generation_no LIMIT 1`,
    )
    .get() as Abandoned | undefined;
  if (generation !== undefined) return generation;
  const documentNo = findErasedDocument(store);
  return documentNo === undefined ? undefined : { documentNo, generationNo: null };
}

/**
 * Deletes the row of a document generation. A foreign key also deletes the positions of its memories, but not the
 * memories. Call inside a write.
 */
export function deleteGeneration(store: Store, generationNo: number): void {
  store.prepare('DELETE FROM document_generations WHERE generation_no = ?').run(generationNo);
}
