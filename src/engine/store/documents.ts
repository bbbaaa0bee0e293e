import { EngineError } from '../errors.ts';
import type { ParseResult } from '../ports.ts';
import type {
  Document,
  DocumentChunk,
  DocumentFilter,
  DocumentFormat,
  DocumentReceipt,
  DocumentState,
  DocumentWarning,
  ErasureFilter,
  Metadata,
  NewDocument,
  Provenance,
} from '../types.ts';
import type { Store } from './open-store.ts';

/**
 * Documents, their generations and the places of their chunks.
 *
 *   queued ──► processing ──► ready        the new generation is shown by one update, what it replaces is hidden by the same
 *      │           │    └────► empty       read well, no text in it
 *      │           └─────────► failed      with its reason; what was found of the document before stays
 *      └─────────────────────► cancelled
 */

/** A condition over `documents`, with the time as its last parameter: neither erased nor expired, whether the sweep was there or not. */
const IS_ALIVE = `state <> 'deleting' AND NOT EXISTS (SELECT 1 FROM document_generations e
  WHERE e.generation_no = coalesce(documents.live_no, documents.next_no) AND e.expires_at <= ?)`;

/** A condition over the alias `d` (memory_dynamics): no memory of a generation that is being made or erased. */
export const IS_SHOWN = `(d.generation_no IS NULL
  OR d.generation_no NOT IN (SELECT generation_no FROM document_generations WHERE hidden > 0))`;

export interface DocumentRow {
  readonly document_no: number;
  readonly id: string;
  readonly user_id: string;
  readonly external_id: string;
  readonly session_id: string;
  readonly source: 'upload' | 'url';
  readonly url: string;
  /** `deleting` is seen by nobody but who erases it. */
  readonly state: DocumentState | 'deleting';
  readonly error_code: string | null;
  readonly error: string | null;
  readonly live_no: number | null;
  readonly next_no: number | null;
  readonly created_at: number;
  readonly updated_at: number;
}

export interface GenerationRow {
  readonly generation_no: number;
  readonly document_no: number;
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
  readonly shown_at: number | null;
  readonly failed_at: number | null;
  readonly settled_at: number | null;
}

// ── Documents and generations ────────────────────────────────────────────────────────────────────────────────────────

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

