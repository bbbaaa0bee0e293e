/** Reads rows for an export, in forms that no other reader needs. */

import type { MemoryStatus } from '../types.ts';
import type { GenerationRow } from './document-generations.ts';
import type { DocumentRow } from './documents.ts';
import type { Store } from './open-store.ts';
import { writerOf } from './writers.ts';
import { ROLES } from './vectors.ts';
import { STORED_BYTES } from './vector-parts.ts';

/**
 * Values of an exported memory that its `MemoryRow` lacks. The fields about a chunk and its offsets are null for a
 * memory outside of documents.
 */
export interface MemoryOrigin {
  readonly memoryNo: number;
  readonly event_time_given: number;
  /** External id that the add stated; null for an item in a namespace, whose name is its `item_key`. */
  readonly external_id: string | null;
  readonly item_key: string | null;
  readonly document_id: string | null;
  readonly chunk_index: number | null;
  readonly start_offset: number;
  readonly end_offset: number;
  readonly page_from: number | null;
  readonly page_to: number | null;
  readonly heading_path: string;
  readonly chunk_tokens: number;
}

/** Reads the external ids of memories, and their positions in documents, by memory number. */
export function readOrigins(store: Store, memoryNos: readonly number[]): Map<number, MemoryOrigin> {
  const rows = store
    .prepare(
      `SELECT m.seq AS memoryNo, m.event_time_given, m.external_id, i.item_key, o.id AS document_id, c.chunk_index,
         c.start_offset, c.end_offset, c.page_from, c.page_to, c.heading_path, c.tokens AS chunk_tokens
       FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = wanted.value
         CROSS JOIN memory_dynamics d ON d.seq = m.seq
         LEFT JOIN items i ON i.memory = m.seq
         LEFT JOIN chunks c ON c.memory = m.seq AND c.generation_no = d.generation_no
         LEFT JOIN document_generations g ON g.generation_no = d.generation_no
         LEFT JOIN documents o ON o.document_no = g.document_no`,
    )
    .all(JSON.stringify(memoryNos)) as MemoryOrigin[];
  return new Map(rows.map((row) => [row.memoryNo, row]));
}

/**
 * A row of `memory_revisions`: values of a memory that an update replaced. `written_by` is the public id of the key
 * that made this update; null if none did or it is not known.
 */
export interface RevisionRow {
  readonly memory: number;
  /** Public id of the memory. */
  readonly memory_id: string;
  readonly version: number;
  readonly replaced_at: number;
  readonly by_link: number;
  readonly status: MemoryStatus;
  readonly event_time: number;
  readonly valid_from: number | null;
  readonly valid_to: number | null;
  readonly snapshot: string;
  readonly written_by: string | null;
}

/** Position in the revisions of memories: a memory, and the version of the last revision that was read. */
export interface RevisionPlace {
  readonly memoryNo: number;
  readonly version: number;
}

/** The first revisions of some memories, and the position after which others may follow; null if none do. */
export interface RevisionPart {
  readonly rows: readonly RevisionRow[];
  readonly end: RevisionPlace | null;
}

/**
 * Number of bytes that each revision counts for, beside its values, towards the limit of one call of
 * `readRevisionRows`.
 */
const REVISION_BYTES = 256;

/**
 * Returns as many of the first memories as have at most `most` revisions together; at least the first one. A memory has
 * fewer revisions than its version says. A statement about many memories looks at all of their revisions, even if it
 * returns few.
 */
export function withFewRevisions(store: Store, memoryNos: readonly number[], most: number): readonly number[] {
  const rows = store
    .prepare('SELECT seq AS memoryNo, version FROM memories WHERE seq IN (SELECT value FROM json_each(?))')
    .all(JSON.stringify(memoryNos)) as { memoryNo: number; version: number }[];
  const versions = new Map(rows.map(({ memoryNo, version }) => [memoryNo, version]));
  let left = most;
  const beyond = memoryNos.findIndex((memoryNo, place) => {
    left -= (versions.get(memoryNo) ?? 1) - 1;
    return place > 0 && left < 0;
  });
  return beyond === -1 ? memoryNos : memoryNos.slice(0, beyond);
}

