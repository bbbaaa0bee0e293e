import { decayed, sectorsFromBits, STRENGTH_LAMBDA } from '../dynamics.ts';
import { EngineError } from '../errors.ts';
import type { Memory, MemoryFilter, MemoryState, MemoryStatus, NewMemory, Sector } from '../types.ts';
import { IS_SHOWN } from './document-generations.ts';
import { keptHash } from './duplicates.ts';
import { keepUserNo, takeUserNo } from './events.ts';
import { compileFilter } from './filter.ts';
import { deleteEmptyNamespace, listNamespacesOf } from './items.ts';
import { putJson } from './json-text.ts';
import { insertLabels } from './labels.ts';
import type { Store } from './open-store.ts';
import { parsedAtOnce } from './passing-memories.ts';
import { storedExpiry } from './stored-expiry.ts';
import { parseStored } from './stored-json.ts';
import { withinBytes } from './text-sizes.ts';
import { writerOf } from './writers.ts';
import { SELECT_USER } from './users.ts';

/**
 * Row of a memory: `memories` joined with `memory_dynamics` and `users`. Times are Unix ms. `tags`, `files`, `entities`
 * and `metadata` are JSON; bit i of `sectors` stands for SECTORS[i]. `external_id` is the key of an item that is in a
 * namespace. `salience` and `strength` are the values at `salience_at` and `strength_at`; their present values must be
 * computed by the decay.
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
  readonly ttl_ms: number | null;
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
  /** Value of an item (a memory that has a key) as JSON; null if there is none. */
  readonly value: string | null;
  /** Path of the namespace of an item; null if the memory is in none. */
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
  /**
   * Number of the document generation (parsed version) that the memory belongs to; null if it is no part of a document.
   */
  readonly generation_no: number | null;
  /** Public id of the key that added the memory; null if it is not known. */
  readonly written_by: string | null;
}

const COLUMNS = `m.seq AS memoryNo, m.id, m.user_no, u.user_id, m.session_id, m.event_time, m.created_at, m.updated_at,
  m.valid_from, m.valid_to, m.expires_at, i.ttl_ms, m.version, m.confidence, m.importance, m.type,
  coalesce(m.external_id, i.item_key) AS external_id, m.tags, m.files, m.entities,
  m.title, m.gist, m.metadata, m.content, m.value, n.path AS namespace,
  d.state, d.status, d.primary_sector, d.sectors, d.sector_confidence, d.salience, d.salience_at,
  d.decay_lambda, d.strength, d.strength_at, d.access_count, d.last_seen_at, d.generation_no,
  ${writerOf('d.writer_no')} AS written_by`;

const SOURCE = `memories m JOIN memory_dynamics d ON d.seq = m.seq JOIN users u ON u.user_no = m.user_no
  LEFT JOIN items i ON i.memory = m.seq LEFT JOIN namespaces n ON n.namespace_no = i.namespace_no`;

/**
 * Returns the number of a user in this file, which is given on first use; 0 for the id ''. Call inside the write that
 * adds a memory of the user.
 */
export function ensureUser(store: Store, userId: string): number {
  if (userId === '') return 0;
  const row = store.prepare(SELECT_USER).get(userId) as { user_no: number } | undefined;
  if (row !== undefined) return row.user_no;
  const userNo = takeUserNo(store, userId);
  store.prepare('INSERT INTO users (user_no, user_id) VALUES (?, ?)').run(userNo, userId);
  return userNo;
}

/** A memory to insert, with the values that its caller does not state. */
export interface MemoryInsert {
  /** UUIDv7 of the memory. */
  readonly id: string;
  /** Number of the user, as `ensureUser` returns it. */
  readonly userNo: number;
  readonly memory: NewMemory;
  /** Value of an item as JSON; null or left out if there is none. */
  readonly value?: string | null;
  /** Whole hash of the content: the result of `contentHash`. */
  readonly contentHash: Buffer;
  /** Time of the add, Unix ms; it becomes the event time if none is stated. */
  readonly now: number;
  /** Whether the memory is a part of a document; false if left out. */
  readonly isPart?: boolean;
}

/**
 * Inserts the row of a memory with its labels (tags, files), and counts the memory for its user. The caller must insert
 * its dynamics (`insertDynamics`), words and job. Call inside a write.
 * @returns the `memoryNo` of the new memory
 */