/** Begins a new reading of a document, hidden. @returns its number */
export function insertGeneration(
  store: Store,
  {
    documentNo,
    document,
    always,
    now,
  }: {
    readonly documentNo: number;
    readonly document: NewDocument;
    /** Also where its page has not changed. */
    readonly always: boolean;
    readonly now: number;
  },
): number {
  const { source } = document;
  const file = source.kind === 'upload' ? source : null;
  const result = store
    .prepare(
      `INSERT INTO document_generations (document_no, created_at, session_id, source, url, always, upload, file_name,
         declared, charset, file_hash, bytes, given_title, type, tags, metadata, event_time, expires_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      ...[documentNo, now, document.sessionId, source.kind, source.kind === 'url' ? source.url : '', always ? 1 : 0],
      ...[file?.name ?? '', file?.fileName ?? '', file?.declared ?? null, file?.charset ?? null],
      ...[file === null ? null : Buffer.from(file.sha256), file?.bytes ?? null, document.title, document.type],
      ...[JSON.stringify(document.tags), JSON.stringify(document.metadata), document.eventTime],
      document.expiresAt && Math.max(1, document.expiresAt),
    );
  const generationNo = Number(result.lastInsertRowid);
  store
    .prepare(
      `UPDATE documents SET next_no = ?, state = 'queued', error_code = NULL, error = NULL, updated_at = ? WHERE document_no = ?`,
    )
    .run(generationNo, now, documentNo);
  if (findDocumentRow(store, documentNo)?.live_no === null) takeIdentity(store, documentNo, generationNo);
  return generationNo;
}

/** Where a document comes from is what the reading says that queries find: one that fails or is cancelled leaves no trace of it. */
function takeIdentity(store: Store, documentNo: number, generationNo: number): void {
  store
    .prepare(
      `UPDATE documents SET (session_id, source, url) =
         (SELECT session_id, source, url FROM document_generations WHERE generation_no = ?) WHERE document_no = ?`,
    )
    .run(generationNo, documentNo);
}

export function findDocumentRow(store: Store, documentNo: number): DocumentRow | undefined {
  return store.prepare('SELECT * FROM documents WHERE document_no = ?').get(documentNo) as DocumentRow | undefined;
}

/** @throws EngineError `not_found`, also for one that is being erased or has expired */
export function getDocumentRow(store: Store, id: string, now: number): DocumentRow {
  const row = store.prepare(`SELECT * FROM documents WHERE id = ? AND ${IS_ALIVE}`).get(id, now) as
    DocumentRow | undefined;
  if (row === undefined) throw new EngineError('not_found', 'no document with this id');
  return row;
}

export function getGenerationRow(store: Store, generationNo: number): GenerationRow {
  const row = store.prepare('SELECT * FROM document_generations WHERE generation_no = ?').get(generationNo) as
    GenerationRow | undefined;
  if (row === undefined) throw new EngineError('not_found', 'no reading with this number');
  return row;
}

/**
 * The user's document of this external id, URL or file, whichever the new one is known by, in this order. An expired one is not known
 * any more: what is about to be erased must not swallow a new one.
 */
export function findKnownDocument(store: Store, document: NewDocument, now: number): DocumentRow | undefined {
  const { externalId, source, sessionId, userId } = document;
  const alive = `user_id = ? AND ${IS_ALIVE}`;
  if (externalId !== null) {
    return store
      .prepare(`SELECT * FROM documents WHERE external_id = ? AND external_id <> '' AND ${alive} LIMIT 1`)
      .get(externalId, userId, now) as DocumentRow | undefined;
  }
  if (source.kind === 'url') {
    // A page that is about to replace what a document came from is known as well, though the document does not say so yet.
    return store
      .prepare(
        `SELECT * FROM documents WHERE document_no IN (SELECT document_no FROM documents WHERE url = ? AND url <> ''
           UNION ALL SELECT document_no FROM document_generations WHERE url = ? AND url <> '')
           AND external_id = '' AND ${alive} ORDER BY document_no LIMIT 1`,
      )
      .get(source.url, source.url, userId, now) as DocumentRow | undefined;
  }
  return store
    .prepare(
      `SELECT * FROM documents WHERE document_no IN (SELECT document_no FROM document_generations
           WHERE file_hash = ? AND source = 'upload' AND session_id = ?)
         AND external_id = '' AND ${alive} ORDER BY document_no LIMIT 1`,
    )
    .get(Buffer.from(source.sha256), sessionId, userId, now) as DocumentRow | undefined;
}

export function setDocumentState(
  store: Store,
  documentNo: number,
  { state, error = null, now }: { state: DocumentRow['state']; error?: Document['error']; now: number },
): void {
  store
    .prepare('UPDATE documents SET state = ?, error_code = ?, error = ?, updated_at = ? WHERE document_no = ?')
    .run(state, error?.code ?? null, error?.message.slice(0, 1_000) ?? null, now, documentNo);
}

/** The reading has given up. What was found of the document before stays, and says so. */
export function failDocument(
  store: Store,
  documentNo: number,
  { code, message, now }: { code: string; message: string; now: number },
): void {
  const row = findDocumentRow(store, documentNo);
  if (row === undefined || row.state === 'deleting') return;
  const state = row.live_no === null ? 'failed' : 'ready';
  setDocumentState(store, documentNo, { state, error: { code, message }, now });
  store.prepare('UPDATE document_generations SET failed_at = ? WHERE generation_no = ?').run(now, row.next_no);
}

export function notePagesDone(store: Store, generationNo: number, done: number): void {
  store.prepare('UPDATE document_generations SET pages_done = ? WHERE generation_no = ?').run(done, generationNo);
}

/** What the file turned out to be, once it was fetched. */
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

export function putParsed(store: Store, generationNo: number, title: string, parsed: ParseResult): void {
  store
    .prepare(
      `UPDATE document_generations SET format = ?, title = ?, authors = ?, language = ?, published_at = ?, modified_at = ?,
         pages = ?, pages_done = coalesce(?, 0), characters = ?, tokens = ?, chunks = ?, warnings = ? WHERE generation_no = ?`,
    )
    .run(
      ...[parsed.format, title, JSON.stringify(parsed.authors), parsed.language, parsed.publishedAt],
      ...[parsed.modifiedAt, parsed.pages, parsed.pages, parsed.characters, parsed.tokens, parsed.chunks.length],
      ...[JSON.stringify(parsed.warnings), generationNo],
    );
}

export function putStages(store: Store, generationNo: number, stages: Readonly<Record<string, number>>): void {
  store
    .prepare('UPDATE document_generations SET stages = json_patch(stages, ?) WHERE generation_no = ?')
    .run(JSON.stringify(stages), generationNo);
}

/** The file is not needed any more. @returns its name in the uploads folder, '' for none */
export function releaseUpload(store: Store, generationNo: number): string {
  const row = store.prepare('SELECT upload FROM document_generations WHERE generation_no = ?').get(generationNo) as
    { upload: string } | undefined;
  store.prepare(`UPDATE document_generations SET upload = '' WHERE generation_no = ?`).run(generationNo);
  return row?.upload ?? '';
}

export interface NamedUpload {
  readonly generationNo: number;
  readonly upload: string;
}

/** Files of generations that are shown: nobody reads them again. */
export function listReadUploads(store: Store): NamedUpload[] {
  return store
    .prepare(
      `SELECT generation_no AS generationNo, upload FROM document_generations INDEXED BY document_generations_uploads
       WHERE upload <> '' AND shown_at > 0 LIMIT 1000`,
    )
    .all() as NamedUpload[];
}

/** Files of generations that had given up by then, and that nobody had read again. */
export function listFailedUploads(store: Store, before: number): NamedUpload[] {
  return store
    .prepare(
      `SELECT generation_no AS generationNo, upload FROM document_generations INDEXED BY document_generations_uploads
       WHERE upload <> '' AND failed_at < ? LIMIT 1000`,
    )
    .all(before) as NamedUpload[];
}

export function listUploads(store: Store): Set<string> {
  const rows = store.prepare(`SELECT upload FROM document_generations WHERE upload <> ''`).all() as {
    upload: string;
  }[];
  return new Set(rows.map(({ upload }) => upload));
}

/** Files that a worker is going to read. */
export function listUnreadUploads(store: Store): string[] {
  return store
    .prepare(
      `SELECT upload FROM document_generations INDEXED BY document_generations_uploads
       WHERE upload <> '' AND failed_at IS NULL AND shown_at IS NULL`,
    )
    .pluck()
    .all() as string[];
}

/** Bytes of the files that wait to be read; what has given up keeps its file for a while, and no other from being taken in. */
export function waitingBytes(store: Store): number {
  const row = store
    .prepare(
      `SELECT coalesce(sum(bytes), 0) AS bytes FROM document_generations INDEXED BY document_generations_uploads
       WHERE upload <> '' AND failed_at IS NULL`,
    )
    .get() as { bytes: number };
  return row.bytes;
}

/**
 * Documents of these users, sessions and tags, by what they say themselves in the reading that is found or in the one under way, whatever
 * has become of it. One that was cancelled before it was read has no tags left.
 */
export function listMatchingDocuments(store: Store, filter: ErasureFilter, limit: number): number[] {
  const conditions = [`o.state <> 'deleting'`];
  const values: string[] = [];
  const require = (condition: string, wanted: readonly string[] | undefined) => {
    if (wanted === undefined) return;
    conditions.push(condition);
    values.push(JSON.stringify(wanted));
  };
  require('o.user_id IN (SELECT value FROM json_each(?))', filter.userIds);
  require('coalesce(g.session_id, o.session_id) IN (SELECT value FROM json_each(?))', filter.sessionIds);
  const tags = `SELECT value FROM json_each(coalesce(g.tags, '[]'))`;
  require(`NOT EXISTS (SELECT 1 FROM json_each(?) AS wanted WHERE wanted.value NOT IN (${tags}))`, filter.tags);
  return store
    .prepare(
      `SELECT DISTINCT o.document_no FROM documents o
         LEFT JOIN document_generations g ON g.generation_no IN (o.live_no, o.next_no)
       WHERE ${conditions.join(' AND ')} LIMIT ?`,
    )
    .pluck()
    .all(...values, limit) as number[];
}

/** Names of the files that these documents have yet to be read from. */
export function listUploadsOf(store: Store, documentNos: readonly number[]): string[] {
  return store
    .prepare(
      `SELECT g.upload FROM json_each(?) AS wanted CROSS JOIN document_generations g ON g.document_no = wanted.value
       WHERE g.upload <> ''`,
    )
    .pluck()
    .all(JSON.stringify(documentNos)) as string[];
}

/** Documents whose time has come. */
export function listExpiredDocuments(store: Store, now: number): number[] {
  const rows = store
    .prepare(
      `SELECT DISTINCT o.document_no AS no FROM document_generations g JOIN documents o ON o.document_no = g.document_no
       WHERE g.expires_at > 0 AND g.expires_at <= ? AND o.state <> 'deleting' AND coalesce(o.live_no, o.next_no) = g.generation_no`,
    )
    .all(now) as { no: number }[];
  return rows.map(({ no }) => no);
}

// ── Showing and hiding ───────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Makes a generation the one that queries find, and hides the one before, all at once. Chunks that both have move over.
 * Call inside a write.
 */
export function showGeneration(
  store: Store,
  { documentNo, generationNo, receipt, now }: ShowOptions,
): { readonly replaced: number | null } {
  const { live_no: replaced } = findDocumentRow(store, documentNo) as DocumentRow;
  if (replaced !== null) {
    store
      .prepare(
        `UPDATE memory_dynamics SET generation_no = :next WHERE generation_no = :live
           AND seq IN (SELECT memory FROM chunks WHERE generation_no = :next)`,
      )
      .run({ next: generationNo, live: replaced });
    store.prepare('UPDATE document_generations SET hidden = 1 WHERE generation_no = ?').run(replaced);
  }
  store
    .prepare('UPDATE document_generations SET hidden = 0, shown_at = ?, receipt = ? WHERE generation_no = ?')
    .run(now, JSON.stringify(receipt), generationNo);
  store
    .prepare(
      `UPDATE documents SET live_no = ?, next_no = NULL, state = 'processing', error_code = NULL, error = NULL, updated_at = ?
       WHERE document_no = ?`,
    )
    .run(generationNo, now, documentNo);
  takeIdentity(store, documentNo, generationNo);
  return { replaced };
}

export interface ShowOptions {
  readonly documentNo: number;
  readonly generationNo: number;
  readonly receipt: DocumentReceipt;
  readonly now: number;
}

/** The new generation is given up; its memories are hidden already and wait to be erased. */
export function dropNextGeneration(store: Store, documentNo: number): void {
  store.prepare('UPDATE documents SET next_no = NULL WHERE document_no = ?').run(documentNo);
}

/** From here on nobody sees the document. */
export function hideDocument(store: Store, documentNo: number, now: number): void {
  store.prepare('UPDATE document_generations SET hidden = 1 WHERE document_no = ?').run(documentNo);
  store
    .prepare(
      `UPDATE documents SET state = 'deleting', live_no = NULL, next_no = NULL, updated_at = ? WHERE document_no = ?`,
    )
    .run(now, documentNo);
}

/** All chunks are embedded and linked, or have given up. */
export function noteSettled(store: Store, documentNo: number, now: number): void {
  store
    .prepare(`UPDATE documents SET state = 'ready', updated_at = ? WHERE document_no = ? AND state = 'processing'`)
    .run(now, documentNo);
  store
    .prepare(
      `UPDATE document_generations SET settled_at = :now, stages = json_set(stages, '$.encode', :now - shown_at)
       WHERE generation_no = (SELECT live_no FROM documents WHERE document_no = :documentNo) AND settled_at IS NULL`,
    )
    .run({ now, documentNo });
}

/** A generation that no document points to any more, of the document of this id if one is given: what is to be erased of it. */
export function findAbandonedGeneration(
  store: Store,
  id: string | null = null,
): { generationNo: number; documentNo: number } | undefined {
  return store
    .prepare(
      `SELECT g.generation_no AS generationNo, g.document_no AS documentNo
       FROM document_generations g INDEXED BY document_generations_hidden JOIN documents o ON o.document_no = g.document_no
       WHERE g.hidden > 0 AND g.generation_no IS NOT o.next_no AND g.generation_no IS NOT o.live_no
         AND o.id = coalesce(?, o.id) ORDER BY g.generation_no LIMIT 1`,
    )
    .get(id) as { generationNo: number; documentNo: number } | undefined;
}

/** A look that takes no lock. */
export function hasAbandoned(store: Store): boolean {
  return findAbandonedGeneration(store) !== undefined || findErasedDocument(store) !== undefined;
}

/** A document that is being erased and has no generation left. */
export function findErasedDocument(store: Store, id: string | null = null): number | undefined {
  const row = store
    .prepare(
      `SELECT document_no AS no FROM documents o WHERE state = 'deleting' AND id = coalesce(?, id)
         AND NOT EXISTS (SELECT 1 FROM document_generations g WHERE g.document_no = o.document_no) LIMIT 1`,
    )
    .get(id) as { no: number } | undefined;
  return row?.no;
}

export function deleteDocumentRow(store: Store, documentNo: number): void {
  store.prepare('UPDATE jobs SET document = NULL WHERE document = ?').run(documentNo);
  store.prepare('DELETE FROM documents WHERE document_no = ?').run(documentNo);
}

/** Its places go with it. */
export function deleteGeneration(store: Store, generationNo: number): void {
  store.prepare('DELETE FROM document_generations WHERE generation_no = ?').run(generationNo);
}

// ── Chunks ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The place of the memory that stands for the whole document. */
export const ROOT_INDEX = -1;

export interface ChunkPlace {
  readonly index: number;
  readonly startOffset: number;
  readonly endOffset: number;
  readonly pageFrom: number | null;
  readonly pageTo: number | null;
  readonly headingPath: readonly string[];
  readonly tokens: number;
}

export function insertChunk(store: Store, generationNo: number, memory: number, place: ChunkPlace): void {
  store
    .prepare(
      `INSERT INTO chunks (generation_no, chunk_index, memory, start_offset, end_offset, page_from, page_to, heading_path, tokens)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      ...[generationNo, place.index, memory, place.startOffset, place.endOffset, place.pageFrom, place.pageTo],
      ...[JSON.stringify(place.headingPath), place.tokens],
    );
}

