import { parseStored } from './stored-json.ts';
import { decayed, sectorsFromBits, STRENGTH_LAMBDA } from '../dynamics.ts';
import { EngineError } from '../errors.ts';
import {
  type Json,
  type Memory,
  type MemoryFilter,
  type MemoryState,
  type MemoryStatus,
  type Metadata,
  type NewMemory,
  type Sector,
} from '../types.ts';
import { IS_SHOWN } from './document-generations.ts';
import { keptHash } from './duplicates.ts';
import { keepUserNo, takeUserNo } from './events.ts';
import { compileFilter } from './filter.ts';
import { deleteEmptyNamespace, findNamespaceOf } from './items.ts';
import { insertLabels } from './labels.ts';
import type { Store } from './open-store.ts';
import { writerOf } from './writers.ts';

/**
 * Row behind a `Memory`: `memories` joined with `memory_dynamics` and `users`. Times are Unix ms. `tags`, `files`,
 * `entities` and `metadata` are JSON; bit i of `sectors` stands for SECTORS[i]; `salience` and `strength` are the
 * values at `salience_at` and `strength_at`, before their decay.
 */
export interface MemoryRow {
  readonly memoryNo: number;
  readonly id: string;
  readonly user_no: number;
  readonly user_id: string;
  readonly session_id: string;
  readonly event_time: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly valid_from: number | null;
  readonly valid_to: number | null;
  readonly expires_at: number | null;
  readonly version: number;
  readonly confidence: number;
  readonly importance: number | null;
  readonly type: string | null;
  readonly external_id: string | null;
  readonly tags: string;
  readonly files: string;
  readonly entities: string;
  readonly title: string;
  readonly gist: string;
  readonly metadata: string;
  readonly content: string;
  /** Value of an item as JSON; null for none. */
  readonly value: string | null;
  /** Path of an item's namespace; null for none. */
  readonly namespace: string | null;
  readonly state: MemoryState;
  readonly status: MemoryStatus;
  readonly primary_sector: Sector;
  readonly sectors: number;
  readonly sector_confidence: number;
  readonly salience: number;
  readonly salience_at: number;
  readonly decay_lambda: number;
  readonly strength: number;
  readonly strength_at: number;
  readonly access_count: number;
  readonly last_seen_at: number;
  /** Number of the document generation that brought the memory; null if no document did. */
  readonly generation_no: number | null;
  /** Public id of the key that wrote the memory; null if that is not known. */
  readonly written_by: string | null;
}

const COLUMNS = `m.seq AS memoryNo, m.id, m.user_no, u.user_id, m.session_id, m.event_time, m.created_at, m.updated_at,
  m.valid_from,
  m.valid_to, m.expires_at, m.version, m.confidence, m.importance, m.type,
  coalesce(m.external_id, i.item_key) AS external_id, m.tags, m.files, m.entities,
  m.title, m.gist, m.metadata, m.content, m.value, n.path AS namespace,
  d.state, d.status, d.primary_sector, d.sectors, d.sector_confidence, d.salience, d.salience_at,
  d.decay_lambda, d.strength, d.strength_at, d.access_count, d.last_seen_at, d.generation_no,
  ${writerOf('d.writer_no')} AS written_by`;

const SOURCE = `memories m JOIN memory_dynamics d ON d.seq = m.seq JOIN users u ON u.user_no = m.user_no
  LEFT JOIN items i ON i.memory = m.seq LEFT JOIN namespaces n ON n.namespace_no = i.namespace_no`;

/**
 * Returns the small number that stands for a user in this file, made on first use; 0 for the id ''. Call inside the
 * write that adds a memory of the user.
 */
export function ensureUser(store: Store, userId: string): number {
  if (userId === '') return 0;
  const row = store.prepare('SELECT user_no FROM users WHERE user_id = ?').get(userId) as
    { user_no: number } | undefined;
  if (row !== undefined) return row.user_no;
  const userNo = takeUserNo(store, userId);
  store.prepare('INSERT INTO users (user_no, user_id) VALUES (?, ?)').run(userNo, userId);
  return userNo;
}

