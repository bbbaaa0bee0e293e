/**
 * Documents as a whole. `document-generations.ts` holds their parsed versions, `chunks.ts` the positions of their
 * memories, `uploads.ts` their files and `document-views.ts` what callers see.
 *
 *   queued ──► processing ──► ready        one update shows the new generation and hides the one it replaces
 *      │           │    └────► empty       read without an error, but it has no text
 *      │           └─────────► failed      with its reason; an earlier generation stays visible
 *      └─────────────────────► cancelled
 */

import { EngineError } from '../errors.ts';
import type { DocumentState, NewDocument, Document, ErasureFilter } from '../types.ts';
import { isAwaitingChunks } from './document-jobs.ts';
import { tagsPass } from './label-conditions.ts';
import type { Store } from './open-store.ts';
import { isByOneOf } from './writers.ts';
import { beginningOf } from '../text/beginning-of.ts';

/**
 * Greatest number of bytes of a user's id and the URL of a page together, for a page without an external id. Such a
 * page is found by both, and an entry of an index in PostgreSQL has at most 2,704 bytes.
 */
export const MAX_ADDRESS_BYTES = 2_600;

/** A row of `documents`. Times are Unix ms; `external_id` and `url` are '' if the document has none. */
export interface DocumentRow {
  readonly document_no: number;
  readonly id: string;
  readonly user_id: string;
  readonly external_id: string;
  readonly session_id: string;
  readonly source: 'upload' | 'url';
  readonly url: string;
  /** State of the document. `deleting` is the state while it is being erased; no caller sees such a document. */
  readonly state: DocumentState | 'deleting';
  readonly error_code: string | null;
  readonly error: string | null;
  /** Number of the generation (parsed version) that queries find; null if they find none. */
  readonly live_no: number | null;
  /** Number of the generation that waits, is being read or could not be read; null if there is none. */
  readonly next_no: number | null;
  /** Id of the erasure (delete with a receipt) that erases the document; null if there is none. */
  readonly erasure: string | null;
  readonly created_at: number;
  readonly updated_at: number;
}

/**
 * SQL condition on the table `documents`, which must not have an alias; its one parameter is the present time (Unix
 * ms). The document is not being erased and has not expired, even if the expiry job has not run yet. It expires with
 * the last of its live and its next generation: a newer version that waits keeps it.
 */
export const IS_ALIVE = `state <> 'deleting' AND (coalesce(live_no, next_no) IS NULL OR EXISTS (
  SELECT 1 FROM document_generations e WHERE e.generation_no IN (documents.live_no, documents.next_no)
    AND (e.expires_at IS NULL OR e.expires_at > ?)))`;

/**
 * Value of the column `hidden` of a generation that must be erased, since its document refers to it neither as its live
 * nor as its next one. The column is 1 while the generation waits, is being read or could not be read, 0 once queries
 * find it, and 3 (`ERASING`) while an erasure erases it.
 */
export const ABANDONED = 2;
/** Value of the column `hidden` of a generation that an erasure, a delete with a receipt, has hidden to erase it. */
const ERASING = 3;

/** Adds a `queued` document without a generation; `insertGeneration` must add one in the same write. */
export function insertDocument(
  store: Store,
  { id, document, now }: { id: string; document: NewDocument; now: number },
): DocumentRow {
  return store
    .prepare(
      `INSERT INTO documents (id, user_id, external_id, state, created_at, updated_at)
       VALUES (?, ?, ?, 'queued', ?, ?) RETURNING *`,
    )
    .get(id, document.userId, document.externalId ?? '', now, now) as DocumentRow;
}

/**
 * Finds a document's row by number, even if the document has expired or is being erased; undefined for an unknown
 * number.
 */
export function findDocumentRow(store: Store, documentNo: number): DocumentRow | undefined {
  return store.prepare('SELECT * FROM documents WHERE document_no = ?').get(documentNo) as DocumentRow | undefined;
}

/**
 * Returns the row of a document as it is once the expiry job has dropped a live generation that has expired by `now`
 * (Unix ms), while a next one waits, is being read or has failed. The row itself if there is no such generation.
 */
export function asOf(store: Store, row: DocumentRow, now: number): DocumentRow {
  if (row.live_no === null || row.next_no === null) return row;
  const next = store
    .prepare(
      `SELECT n.session_id, n.source, n.url FROM document_generations l CROSS JOIN document_generations n
       WHERE l.generation_no = ? AND l.expires_at <= ? AND n.generation_no = ?`,
    )
    .get(row.live_no, now, row.next_no) as Pick<DocumentRow, 'session_id' | 'source' | 'url'> | undefined;
  if (next === undefined) return row;
  const hasFailed = row.state === 'ready' || (row.state === 'processing' && row.error_code !== null);
  return { ...row, ...next, live_no: null, state: hasFailed ? 'failed' : row.state };
}