/** At most `limit` memories that a generation brought, the last first, so that none has a successor left when it goes. */
export function listMemoriesOfGeneration(store: Store, generationNo: number, limit: number): number[] {
  const rows = store
    .prepare('SELECT seq FROM memory_dynamics WHERE generation_no = ? AND generation_no > 0 ORDER BY seq DESC LIMIT ?')
    .all(generationNo, limit) as { seq: number }[];
  return rows.map(({ seq }) => seq);
}

/** Which documents these memories belong to, without those that are being erased already. */
export function documentsOfMemories(store: Store, seqs: readonly number[]): number[] {
  const rows = store
    .prepare(
      `SELECT DISTINCT g.document_no AS no FROM json_each(?) AS wanted CROSS JOIN memory_dynamics d ON d.seq = wanted.value
         CROSS JOIN document_generations g ON g.generation_no = d.generation_no
         CROSS JOIN documents o ON o.document_no = g.document_no WHERE o.state <> 'deleting'`,
    )
    .all(JSON.stringify(seqs)) as { no: number }[];
  return rows.map(({ no }) => no);
}

/** How many chunks a generation has, its root not among them. */
export function countChunks(store: Store, generationNo: number): number {
  const row = store
    .prepare(`SELECT count(*) AS n FROM chunks WHERE generation_no = ? AND chunk_index > ${ROOT_INDEX}`)
    .get(generationNo) as { n: number };
  return row.n;
}