/** A memory to insert, with what the caller of the API does not give. */
export interface MemoryInsert {
  /** UUIDv7 of the memory. */
  readonly id: string;
  /** Number of the memory's user, as `ensureUser` returns it. */
  readonly userNo: number;
  readonly memory: NewMemory;
  /** Value of an item as JSON; null or left out for none. */
  readonly value?: string | null;
  /** Whole hash of the content, as `contentHash` makes it. */
  readonly contentHash: Buffer;
  /** Time of the add, Unix ms; also the event time of a memory without one. */
  readonly now: number;
}

/**
 * Inserts a memory's row with its labels, and counts the memory for its user. Its dynamics (`insertDynamics`), words
 * and job are left to the caller. Call inside a write.
 * @returns the new memory's `memoryNo`
 */
export function insertMemory(
  store: Store,
  { id, userNo, memory, value = null, contentHash, now }: MemoryInsert,
): number {
  const result = store
    .prepare(
      `INSERT INTO memories (id, user_no, session_id, event_time, event_time_given, created_at, updated_at, valid_from,
         valid_to, expires_at, confidence, importance, type, external_id, content_hash, tags, files, entities, title,
         gist, metadata, content, value)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      id,
      userNo,
      memory.sessionId,
      memory.eventTime ?? now,
      memory.eventTime === null ? 0 : 1,
      now,
      now,
      memory.validFrom,
      memory.validTo,
      // The index of expiring memories holds positive times. A time at or before 1970 has expired just as well.
      memory.expiresAt && Math.max(1, memory.expiresAt),
      memory.confidence,
      memory.importance,
      memory.type,
      memory.externalId,
      keptHash(contentHash),
      JSON.stringify(memory.tags),
      JSON.stringify(memory.files),
      JSON.stringify(memory.entities ?? []),
      memory.title,
      memory.gist,
      JSON.stringify(memory.metadata),
      memory.content,
      value,
    );
  store.prepare('UPDATE users SET memories = memories + 1 WHERE user_no = ?').run(userNo);
  const memoryNo = Number(result.lastInsertRowid);
  insertLabels(store, { memoryNo, userNo, tags: memory.tags, files: memory.files });
  return memoryNo;
}

/** Columns of `memories` that a PATCH or the memory's document can change, encoded as in the table. */
export type MemoryColumns = Partial<
  Pick<
    MemoryRow,
    | 'session_id'
    | 'event_time'
    | 'valid_from'
    | 'valid_to'
    | 'expires_at'
    | 'confidence'
    | 'importance'
    | 'type'
    | 'tags'
    | 'files'
    | 'entities'
    | 'title'
    | 'gist'
    | 'metadata'
    | 'content'
    | 'value'
  > & { readonly content_hash: Buffer; readonly event_time_given: number }
>;

/**
 * Sets the given columns, raises `version` by 1 and sets `updated_at` to `now`, unless it is later already. Call it
 * through `replaceMemory`, which keeps the earlier values.
 */
export function updateMemory(store: Store, memoryNo: number, columns: MemoryColumns, now: number): void {
  const names = Object.keys(columns).sort();
  const sets = names.map((name) => `${name} = ?, `).join('');
  store
    .prepare(`UPDATE memories SET ${sets}version = version + 1, updated_at = max(updated_at, ?) WHERE seq = ?`)
    .run(...names.map((name) => columns[name as keyof MemoryColumns]), now, memoryNo);
}

/**
 * Deletes a memory's row; dynamics, revisions, vectors and edges are deleted by foreign keys. A user's name without
 * memories is deleted too, as is a namespace without items: both are personal data. The word index, vector indexes,
 * entities, jobs and stored replies are left to the caller. An unknown number is ignored. Call inside a write.
 */
export function deleteMemoryRow(store: Store, memoryNo: number): void {
  const namespaceNo = findNamespaceOf(store, memoryNo);
  const row = store.prepare('DELETE FROM memories WHERE seq = ? RETURNING user_no AS userNo').get(memoryNo) as
    { userNo: number } | undefined;
  if (row === undefined) return;
  if (namespaceNo > 0) deleteEmptyNamespace(store, namespaceNo);
  store.prepare('UPDATE users SET memories = memories - 1 WHERE user_no = ?').run(row.userNo);
  const gone = store
    .prepare('DELETE FROM users WHERE user_no = ? AND user_no <> 0 AND memories = 0 RETURNING user_id AS userId')
    .get(row.userNo) as { userId: string } | undefined;
  if (gone !== undefined) keepUserNo(store, row.userNo, gone.userId);
}

/** Finds a memory's number by its id, even if it is hidden or has expired. @throws EngineError `not_found` */
export function getMemoryNo(store: Store, id: string): number {
  const row = store.prepare('SELECT seq AS memoryNo FROM memories WHERE id = ?').get(id) as
    { memoryNo: number } | undefined;
  if (row === undefined) throw new EngineError('not_found', 'no memory with this id');
  return row.memoryNo;
}

/** Finds the number of the user who owns a memory; undefined if the memory is gone. */
export function findOwner(store: Store, memoryNo: number): number | undefined {
  return store.prepare('SELECT user_no FROM memories WHERE seq = ?').pluck().get(memoryNo) as number | undefined;
}

/** Lists the `limit` lowest numbers of memories above `after`, ascending. */
export function listMemoryNosAfter(store: Store, after: number, limit: number): number[] {
  const rows = store
    .prepare('SELECT seq AS memoryNo FROM memories WHERE seq > ? ORDER BY seq LIMIT ?')
    .all(after, limit);
  return (rows as { memoryNo: number }[]).map(({ memoryNo }) => memoryNo);
}

/** Finds memory numbers by id, even of hidden and expired memories; unknown ids are left out. */
export function findMemoryNos(store: Store, ids: readonly string[]): Map<string, number> {
  const rows = store
    .prepare('SELECT id, seq AS memoryNo FROM memories WHERE id IN (SELECT value FROM json_each(?))')
    .all(JSON.stringify(ids)) as { id: string; memoryNo: number }[];
  return new Map(rows.map(({ id, memoryNo }) => [id, memoryNo]));
}

/**
 * Reads a memory's row.
 * @throws EngineError `not_found`, also for a memory that has expired or belongs to a document generation that is not
 *   shown
 */
export function getMemoryRow(store: Store, id: string, now: number): MemoryRow {
  const row = store
    .prepare(
      `SELECT ${COLUMNS} FROM ${SOURCE} WHERE m.id = ? AND (m.expires_at IS NULL OR m.expires_at > ?) AND ${IS_SHOWN}`,
    )
    .get(id, now) as MemoryRow | undefined;
  if (row === undefined) throw new EngineError('not_found', 'no memory with this id');
  return row;
}

/** Reads rows of memories, hidden and expired ones too, in ascending order of number; unknown numbers are left out. */
export function readMemoryRows(store: Store, memoryNos: readonly number[]): MemoryRow[] {
  return store
    .prepare(`SELECT ${COLUMNS} FROM ${SOURCE} WHERE m.seq IN (SELECT value FROM json_each(?)) ORDER BY m.seq`)
    .all(JSON.stringify(memoryNos)) as MemoryRow[];
}

/**
 * Reads memories by number, hidden and expired ones too, with salience and strength as of `now` (Unix ms); unknown
 * numbers are left out.
 */
export function readMemories(store: Store, memoryNos: readonly number[], now: number): Map<number, Memory> {
  return new Map(readMemoryRows(store, memoryNos).map((row) => [row.memoryNo, toMemory(row, now)]));
}

/** Reads the size of each memory's text and value in UTF-8 bytes, by number. SQLite tells it without the text. */
export function contentBytes(store: Store, memoryNos: readonly number[]): Map<number, number> {
  const rows = store
    .prepare(
      `SELECT seq AS memoryNo, octet_length(content) + coalesce(octet_length(value), 0) AS bytes FROM memories
       WHERE seq IN (SELECT value FROM json_each(?))`,
    )
    .all(JSON.stringify(memoryNos)) as { memoryNo: number; bytes: number }[];
  return new Map(rows.map(({ memoryNo, bytes }) => [memoryNo, bytes]));
}

/** Returns the first of these numbers whose texts together have at most `bytes` bytes; the first one in any case. */
export function withinBytes(store: Store, memoryNos: readonly number[], bytes: number): number[] {
  const bytesOf = contentBytes(store, memoryNos);
  let left = bytes;
  const beyond = memoryNos.findIndex((memoryNo, place) => {
    left -= bytesOf.get(memoryNo) ?? 0;
    return place > 0 && left < 0;
  });
  return memoryNos.slice(0, beyond === -1 ? memoryNos.length : beyond);
}

/** A piece of the list of memories that match a filter. */
export interface MatchingSlice {
  readonly memoryNos: readonly number[];
  /** Number after which the next piece begins; null if this one is the last. */
  readonly next: number | null;
}

/** Most memories whose tags or metadata are looked at for one piece. */
const LOOKED_AT_ONCE = 2_000;

/**
 * Lists numbers of memories that match a filter, ascending, whatever their validity and expiry, and their status unless
 * the filter names statuses; parts of documents that are not shown included.
 * @param page.after lists only higher numbers
 * @param page.limit most numbers of one piece, which may have fewer, or none, and not be the last one
 */
export function listMatchingMemoryNos(
  store: Store,
  filter: MemoryFilter,
  { after, limit, now }: { readonly after: number; readonly limit: number; readonly now: number },
): MatchingSlice {
  const where = compileFilter(filter, now, { includeHidden: true });
  const most = where.countsWork ? after + LOOKED_AT_ONCE : Number.MAX_SAFE_INTEGER;
  const memoryNos = store
    .prepare(`SELECT m.seq FROM ${SOURCE} WHERE m.seq > ? AND m.seq <= ? AND ${where.sql} ORDER BY m.seq LIMIT ?`)
    .pluck()
    .all(after, most, ...where.parameters, limit) as number[];
  if (memoryNos.length === limit) return { memoryNos, next: memoryNos.at(-1)! };
  const isLast = store.prepare('SELECT 1 FROM memories WHERE seq > ? LIMIT 1').get(most) === undefined;
  return { memoryNos, next: isLast ? null : most };
}

/**
 * Lists the numbers of at most `limit` memories that have expired by `now` (Unix ms, included), first expired first.
 * Parts of a document are left out, since they are erased with the document.
 */
export function listExpiredMemoryNos(store: Store, now: number, limit: number): number[] {
  const rows = store
    .prepare(
      `SELECT m.seq AS memoryNo FROM memories m INDEXED BY memories_by_expiry
       CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE m.expires_at > 0 AND m.expires_at <= ? AND d.generation_no IS NULL ORDER BY m.expires_at LIMIT ?`,
    )
    .all(now, limit) as { memoryNo: number }[];
  return rows.map((row) => row.memoryNo);
}

/**
 * Turns a row into a memory with salience and strength as of `now` (Unix ms), as plain data without getters. V8 gives
 * each object literal with a getter a hidden class of its own, outside the young heap, which keeps the whole row alive
 * until the next full collection: 14 KB for each query.
 */
export function toMemory(row: MemoryRow, now: number): Memory {
  return {
    id: row.id,
    userId: row.user_id,
    sessionId: row.session_id,
    content: row.content,
    title: row.title,
    gist: row.gist,
    entities: parseStored(row.entities) as string[],
    type: row.type,
    tags: parseStored(row.tags) as string[],
    files: parseStored(row.files) as string[],
    metadata: parseStored(row.metadata) as Metadata,
    primarySector: row.primary_sector,
    sectors: sectorsFromBits(row.sectors, row.primary_sector),
    sectorConfidence: row.sector_confidence,
    state: row.state,
    status: row.status,
    salience: decayed({ value: row.salience, at: row.salience_at }, row.decay_lambda, now),
    strength: decayed({ value: row.strength, at: row.strength_at }, STRENGTH_LAMBDA, now),
    decayLambda: row.decay_lambda,
    confidence: row.confidence,
    importance: row.importance,
    accessCount: row.access_count,
    lastSeenAt: row.last_seen_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    eventTime: row.event_time,
    validFrom: row.valid_from,
    validTo: row.valid_to,
    expiresAt: row.expires_at,
    externalId: row.external_id,
    namespace: row.namespace ?? '',
    value: row.value === null ? null : (parseStored(row.value) as Json),
    writtenBy: row.written_by,
    version: row.version,
  };
}