/**
 * Reads a document's row by id, as `asOf` returns it.
 * @throws EngineError `not_found`, also for a document that is being erased or has expired
 */
export function getDocumentRow(store: Store, id: string, now: number): DocumentRow {
  const row = store.prepare(`SELECT * FROM documents WHERE id = ? AND ${IS_ALIVE}`).get(id, now) as
    DocumentRow | undefined;
  if (row === undefined) throw new EngineError('not_found', 'no document with this id');
  return asOf(store, row, now);
}

/**
 * Finds a document's row by id, as `asOf` returns it, also if an erasure (delete with a receipt) is erasing it.
 * Undefined for an unknown id, and for any other document that has expired or is being erased.
 */
export function findErasableRow(store: Store, id: string, now: number): DocumentRow | undefined {
  const statement = store.prepare(`SELECT * FROM documents WHERE id = ? AND (erasure IS NOT NULL OR ${IS_ALIVE})`);
  const row = statement.get(id, now) as DocumentRow | undefined;
  return row && asOf(store, row, now);
}

/**
 * Finds the document of the same user that a new document is a new version of. With an external id, that is the
 * document with this id. Without one, only documents without external id are considered: for a web page the one with
 * this URL, for a file the one with this hash in this session, in any generation. An expired document is not found,
 * since it is about to be erased. The row is as `asOf` returns it.
 * @param onlyBy number of the writer (key) that must have handed in the file, for a file without an external id;
 *   undefined for any writer; with null no file is found
 * @returns undefined if there is none
 */
export function findKnownDocument(
  store: Store,
  document: NewDocument,
  now: number,
  onlyBy?: number | null,
): DocumentRow | undefined {
  const { externalId, source, sessionId, userId } = document;
  const findAmong = (numbers: string, ...values: (string | number | Buffer | null)[]) => {
    const row = store
      .prepare(`SELECT * FROM documents WHERE document_no IN (${numbers}) AND ${IS_ALIVE} ORDER BY document_no LIMIT 1`)
      .get(...values, now) as DocumentRow | undefined;
    return row && asOf(store, row, now);
  };
  if (externalId !== null) {
    const numbers = `SELECT document_no FROM documents WHERE external_id = ? AND external_id <> '' AND user_id = ?`;
    return findAmong(numbers, externalId, userId);
  }
  if (source.kind === 'url') {
    // The URL of a reading under way counts as well, though the document itself still names the URL it came from
    // earlier.
    const numbers = `SELECT document_no FROM documents WHERE user_id = ? AND url = ? AND url <> '' AND external_id = ''
      UNION ALL SELECT document_no FROM document_generations WHERE nameless_of = ? AND url = ? AND url <> ''`;
    return findAmong(numbers, userId, source.url, userId, source.url);
  }
  const numbers = `SELECT document_no FROM document_generations WHERE nameless_of = ? AND file_hash = ?
    AND session_id = ? AND source = 'upload' AND (writer_no = ? OR ? = 1)`;
  const file = [userId, Buffer.from(source.sha256), sessionId] as const;
  return findAmong(numbers, ...file, onlyBy ?? null, onlyBy === undefined ? 1 : 0);
}

/**
 * Copies session, source and URL of a generation to its document. Call it for the generation that queries find, or if
 * they find none for the next one. So a later reading that fails or is cancelled does not change the document. Call
 * inside a write.
 */
export function takeIdentity(store: Store, documentNo: number, generationNo: number): void {
  store
    .prepare(
      `UPDATE documents SET (session_id, source, url) =
         (SELECT session_id, source, url FROM document_generations WHERE generation_no = ?) WHERE document_no = ?`,
    )
    .run(generationNo, documentNo);
}

/**
 * Sets the external id of a document, which must not be empty, and which no other document of its user may have. Call
 * inside a write.
 */
export function setExternalId(store: Store, documentNo: number, externalId: string): void {
  store.prepare('UPDATE documents SET external_id = ? WHERE document_no = ?').run(externalId, documentNo);
  store.prepare('UPDATE document_generations SET nameless_of = NULL WHERE document_no = ?').run(documentNo);
}

/**
 * Sets the state of a document and its error, whose message is cut to 1,000 characters. Without `error`, an earlier
 * error is removed. Call inside a write.
 */