/** Deletes the places of a generation's memories, not the memories. */
export function deleteChunks(store: Store, generationNo: number): void {
  store.prepare('DELETE FROM chunks WHERE generation_no = ?').run(generationNo);
}

/** The memories of a generation, those that it kept among them, in the order of the text. */
export function listParts(store: Store, generationNo: number): number[] {
  const rows = store
    .prepare('SELECT memory FROM chunks WHERE generation_no = ? ORDER BY chunk_index')
    .all(generationNo) as { memory: number }[];
  return rows.map(({ memory }) => memory);
}

/** What a generation's memories say, in the order of the text and the root first. */
export function* readChunkTexts(
  store: Store,
  generationNo: number,
): Generator<{ readonly memory: number; readonly index: number; readonly title: string; readonly content: string }> {
  yield* store
    .prepare(
      `SELECT c.memory, c.chunk_index AS "index", m.title, m.content FROM chunks c JOIN memories m ON m.seq = c.memory
       WHERE c.generation_no = ? ORDER BY c.chunk_index`,
    )
    .iterate(generationNo) as IterableIterator<{ memory: number; index: number; title: string; content: string }>;
}

/** The chunks that stand at most `each` places from one of these in its document, in the order of the text. */
export function chunksAround(
  store: Store,
  seqs: readonly number[],
  each: number,
): { readonly seq: number; readonly memory: number; readonly distance: number }[] {
  return store
    .prepare(
      `SELECT d.seq, near.memory, near.chunk_index - c.chunk_index AS distance
       FROM json_each(?) AS wanted CROSS JOIN memory_dynamics d ON d.seq = wanted.value
         CROSS JOIN chunks c ON c.memory = d.seq AND c.generation_no = d.generation_no AND c.chunk_index > ${ROOT_INDEX}
         CROSS JOIN chunks near ON near.generation_no = c.generation_no
           AND near.chunk_index BETWEEN max(0, c.chunk_index - ?) AND c.chunk_index + ?
       WHERE near.chunk_index <> c.chunk_index ORDER BY d.seq, near.chunk_index`,
    )
    .all(JSON.stringify(seqs), each, each) as { seq: number; memory: number; distance: number }[];
}

