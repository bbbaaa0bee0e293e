import { parseStored } from './stored-json.ts';
import type { Document, DocumentFilter, DocumentState, Metadata, DocumentReceipt, DocumentWarning } from '../types.ts';
import { ROOT_INDEX } from './chunks.ts';
import { getGenerationRow, type GenerationRow } from './document-generations.ts';
import { asOf, getDocumentRow, IS_ALIVE, type DocumentRow } from './documents.ts';
import { UNFINISHED } from './jobs.ts';
import type { Store } from './open-store.ts';
import { isByOneOf, nameOfWriter } from './writers.ts';

/**
 * Reads a document as callers see it.
 * @throws EngineError `not_found`, also for a document that has expired or is being erased
 */
export function getDocument(store: Store, id: string, now: number): Document {
  return toDocument(store, getDocumentRow(store, id, now));
}

/**
 * Lists the numbers of documents that meet all conditions of a filter, the last added first. Documents that have
 * expired at `now` (Unix ms) or are being erased are left out.
 * @returns one page of them, and the total number that match
 */
export function listDocumentNos(
  store: Store,
  filter: DocumentFilter,
  { limit, offset, now }: { readonly limit: number; readonly offset: number; readonly now: number },
): { documentNos: number[]; total: number } {
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
  if (filter.writtenBy !== undefined) {
    conditions.push(
      `document_no IN (SELECT document_no FROM document_generations
         WHERE ${isByOneOf('writer_no')} AND generation_no IN (live_no, next_no))`,
    );
    values.push(JSON.stringify(filter.writtenBy));
  }
  if (filter.sha256 !== undefined) {
    conditions.push(
      `document_no IN (SELECT document_no FROM document_generations
         WHERE file_hash = unhex(?) AND generation_no IN (live_no, next_no))`,
    );
    values.push(filter.sha256);
  }
  const where = conditions.join(' AND ');
  const { total } = store.prepare(`SELECT count(*) AS total FROM documents WHERE ${where}`).get(...values) as {
    total: number;
  };
  const documentNos = store
    .prepare(`SELECT document_no FROM documents WHERE ${where} ORDER BY document_no DESC LIMIT ? OFFSET ?`)
    .pluck()
    .all(...values, limit, offset) as number[];
  return { documentNos, total };
}

/** Length of a slice of documents as JSON (UTF-16 code units) from which no further document is read for it. */
const SLICE_CHARACTERS = 256 * 1024;

/** The first documents of a list of numbers, and the numbers that follow. */
export interface DocumentSlice {
  readonly items: readonly Document[];
  readonly rest: readonly number[];
}

/**
 * Reads documents by number as they are at `now` (Unix ms), in the given order, until they have 256 Ki code units as
 * JSON together; one that does not exist is left out.
 */
export function readDocuments(store: Store, documentNos: readonly number[], now: number): DocumentSlice {
  const select = store.prepare('SELECT * FROM documents WHERE document_no = ?');
  const items: Document[] = [];
  let left = SLICE_CHARACTERS;
  let read = 0;
  for (; read < documentNos.length && left > 0; read += 1) {
    const row = select.get(documentNos[read]) as DocumentRow | undefined;
    if (row === undefined) continue;
    const document = toDocument(store, asOf(store, row, now));
    items.push(document);
    left -= JSON.stringify(document).length;
  }
  return { items, rest: documentNos.slice(read) };
}

/**
 * Turns a row into a document as callers see it. Its fields are those of the generation (parsed version) that queries
 * find; if they find none, those of the next or else the latest generation. `state` and `error` come from the latest
 * reading. `progress` is that of a reading under way, or without one that of the generation of the other fields.
 */
export function toDocument(store: Store, row: DocumentRow): Document {
  const shown = row.live_no ?? row.next_no ?? lastGeneration(store, row.document_no);
  const generation = shown === null ? undefined : getGenerationRow(store, shown);
  const mayBeRead = row.error_code === null && (row.state === 'queued' || row.state === 'processing');
  const read = mayBeRead && row.next_no !== null ? getGenerationRow(store, row.next_no) : generation;
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
    authors: parseStored(generation?.authors ?? '[]') as string[],
    language: generation?.language ?? null,
    publishedAt: generation?.published_at ?? null,
    modifiedAt: generation?.modified_at ?? null,
    type: generation?.type ?? null,
    tags: parseStored(generation?.tags ?? '[]') as string[],
    metadata: parseStored(generation?.metadata ?? '{}') as Metadata,
    eventTime: generation?.event_time ?? null,
    expiresAt: generation?.expires_at ?? null,
    writtenBy: nameOfWriter(store, generation?.writer_no ?? null),
    rootMemoryId: row.live_no === null ? null : findRootId(store, row.live_no),
    chunks: generation?.chunks ?? 0,
    pages: generation?.pages ?? null,
    characters: generation?.characters ?? 0,
    tokens: generation?.tokens ?? 0,
    progress: progressOf(store, read),
    receipt: generation?.receipt == null ? null : (parseStored(generation.receipt) as DocumentReceipt),
    warnings: parseStored(generation?.warnings ?? '[]') as DocumentWarning[],
    jobId: job?.id ?? null,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    shownAt: generation?.shown_at ?? null,
    readyAt: generation?.settled_at ?? null,
  };
}

/**
 * Lists those of these documents that lack one of the tags at `now` (Unix ms), by number. The tags of a document are
 * those that `toDocument` returns for its row as `asOf` returns it.
 */