/**
 * Reads revisions (earlier values) of memories that were made by the time `at` (Unix ms, included), in the order of the
 * memories' numbers, oldest first. It stops with the revision at which the read ones together reach `bytes`, each
 * counted with 256 bytes more than its values; `end` is then its position.
 * @param from the memories by number; or a position, for the revisions of its memory that follow
 */
export function readRevisionRows(
  store: Store,
  from: readonly number[] | RevisionPlace,
  { at, bytes }: { readonly at: number; readonly bytes: number },
): RevisionPart {
  const isPlace = 'version' in from;
  const source = isPlace
    ? 'memory_revisions r WHERE r.memory = ? AND r.version > ?'
    : 'json_each(?) AS wanted CROSS JOIN memory_revisions r ON r.memory = wanted.value WHERE true';
  const parameters = isPlace ? [from.memoryNo, from.version] : [JSON.stringify(from)];
  // Sizes are summed up before values are read: SQLite knows the size of a text without reading it.
  const rows = store
    .prepare(
      `WITH first AS (
         SELECT r.memory, r.version, octet_length(r.snapshot) + ${REVISION_BYTES} AS size
         FROM ${source} AND r.replaced_at <= ? ORDER BY r.memory, r.version LIMIT ?),
       sized AS (SELECT memory, version, size, sum(size) OVER (ORDER BY memory, version) AS total FROM first)
       SELECT r.memory, m.id AS memory_id, r.version, r.replaced_at, r.by_link, r.status, r.event_time, r.valid_from,
         r.valid_to, r.snapshot, s.total, ${writerOf('r.writer_no')} AS written_by
       FROM sized s CROSS JOIN memory_revisions r ON r.memory = s.memory AND r.version = s.version
         CROSS JOIN memories m ON m.seq = r.memory
       WHERE s.total - s.size < ? ORDER BY r.memory, r.version`,
    )
    .all(...parameters, at, Math.ceil(bytes / REVISION_BYTES) + 1, bytes) as (RevisionRow & { total: number })[];
  const last = rows.at(-1);
  const isCut = last !== undefined && last.total >= bytes;
  return { rows, end: isCut ? { memoryNo: last.memory, version: last.version } : null };
}

/** A document with its generation (parsed version) that queries find. */
export interface ShownDocument {
  readonly document: DocumentRow;
  readonly generation: GenerationRow;
}

/**
 * Reads a document with the generation (parsed version) that queries find; undefined if they find none, or if the
 * document does not exist.
 */
export function readShownDocument(store: Store, documentNo: number): ShownDocument | undefined {
  const document = store
    .prepare('SELECT * FROM documents WHERE document_no = ? AND live_no IS NOT NULL')
    .get(documentNo) as DocumentRow | undefined;
  if (document === undefined) return undefined;
  const generation = store
    .prepare('SELECT * FROM document_generations WHERE generation_no = ?')
    .get(document.live_no) as GenerationRow;
  return { document, generation };
}

/** A stored vector with the model that made it. */
export interface VectorRow {
  readonly memory: number;
  readonly provider: string;
  readonly model: string;
  readonly dimensions: number;
  readonly encoding: string;
  readonly window: number;
  readonly role: (typeof ROLES)[number];
  /** Value of the column `vectors.precision`, which `formOf` decodes. */
  readonly precisionNo: number;
  readonly bytes: Buffer;
}

/**
 * Reads all vectors of memories, by memory number; those of one memory in the order of the vectors' numbers. A memory
 * without vectors is left out.
 */
export function readVectorRows(store: Store, memoryNos: readonly number[]): Map<number, VectorRow[]> {
  const rows = store
    .prepare(
      `SELECT v.memory, n.provider, n.model, n.dimensions, n.encoding, v.window_no AS window, v.role,
         v.precision AS precisionNo, ${STORED_BYTES} AS bytes
       FROM json_each(?) AS wanted CROSS JOIN vectors v ON v.memory = wanted.value AND v.sector = ''
         CROSS JOIN models n ON n.model_no = v.model_no ORDER BY v.vector_no`,
    )
    .all(JSON.stringify(memoryNos)) as (Omit<VectorRow, 'role'> & { role: number })[];
  return Map.groupBy(
    rows.map((row) => ({ ...row, role: ROLES[row.role]! })),
    ({ memory }) => memory,
  );
}