const CONTENT_SLICE = 16;

/**
 * The document's text in pieces: each chunk without what it repeats of the one before. Between two pieces the document may be replaced
 * or deleted, and what was read of it goes: a text that is not whole must not look as if it were.
 * @throws EngineError `conflict` at the first chunk that is gone
 */
export function* readDocumentText(open: () => Store, generationNo: number): Generator<string> {
  const { chunks } = getGenerationRow(open(), generationNo);
  for (let after = ROOT_INDEX, end = 0; after + 1 < chunks;) {
    const rows = open()
      .prepare(
        `SELECT c.chunk_index AS "index", c.start_offset AS start, c.end_offset AS "end", m.content
         FROM chunks c JOIN memories m ON m.seq = c.memory
         WHERE c.generation_no = ? AND c.chunk_index > ? ORDER BY c.chunk_index LIMIT ${CONTENT_SLICE}`,
      )
      .all(generationNo, after) as { index: number; start: number; end: number; content: string }[];
    if (rows.length === 0) throw goneMeanwhile();
    for (const row of rows) {
      if (row.index !== after + 1) throw goneMeanwhile();
      yield row.content.slice(Math.max(0, end - row.start));
      end = row.end;
      after = row.index;
    }
  }
}

function goneMeanwhile(): EngineError {
  return new EngineError('conflict', 'the document was replaced or deleted while it was sent: read it again');
}