export function listWithoutTags(
  store: Store,
  documentNos: readonly number[],
  { tags, now }: { readonly tags: readonly string[]; readonly now: number },
): number[] {
  if (documentNos.length === 0) return [];
  const rows = store
    .prepare(
      `SELECT o.document_no AS documentNo, g.tags FROM json_each(?) AS wanted
       CROSS JOIN documents o ON o.document_no = wanted.value
       CROSS JOIN document_generations g ON g.generation_no = coalesce(
         (SELECT o.next_no FROM document_generations e WHERE e.generation_no = o.live_no AND e.expires_at <= ?),
         o.live_no, o.next_no,
         (SELECT max(generation_no) FROM document_generations l WHERE l.document_no = o.document_no))`,
    )
    .all(JSON.stringify(documentNos), now) as { documentNo: number; tags: string }[];
  const lacksOne = (own: readonly string[]) => !tags.every((tag) => own.includes(tag));
  return rows.filter((row) => lacksOne(parseStored(row.tags) as string[])).map(({ documentNo }) => documentNo);
}

/**
 * Lists the names of documents without repetition: titles, file names, URLs and external ids, those of replaced and
 * waiting versions included.
 */
export function listNames(store: Store, documentNos: readonly number[]): string[] {
  const rows = store
    .prepare(
      `SELECT o.external_id, o.url AS known_url, g.title, g.given_title, g.file_name, g.url
       FROM json_each(?) AS wanted CROSS JOIN documents o ON o.document_no = wanted.value
       LEFT JOIN document_generations g ON g.document_no = o.document_no
       ORDER BY o.document_no, g.generation_no DESC`,
    )
    .all(JSON.stringify(documentNos)) as NameRow[];
  return namesIn(rows);
}

/** Lists the titles, file names and URLs of the versions of these documents that wait, without repetition. */
export function listNamesOfNext(store: Store, documentNos: readonly number[]): string[] {
  const rows = store
    .prepare(
      `SELECT g.title, g.given_title, g.file_name, g.url
       FROM json_each(?) AS wanted CROSS JOIN documents o ON o.document_no = wanted.value
       CROSS JOIN document_generations g ON g.generation_no = o.next_no`,
    )
    .all(JSON.stringify(documentNos)) as NameRow[];
  return namesIn(rows);
}

type NameRow = Readonly<Record<string, string | null>>;

function namesIn(rows: readonly NameRow[]): string[] {
  const names = new Set(rows.flatMap((row) => Object.values(row)));
  return [...names].filter((name): name is string => name !== null && name !== '');
}

/**
 * Lists those of these documents, by number, of which queries find a version that none of these writers handed in,
 * while another version waits, is being read or could not be read; none without writers.
 */
export function listWithOwnText(
  store: Store,
  documentNos: readonly number[],
  writers: readonly string[] | undefined,
): number[] {
  if (writers === undefined || documentNos.length === 0) return [];
  return store
    .prepare(
      `SELECT o.document_no FROM json_each(?) AS wanted
       CROSS JOIN documents o ON o.document_no = wanted.value
       CROSS JOIN document_generations g ON g.generation_no = o.live_no
       WHERE o.next_no IS NOT NULL AND (g.writer_no IS NULL OR NOT (${isByOneOf('g.writer_no')}))`,
    )
    .pluck()
    .all(JSON.stringify(documentNos), JSON.stringify(writers)) as number[];
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
      `SELECT m.id FROM chunks c JOIN memories m ON m.seq = c.memory
       WHERE c.generation_no = ? AND c.chunk_index = ${ROOT_INDEX}`,
    )
    .get(generationNo) as { id: string } | undefined;
  return row?.id ?? null;
}

/** Counts how many chunks of a document generation are embedded, linked and failed; all 0 without a generation. */
function progressOf(store: Store, generation: GenerationRow | undefined): Document['progress'] {
  if (generation === undefined) return { pagesDone: 0, chunks: 0, embedded: 0, linked: 0, failed: 0, stages: {} };
  const { generation_no: generationNo, document_no: documentNo } = generation;
  const { stored, failed } = store
    .prepare(
      `SELECT count(*) AS stored, count(*) FILTER (WHERE d.state = 'failed') AS failed
       FROM chunks c CROSS JOIN memory_dynamics d ON d.seq = c.memory
       WHERE c.generation_no = ? AND c.chunk_index > ${ROOT_INDEX}`,
    )
    .get(generationNo) as { stored: number; failed: number };
  const { unembedded, unlinked } = store
    .prepare(
      `SELECT count(*) FILTER (WHERE j.step = 'encode') AS unembedded, count(*) AS unlinked
       FROM jobs j INDEXED BY jobs_by_document CROSS JOIN chunks c ON c.memory = j.memory
       WHERE j.document = ? AND j.document > 0 AND j.kind IN ('memory', 'import') AND j.state IN ${UNFINISHED}
         AND c.generation_no = ? AND c.chunk_index > ${ROOT_INDEX}`,
    )
    .get(documentNo, generationNo) as { unembedded: number; unlinked: number };
  return {
    pagesDone: generation.pages_done,
    chunks: generation.chunks,
    embedded: Math.max(0, stored - unembedded - failed),
    linked: Math.max(0, stored - unlinked - failed),
    failed,
    stages: parseStored(generation.stages) as Record<string, number>,
  };
}