export function setDocumentState(
  store: Store,
  documentNo: number,
  { state, error = null, now }: { state: DocumentRow['state']; error?: Document['error']; now: number },
): void {
  store
    .prepare('UPDATE documents SET state = ?, error_code = ?, error = ?, updated_at = ? WHERE document_no = ?')
    .run(state, error?.code ?? null, error ? beginningOf(error.message, 1_000) : null, now, documentNo);
}

/**
 * Stores that the job of a document's next generation has failed for good. The document becomes `failed`; if queries
 * find an earlier generation, it becomes `ready`, or `processing` while a job still waits for chunks of that one, and
 * has the error, too. A document that is being erased or does not exist is left as it is. Call inside a write.
 */
export function failDocument(
  store: Store,
  documentNo: number,
  { code, message, now }: { code: string; message: string; now: number },
): void {
  const row = findDocumentRow(store, documentNo);
  if (row === undefined || row.state === 'deleting') return;
  const found = isAwaitingChunks(store, documentNo) ? 'processing' : 'ready';
  const state = row.live_no === null ? 'failed' : found;
  setDocumentState(store, documentNo, { state, error: { code, message }, now });
  store.prepare('UPDATE document_generations SET failed_at = ? WHERE generation_no = ?').run(now, row.next_no);
}

/**
 * Lists at most `limit` numbers of documents that meet all conditions of a filter: one of its users, one of its
 * sessions, one of its writers, all of its tags. An undefined condition is ignored. Session, writer and tags are those
 * of the shown generation or of the next one, even if that has failed; of a document that is being erased, those of any
 * generation that is left. A document that was cancelled before it was read has no tags. A filter by files matches no
 * document.
 * @param options.except id of an erasure whose documents are left out; '' for none
 * @param options.after number of the last document that is passed over; the list is in ascending order
 * @param options.among numbers of the only documents to examine; all documents if left out
 */
export function listMatchingDocuments(
  store: Store,
  filter: ErasureFilter,
  {
    except,
    after = 0,
    limit,
    among,
  }: {
    readonly except: string;
    readonly after?: number;
    readonly limit: number;
    readonly among?: readonly number[];
  },
): number[] {
  // Documents mention no files.
  if (filter.files !== undefined || filter.userIds?.length === 0 || filter.sessionIds?.length === 0) return [];
  const conditions = ['o.document_no > ?', '(o.erasure IS NULL OR o.erasure <> ?)'];
  const values: (string | number)[] = [after, except];
  const require = (condition: string, wanted: readonly string[] | undefined) => {
    if (wanted === undefined) return;
    conditions.push(condition);
    values.push(JSON.stringify(wanted));
  };
  if (among !== undefined) {
    conditions.push('o.document_no IN (SELECT value FROM json_each(?))');
    values.push(JSON.stringify(among));
  }
  require('o.user_id IN (SELECT value FROM json_each(?))', filter.userIds);
  require('coalesce(g.session_id, o.session_id) IN (SELECT value FROM json_each(?))', filter.sessionIds);
  require(isByOneOf('g.writer_no'), filter.writtenBy);
  require(tagsPass(`coalesce(g.tags, '[]')`), filter.tags);
  require(tagsPass(`coalesce(g.tags, '[]')`), filter.withinTags);
  return store
    .prepare(
      `SELECT DISTINCT o.document_no FROM documents o
         LEFT JOIN document_generations g ON g.document_no = o.document_no
           AND (g.generation_no IN (o.live_no, o.next_no) OR o.state = 'deleting')
       WHERE ${conditions.join(' AND ')} ORDER BY o.document_no LIMIT ?`,
    )
    .pluck()
    .all(...values, limit) as number[];
}

/** Returns the highest number of a document in the file; 0 if there is none. */
export function lastDocument(store: Store): number {
  return (store.prepare('SELECT max(document_no) AS last FROM documents').get() as { last: number | null }).last ?? 0;
}

/**
 * Hides a document and all its versions from every reader. It is erased afterwards, in slices. Its versions expire no
 * more, so that a search for what has expired passes none of them. Call inside a write.
 * @param erasure id of the erasure that erases it; null leaves it to whoever erases what is abandoned
 */
export function hideDocument(
  store: Store,
  documentNo: number,
  { erasure, now }: { readonly erasure: string | null; readonly now: number },
): void {
  store
    .prepare('UPDATE document_generations SET hidden = ?, expires_at = NULL WHERE document_no = ?')
    .run(erasure === null ? ABANDONED : ERASING, documentNo);
  store
    .prepare(
      `UPDATE documents SET state = 'deleting', erasure = ?, live_no = NULL, next_no = NULL, updated_at = ?
       WHERE document_no = ?`,
    )
    .run(erasure, now, documentNo);
}