// ── As readers see them ──────────────────────────────────────────────────────────────────────────────────────────────

/** @throws EngineError as `getDocumentRow` does */
export function getDocument(store: Store, id: string, now: number): Document {
  return toDocument(store, getDocumentRow(store, id, now));
}

/** Newest first. */
export function listDocuments(
  store: Store,
  filter: DocumentFilter,
  { limit, offset, now }: { readonly limit: number; readonly offset: number; readonly now: number },
): { items: Document[]; total: number } {
  const conditions = [IS_ALIVE];
  const values: (string | number)[] = [now];
  const requireOneOf = (column: string, among: readonly string[] | undefined) => {
    if (among === undefined) return;
    conditions.push(`${column} IN (SELECT value FROM json_each(?))`);
    values.push(JSON.stringify(among));
  };
  requireOneOf('user_id', filter.userIds);
  requireOneOf('session_id', filter.sessionIds);
  requireOneOf('state', filter.states);
  requireOneOf('external_id', filter.externalIds);
  requireOneOf('id', filter.ids);
  if (filter.sha256 !== undefined) {
    conditions.push(
      'document_no IN (SELECT document_no FROM document_generations WHERE file_hash = unhex(?) AND generation_no IN (live_no, next_no))',
    );
    values.push(filter.sha256);
  }
  const where = conditions.join(' AND ');
  const { total } = store.prepare(`SELECT count(*) AS total FROM documents WHERE ${where}`).get(...values) as {
    total: number;
  };
  const rows = store
    .prepare(`SELECT * FROM documents WHERE ${where} ORDER BY document_no DESC LIMIT ? OFFSET ?`)
    .all(...values, limit, offset) as DocumentRow[];
  return { items: rows.map((row) => toDocument(store, row)), total };
}