export function insertMemory(
  store: Store,
  { id, userNo, memory, value = null, contentHash, now, isPart = false }: MemoryInsert,
): number {
  const result = store
    .prepare(
      `INSERT INTO memories (id, user_no, session_id, event_time, event_time_given, created_at, updated_at, valid_from,
         valid_to, expires_at, confidence, importance, type, external_id, content_hash, tags, files, entities, title,
         gist, metadata, content, value, is_part)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
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
      storedExpiry(memory.expiresAt),
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
      isPart ? 1 : 0,
    );
  store.prepare('UPDATE users SET memories = memories + 1 WHERE user_no = ?').run(userNo);
  const memoryNo = Number(result.lastInsertRowid);
  insertLabels(store, { memoryNo, userNo, tags: memory.tags, files: memory.files });
  return memoryNo;
}

/** Columns of `memories` that an update of the memory or of its document can change, encoded as in the table. */
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
 * Sets columns of a memory, raises its `version` by 1, and sets `updated_at` to `now` unless the stored time is later.
 * Call it through `replaceMemory`, which keeps the earlier values. Call inside a write.
 */
export function updateMemory(store: Store, memoryNo: number, columns: MemoryColumns, now: number): void {
  const names = Object.keys(columns).sort();
  const sets = names.map((name) => `${name} = ?, `).join('');
  store
    .prepare(`UPDATE memories SET ${sets}version = version + 1, updated_at = max(updated_at, ?) WHERE seq = ?`)
    .run(...names.map((name) => columns[name as keyof MemoryColumns]), now, memoryNo);
}

/**
 * Deletes the rows of memories; foreign keys delete their dynamics, revisions, vectors and edges. The names of users
 * without other memories, and namespaces without other items, are personal data and are deleted as well. The caller
 * must delete words, entries in vector indexes, entities, jobs and stored replies. Unknown numbers are ignored. Call
 * inside a write.
 */
export function deleteMemoryRows(store: Store, memoryNos: readonly number[]): void {
  const namespaceNos = listNamespacesOf(store, memoryNos);
  const userNos = store
    .prepare('DELETE FROM memories WHERE seq IN (SELECT value FROM json_each(?)) RETURNING user_no')
    .pluck()
    .all(JSON.stringify(memoryNos)) as number[];
  for (const namespaceNo of namespaceNos) deleteEmptyNamespace(store, namespaceNo);
  const counts = new Map<number, number>();
  for (const userNo of userNos) counts.set(userNo, (counts.get(userNo) ?? 0) + 1);
  const uncount = store.prepare('UPDATE users SET memories = memories - ? WHERE user_no = ?');
  for (const [userNo, count] of counts) uncount.run(count, userNo);
  const gone = store
    .prepare(
      `DELETE FROM users WHERE user_no IN (SELECT value FROM json_each(?)) AND user_no <> 0 AND memories = 0
       RETURNING user_no AS userNo, user_id AS userId`,
    )
    .all(JSON.stringify([...counts.keys()])) as { userNo: number; userId: string }[];
  for (const { userNo, userId } of gone) keepUserNo(store, userNo, userId);
}

/**
 * Finds the number of a memory by its id, even if queries do not find it or it has expired. @throws EngineError
 * `not_found`
 */
export function getMemoryNo(store: Store, id: string): number {
  const row = store.prepare('SELECT seq AS memoryNo FROM memories WHERE id = ?').get(id) as
    { memoryNo: number } | undefined;
  if (row === undefined) throw new EngineError('not_found', 'no memory with this id');
  return row.memoryNo;
}

/** Finds the number of the user who owns a memory; undefined if the memory does not exist. */
export function findOwner(store: Store, memoryNo: number): number | undefined {
  return store.prepare('SELECT user_no FROM memories WHERE seq = ?').pluck().get(memoryNo) as number | undefined;
}

/** Lists the lowest numbers of memories above `after`, ascending, at most `limit`. */
export function listMemoryNosAfter(store: Store, after: number, limit: number): number[] {
  const rows = store
    .prepare('SELECT seq AS memoryNo FROM memories WHERE seq > ? ORDER BY seq LIMIT ?')
    .all(after, limit);
  return (rows as { memoryNo: number }[]).map(({ memoryNo }) => memoryNo);
}

/**
 * Finds the numbers of memories by id, even if queries do not find them or they have expired; unknown ids are left out.
 */
export function findMemoryNos(store: Store, ids: readonly string[]): Map<string, number> {
  const rows = store
    .prepare('SELECT id, seq AS memoryNo FROM memories WHERE id IN (SELECT value FROM json_each(?))')
    .all(JSON.stringify(ids)) as { id: string; memoryNo: number }[];
  return new Map(rows.map(({ id, memoryNo }) => [id, memoryNo]));
}

/**
 * Reads the row of a memory by its id.
 * @throws EngineError `not_found`, also if it has expired, or is a part of a document that queries do not find
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

/** SQL that selects rows of memories; its parameter is a JSON list of their numbers. */
export const SELECT_ROWS = `SELECT ${COLUMNS} FROM ${SOURCE}
  WHERE m.seq IN (SELECT value FROM json_each(?)) ORDER BY m.seq`;

/**
 * Reads rows of memories by ascending number, even if queries do not find them or they have expired; unknown numbers
 * are left out.
 */
export function readMemoryRows(store: Store, memoryNos: readonly number[]): MemoryRow[] {
  if (memoryNos.length === 0) return [];
  return store.prepare(SELECT_ROWS).all(JSON.stringify(memoryNos)) as MemoryRow[];
}

/** Lists those of these memories that have the status `active`, at most `limit`. */
export function listActive(store: Store, memoryNos: readonly number[], limit: number): number[] {
  return store
    .prepare(
      `SELECT d.seq FROM json_each(?) AS w CROSS JOIN memory_dynamics d ON d.seq = w.value
       WHERE d.status = 'active' LIMIT ?`,
    )
    .pluck()
    .all(JSON.stringify(memoryNos), limit) as number[];
}

/**
 * Reads memories by number, even if queries do not find them or they have expired, with salience and strength as of
 * `now` (Unix ms); unknown numbers are left out.
 */
export function readMemories(store: Store, memoryNos: readonly number[], now: number): Map<number, Memory> {
  return new Map(readMemoryRows(store, memoryNos).map((row) => [row.memoryNo, toMemory(row, now)]));
}

/** A slice of the memories that match a filter. */
export interface MatchingSlice {
  readonly memoryNos: readonly number[];
  /** Number after which the next slice begins; null if this is the last one. */
  readonly next: number | null;
}

/**
 * Lists numbers of memories that match a filter, ascending, whatever their validity and expiry, and whatever their
 * status unless the filter names statuses. Parts of documents that queries do not find are included.
 * @param page.after lists only higher numbers
 * @param page.limit greatest length of a slice, which may be shorter or empty although more slices follow
 * @param page.bytes greatest size of the texts, values and metadata in a slice together, in bytes; a single memory may
 *   have more
 */
export function listMatchingMemoryNos(
  store: Store,
  filter: MemoryFilter,
  {
    after,
    limit,
    bytes = Infinity,
    now,
  }: { readonly after: number; readonly limit: number; readonly bytes?: number; readonly now: number },
): MatchingSlice {
  const where = compileFilter(filter, now, { includeHidden: true });
  const most = where.countsWork ? after + parsedAtOnce(store) : Number.MAX_SAFE_INTEGER;
  const memoryNos = store
    .prepare(`SELECT m.seq FROM ${SOURCE} WHERE m.seq > ? AND m.seq <= ? AND ${where.sql} ORDER BY m.seq LIMIT ?`)
    .pluck()
    .all(after, most, ...where.parameters, limit) as number[];
  const taken = bytes === Infinity ? memoryNos : withinBytes(store, memoryNos, bytes);
  if (taken.length < memoryNos.length || taken.length === limit) return { memoryNos: taken, next: taken.at(-1)! };
  const isLast = store.prepare('SELECT 1 FROM memories WHERE seq > ? LIMIT 1').get(most) === undefined;
  return { memoryNos, next: isLast ? null : most };
}

/**
 * Lists the numbers of memories that have expired at `now` (Unix ms, included), first expired first, at most `limit`.
 * Parts of documents are left out, since they are erased with their document.
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
 * Turns a row into a memory, with salience and strength as of `now` (Unix ms). Long metadata and long values are parsed
 * when they are first read. Other fields are plain data: in V8, a getter keeps the whole row in memory for long.
 */
export function toMemory(row: MemoryRow, now: number): Memory {
  const memory: Memory = {
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
    metadata: {},
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
    value: null,
    writtenBy: row.written_by,
    version: row.version,
  };
  putJson(memory, 'metadata', row.metadata);
  putJson(memory, 'value', row.value);
  return memory;
}