/**
 * Finds the number of a document that is being erased by no erasure and has no generation left; undefined if there is
 * none.
 */
export function findErasedDocument(store: Store): number | undefined {
  return store
    .prepare(
      `SELECT document_no FROM documents o INDEXED BY documents_abandoned WHERE state = 'deleting' AND erasure IS NULL
         AND NOT EXISTS (SELECT 1 FROM document_generations g WHERE g.document_no = o.document_no) LIMIT 1`,
    )
    .pluck()
    .get() as number | undefined;
}

/**
 * Time without a commit after which the documents that a delete has hidden are free for another delete that matches
 * them (ms). A commit takes some milliseconds; one that waits longer than this goes on, and finds its documents gone.
 */
const UNDER_WAY_MS = 10_000;

/**
 * Lists those of these documents that an erasure under way is erasing: it is open, and its last commit was at most 10 s
 * ago, or as far ahead, which the clock of another node may be. Any other document may be hidden by a further delete,
 * which then erases and records what is left of it.
 * @param except id of an erasure whose documents are left out; '' for none
 * @param now present time, Unix ms
 */
export function listUnderWay(
  store: Store,
  documentNos: readonly number[],
  { except, now }: { readonly except: string; readonly now: number },
): number[] {
  if (documentNos.length === 0) return [];
  return store
    .prepare(
      `SELECT o.document_no FROM json_each(?) AS wanted CROSS JOIN documents o ON o.document_no = wanted.value
       WHERE o.erasure <> ?
         AND (SELECT e.sliced_at FROM erasures e WHERE e.id = o.erasure AND e.closed_at IS NULL) BETWEEN ? AND ?`,
    )
    .pluck()
    .all(JSON.stringify(documentNos), except, now - UNDER_WAY_MS, now + UNDER_WAY_MS) as number[];
}

/** Lists those of these memories that are parts of one of these documents. */
export function listPartsOf(store: Store, memoryNos: readonly number[], documentNos: readonly number[]): number[] {
  if (documentNos.length === 0) return [];
  return store
    .prepare(
      `SELECT d.seq FROM json_each(?) AS wanted
         CROSS JOIN memory_dynamics d ON d.seq = wanted.value
         CROSS JOIN document_generations g ON g.generation_no = d.generation_no
       WHERE g.document_no IN (SELECT value FROM json_each(?))`,
    )
    .pluck()
    .all(JSON.stringify(memoryNos), JSON.stringify(documentNos)) as number[];
}

/**
 * Finds the erasure with hidden documents whose last commit is the longest ago; undefined if there is none.
 * @param latest latest time that a commit can have (Unix ms): a later one is of a clock that was set back since
 * @returns its id and the time of that commit (Unix ms); 0 if the erasure was closed or given up, or is gone, and for a
 *   time after `latest`
 */
export function findOldestErasing(
  store: Store,
  latest: number,
): { readonly id: string; readonly slicedAt: number } | undefined {
  const next = store.prepare('SELECT erasure FROM documents WHERE erasure > ? ORDER BY erasure LIMIT 1').pluck();
  const sliced = store.prepare('SELECT sliced_at FROM erasures WHERE id = ? AND closed_at IS NULL').pluck();
  let oldest: { id: string; slicedAt: number } | undefined;
  for (let id = next.get('') as string | undefined; id !== undefined; id = next.get(id) as string | undefined) {
    const stored = (sliced.get(id) as number | undefined) ?? 0;
    const slicedAt = stored > latest ? 0 : stored;
    if (oldest === undefined || slicedAt < oldest.slicedAt) oldest = { id, slicedAt };
  }
  return oldest;
}

/** Greatest number of jobs of a document that one commit detaches; each takes some microseconds. */
const DETACHED_JOBS = 1_000;

/**
 * Removes a document's number from its jobs, of which it may have any number: from at most 1,000 in one call. Once none
 * is left it deletes the document's row, with all generations that are left. Call inside a write; as long as
 * `findDocumentRow` finds the row afterwards, call it again in another write.
 */
export function deleteDocumentRow(store: Store, documentNo: number): void {
  const { changes } = store
    .prepare(
      `UPDATE jobs SET document = NULL WHERE seq IN
         (SELECT seq FROM jobs WHERE document = ? AND document > 0 LIMIT ?)`,
    )
    .run(documentNo, DETACHED_JOBS);
  if (changes === DETACHED_JOBS) return;
  store.prepare('DELETE FROM documents WHERE document_no = ?').run(documentNo);
}