/**
 * What queries find is what it says of itself, also while another reading is under way or has failed: of that one tell the state, the
 * error and the progress.
 */
export function toDocument(store: Store, row: DocumentRow): Document {
  const shown = row.live_no ?? row.next_no ?? lastGeneration(store, row.document_no);
  const generation = shown === null ? undefined : getGenerationRow(store, shown);
  const isBeingRead = row.next_no !== null && (row.state === 'queued' || row.state === 'processing');
  const read = isBeingRead ? getGenerationRow(store, row.next_no) : generation;
  const job = store
    .prepare(`SELECT id FROM jobs WHERE document = ? AND document > 0 AND kind = 'document' ORDER BY seq DESC LIMIT 1`)
    .get(row.document_no) as { id: string } | undefined;
  return {
    id: row.id,
    userId: row.user_id,
    sessionId: row.session_id,
    externalId: row.external_id === '' ? null : row.external_id,
    state: row.state as DocumentState,
    error: row.error_code === null ? null : { code: row.error_code, message: row.error ?? '' },
    source: row.source,
    url: row.url === '' ? null : row.url,
    fileName: generation === undefined || generation.file_name === '' ? null : generation.file_name,
    format: generation?.format ?? generation?.declared ?? null,
    bytes: generation?.bytes ?? null,
    sha256: generation?.file_hash?.toString('hex') ?? null,
    title: generation === undefined ? '' : generation.title || generation.given_title,
    authors: JSON.parse(generation?.authors ?? '[]') as string[],
    language: generation?.language ?? null,
    publishedAt: generation?.published_at ?? null,
    modifiedAt: generation?.modified_at ?? null,
    type: generation?.type ?? null,
    tags: JSON.parse(generation?.tags ?? '[]') as string[],
    metadata: JSON.parse(generation?.metadata ?? '{}') as Metadata,
    eventTime: generation?.event_time ?? null,
    expiresAt: generation?.expires_at ?? null,
    rootMemoryId: row.live_no === null ? null : findRootId(store, row.live_no),
    chunks: generation?.chunks ?? 0,
    pages: generation?.pages ?? null,
    characters: generation?.characters ?? 0,
    tokens: generation?.tokens ?? 0,
    progress: progressOf(store, read),
    receipt: generation?.receipt == null ? null : (JSON.parse(generation.receipt) as DocumentReceipt),
    warnings: JSON.parse(generation?.warnings ?? '[]') as DocumentWarning[],
    jobId: job?.id ?? null,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    shownAt: generation?.shown_at ?? null,
    readyAt: generation?.settled_at ?? null,
  };
}

function lastGeneration(store: Store, documentNo: number): number | null {
  const row = store
    .prepare('SELECT max(generation_no) AS no FROM document_generations WHERE document_no = ?')
    .get(documentNo) as { no: number | null };
  return row.no;
}

function findRootId(store: Store, generationNo: number): string | null {
  const row = store
    .prepare(
      `SELECT m.id FROM chunks c JOIN memories m ON m.seq = c.memory WHERE c.generation_no = ? AND c.chunk_index = ${ROOT_INDEX}`,
    )
    .get(generationNo) as { id: string } | undefined;
  return row?.id ?? null;
}

/** Of the chunks that are stored, those that owe nothing: it grows from nothing, whatever the file turns out to hold. */
function progressOf(store: Store, generation: GenerationRow | undefined): Document['progress'] {
  if (generation === undefined) return { pagesDone: 0, chunks: 0, embedded: 0, linked: 0, failed: 0, stages: {} };
  const { generation_no: generationNo, document_no: documentNo } = generation;
  const { stored, failed } = store
    .prepare(
      `SELECT count(*) AS stored, count(*) FILTER (WHERE d.state = 'failed') AS failed
       FROM chunks c CROSS JOIN memory_dynamics d ON d.seq = c.memory WHERE c.generation_no = ? AND c.chunk_index > ${ROOT_INDEX}`,
    )
    .get(generationNo) as { stored: number; failed: number };
  const { unembedded, unlinked } = store
    .prepare(
      `SELECT count(*) FILTER (WHERE j.step = 'encode') AS unembedded, count(*) AS unlinked
       FROM jobs j INDEXED BY jobs_by_document CROSS JOIN chunks c ON c.memory = j.memory
       WHERE j.document = ? AND j.document > 0 AND j.kind = 'memory' AND j.state IN ('queued', 'active', 'failed')
         AND c.generation_no = ? AND c.chunk_index > ${ROOT_INDEX}`,
    )
    .get(documentNo, generationNo) as { unembedded: number; unlinked: number };
  return {
    pagesDone: generation.pages_done,
    chunks: generation.chunks,
    embedded: Math.max(0, stored - unembedded - failed),
    linked: Math.max(0, stored - unlinked - failed),
    failed,
    stages: JSON.parse(generation.stages) as Record<string, number>,
  };
}

interface ProvenanceRow {
  readonly memory: number;
  readonly memory_id: string;
  readonly id: string;
  readonly title: string;
  readonly given_title: string;
  readonly file_name: string;
  readonly url: string;
  readonly format: DocumentFormat | null;
  readonly file_hash: Buffer | null;
  readonly chunk_index: number;
  readonly chunks: number;
  readonly start_offset: number;
  readonly end_offset: number;
  readonly page_from: number | null;
  readonly page_to: number | null;
  readonly heading_path: string;
  readonly tokens: number;
  readonly created_at: number;
}

const PROVENANCE = `c.memory, m.id AS memory_id, o.id, g.title, g.given_title, g.file_name, g.url, g.format, g.file_hash,
  c.chunk_index, g.chunks, c.start_offset, c.end_offset, c.page_from, c.page_to, c.heading_path, c.tokens, g.created_at`;

/** Where these memories stand in their documents; those that no document brought are left out. */
export function readProvenance(store: Store, seqs: readonly number[]): Map<number, Provenance> {
  const rows = store
    .prepare(
      `SELECT ${PROVENANCE} FROM json_each(?) AS wanted CROSS JOIN memory_dynamics d ON d.seq = wanted.value
         CROSS JOIN document_generations g ON g.generation_no = d.generation_no
         CROSS JOIN documents o ON o.document_no = g.document_no
         CROSS JOIN chunks c ON c.memory = d.seq AND c.generation_no = d.generation_no
         CROSS JOIN memories m ON m.seq = d.seq`,
    )
    .all(JSON.stringify(seqs)) as ProvenanceRow[];
  return new Map(rows.map((row) => [row.memory, toProvenance(row)]));
}

export function listDocumentChunks(
  store: Store,
  generationNo: number,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): DocumentChunk[] {
  const rows = store
    .prepare(
      `SELECT ${PROVENANCE} FROM chunks c JOIN document_generations g ON g.generation_no = c.generation_no
         JOIN documents o ON o.document_no = g.document_no JOIN memories m ON m.seq = c.memory
       WHERE c.generation_no = ? AND c.chunk_index > ${ROOT_INDEX} ORDER BY c.chunk_index LIMIT ? OFFSET ?`,
    )
    .all(generationNo, limit, offset) as ProvenanceRow[];
  return rows.map((row) => ({ memoryId: row.memory_id, provenance: toProvenance(row), tokens: row.tokens }));
}

function toProvenance(row: ProvenanceRow): Provenance {
  const isRoot = row.chunk_index === ROOT_INDEX;
  return {
    documentId: row.id,
    title: row.title || row.given_title,
    fileName: row.file_name === '' ? null : row.file_name,
    url: row.url === '' ? null : row.url,
    format: row.format,
    sha256: row.file_hash?.toString('hex') ?? null,
    chunk: isRoot ? null : row.chunk_index,
    chunks: row.chunks,
    startOffset: isRoot ? null : row.start_offset,
    endOffset: isRoot ? null : row.end_offset,
    pageFrom: row.page_from,
    pageTo: row.page_to,
    headingPath: JSON.parse(row.heading_path) as string[],
    ingestedAt: row.created_at,
  };
}
