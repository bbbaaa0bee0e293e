import { decayed, sectorsFromBits, STRENGTH_LAMBDA } from '../dynamics.ts';
import { EngineError } from '../errors.ts';
import type {
  Memory,
  MemoryFilter,
  MemoryState,
  MemoryStatus,
  Metadata,
  NewMemory,
  Sector,
  SectorStats,
} from '../types.ts';
import { SECTORS } from '../types.ts';
import { contentHash } from '../text/content-hash.ts';
import { IS_SHOWN } from './documents.ts';
import { compileFilter } from './filter.ts';
import type { Store } from './open-store.ts';

/** `memories` joined with `memory_dynamics` and `users`: the row behind a `Memory`. */
export interface MemoryRow {
  readonly seq: number;
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
  readonly state: MemoryState;
  readonly status: MemoryStatus;
  readonly primary_sector: Sector;
  readonly sectors: number;
  readonly salience: number;
  readonly salience_at: number;
  readonly decay_lambda: number;
  readonly strength: number;
  readonly strength_at: number;
  readonly access_count: number;
  readonly last_seen_at: number;
  /** The generation of the document that brought it; null for what no document brought. */
  readonly generation_no: number | null;
}

const COLUMNS = `m.seq, m.id, m.user_no, u.user_id, m.session_id, m.event_time, m.created_at, m.updated_at, m.valid_from,
  m.valid_to, m.expires_at, m.version, m.confidence, m.importance, m.type, m.external_id, m.tags, m.files, m.entities,
  m.title, m.gist, m.metadata, m.content, d.state, d.status, d.primary_sector, d.sectors, d.salience, d.salience_at,
  d.decay_lambda, d.strength, d.strength_at, d.access_count, d.last_seen_at, d.generation_no`;
const SOURCE = `memories m JOIN memory_dynamics d ON d.seq = m.seq JOIN users u ON u.user_no = m.user_no`;

/** The small number of a user, made on first use. Call inside a write. */
export function ensureUser(store: Store, userId: string): number {
  if (userId === '') return 0;
  const found = store.prepare('SELECT user_no FROM users WHERE user_id = ?').get(userId) as
    { user_no: number } | undefined;
  if (found !== undefined) return found.user_no;
  return Number(store.prepare('INSERT INTO users (user_id) VALUES (?)').run(userId).lastInsertRowid);
}

export interface MemoryInsert {
  readonly id: string;
  readonly userNo: number;
  readonly memory: NewMemory;
  readonly contentHash: Buffer;
  readonly now: number;
}

/** @returns the new memory's `seq` */
export function insertMemory(store: Store, { id, userNo, memory, contentHash, now }: MemoryInsert): number {
  const result = store
    .prepare(
      `INSERT INTO memories (id, user_no, session_id, event_time, event_time_given, created_at, updated_at, valid_from, valid_to,
         expires_at, confidence, importance, type, external_id, content_hash, tags, files, entities, title, gist, metadata, content)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
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
      // The index of what expires holds positive times; anything at or before 1970 has expired just as well.
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
    );
  store.prepare('UPDATE users SET memories = memories + 1 WHERE user_no = ?').run(userNo);
  return Number(result.lastInsertRowid);
}

/** The columns of `memories` that change after it was written, in the encoding of the table: by a PATCH, or with its document. */
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
  > & { readonly content_hash: Buffer; readonly event_time_given: number }
>;

/** Sets the given columns, bumps `version` and `updated_at`, which never falls. Call it through `replaceMemory`, which keeps what was. */
export function updateMemory(store: Store, seq: number, columns: MemoryColumns, now: number): void {
  const names = Object.keys(columns).sort();
  const sets = names.map((name) => `${name} = ?, `).join('');
  store
    .prepare(`UPDATE memories SET ${sets}version = version + 1, updated_at = max(updated_at, ?) WHERE seq = ?`)
    .run(...names.map((name) => columns[name as keyof MemoryColumns]), now, seq);
}

/**
 * Removes the row; dynamics, revisions, vectors and edges go with it by foreign key. A name that no memory bears any more is
 * personal data like the rest, and goes too.
 */
export function deleteMemoryRow(store: Store, seq: number): void {
  const row = store.prepare('DELETE FROM memories WHERE seq = ? RETURNING user_no AS userNo').get(seq) as
    { userNo: number } | undefined;
  if (row === undefined) return;
  store.prepare('UPDATE users SET memories = memories - 1 WHERE user_no = ?').run(row.userNo);
  store.prepare('DELETE FROM users WHERE user_no = ? AND user_no <> 0 AND memories = 0').run(row.userNo);
}

/** @throws EngineError `not_found` */
export function getSeq(store: Store, id: string): number {
  const row = store.prepare('SELECT seq FROM memories WHERE id = ?').get(id) as { seq: number } | undefined;
  if (row === undefined) throw new EngineError('not_found', 'no memory with this id');
  return row.seq;
}

/** The number of the user whose memory it is; undefined for one that is gone. */
export function findOwner(store: Store, seq: number): number | undefined {
  return store.prepare('SELECT user_no FROM memories WHERE seq = ?').pluck().get(seq) as number | undefined;
}

/** At most `limit` numbers of memories behind one, ascending. */
export function listSeqsAfter(store: Store, after: number, limit: number): number[] {
  const rows = store.prepare('SELECT seq FROM memories WHERE seq > ? ORDER BY seq LIMIT ?').all(after, limit);
  return (rows as { seq: number }[]).map(({ seq }) => seq);
}

/** Numbers by id; unknown ids are left out. */
export function findSeqs(store: Store, ids: readonly string[]): Map<string, number> {
  const rows = store
    .prepare('SELECT id, seq FROM memories WHERE id IN (SELECT value FROM json_each(?))')
    .all(JSON.stringify(ids)) as { id: string; seq: number }[];
  return new Map(rows.map(({ id, seq }) => [id, seq]));
}

/** @throws EngineError `not_found`, also for a memory that waits to be erased, or to be shown with the rest of its document */
export function getMemoryRow(store: Store, id: string, now: number): MemoryRow {
  const row = store
    .prepare(
      `SELECT ${COLUMNS} FROM ${SOURCE} WHERE m.id = ? AND (m.expires_at IS NULL OR m.expires_at > ?) AND ${IS_SHOWN}`,
    )
    .get(id, now) as MemoryRow | undefined;
  if (row === undefined) throw new EngineError('not_found', 'no memory with this id');
  return row;
}

export function readMemoryRows(store: Store, seqs: readonly number[]): MemoryRow[] {
  return store
    .prepare(`SELECT ${COLUMNS} FROM ${SOURCE} WHERE m.seq IN (SELECT value FROM json_each(?)) ORDER BY m.seq`)
    .all(JSON.stringify(seqs)) as MemoryRow[];
}

/** Memories by `seq`, with salience and strength as of `now`; unknown numbers are left out. */
export function readMemories(store: Store, seqs: readonly number[], now: number): Map<number, Memory> {
  return new Map(readMemoryRows(store, seqs).map((row) => [row.seq, toMemory(row, now)]));
}

/** Bytes of the contents in UTF-8, known without reading them. */
export function contentBytes(store: Store, seqs: readonly number[]): Map<number, number> {
  const rows = store
    .prepare('SELECT seq, octet_length(content) AS bytes FROM memories WHERE seq IN (SELECT value FROM json_each(?))')
    .all(JSON.stringify(seqs)) as { seq: number; bytes: number }[];
  return new Map(rows.map(({ seq, bytes }) => [seq, bytes]));
}

export function listMemories(
  store: Store,
  filter: MemoryFilter,
  page: { readonly limit: number; readonly offset: number },
  now: number,
): Memory[] {
  const where = compileFilter(filter, now);
  const rows = store
    .prepare(`SELECT ${COLUMNS} FROM ${SOURCE} WHERE ${where.sql} ORDER BY m.seq DESC LIMIT ? OFFSET ?`)
    .all(...where.parameters, page.limit, page.offset) as MemoryRow[];
  return rows.map((row) => toMemory(row, now));
}

/** Numbers of at most `limit` memories that match, whatever their status, validity or expiry. */
export function listMatchingSeqs(store: Store, filter: MemoryFilter, limit: number, now: number): number[] {
  const where = compileFilter(filter, now, { includeHidden: true });
  const rows = store
    .prepare(`SELECT m.seq FROM ${SOURCE} WHERE ${where.sql} ORDER BY m.seq LIMIT ?`)
    .all(...where.parameters, limit) as { seq: number }[];
  return rows.map((row) => row.seq);
}

/** A part of a document goes with the document, never by itself. */
export function listExpiredSeqs(store: Store, now: number, limit: number): number[] {
  const rows = store
    .prepare(
      `SELECT m.seq FROM memories m INDEXED BY memories_by_expiry CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE m.expires_at > 0 AND m.expires_at <= ? AND d.generation_no IS NULL ORDER BY m.expires_at LIMIT ?`,
    )
    .all(now, limit) as { seq: number }[];
  return rows.map((row) => row.seq);
}

export interface Twin {
  readonly seq: number;
  readonly id: string;
  readonly content: string;
  readonly primary_sector: Sector;
  readonly sectors: number;
  readonly state: MemoryState;
  readonly status: MemoryStatus;
}

const TWIN = 'SELECT m.seq, m.id, m.content, d.primary_sector, d.sectors, d.state, d.status';

/** What a row keeps of its text's hash: enough to find twins by, whose texts are then compared by all of it. */
export function keptHash(contentHash: Buffer): Buffer {
  return contentHash.subarray(0, 8);
}

/** Of texts that share what is kept of their hashes so many are compared: two are a chance of one in 10^19, more somebody's work. */
const TWINS_COMPARED = 8;

/**
 * The live memory that says exactly this already: same text (by hash), user, session and event time; a time that was not
 * given equals only another that was not given. Never a part of a document, which comes and goes with it; never a superseded, contradicted or expired one, which no query would find; and never one that ends sooner or is valid
 * at other times: the new one would go with it.
 */
export function findDuplicate(
  store: Store,
  key: { contentHash: Buffer; userNo: number } & Pick<
    NewMemory,
    'sessionId' | 'eventTime' | 'expiresAt' | 'validFrom' | 'validTo'
  >,
  now: number,
): Twin | undefined {
  const twins = store
    .prepare(
      `${TWIN} FROM memories m INDEXED BY memories_by_hash JOIN memory_dynamics d ON d.seq = m.seq
       WHERE m.content_hash = ? AND m.user_no = ? AND m.session_id = ? AND m.event_time_given = ?
         AND (m.event_time_given = 0 OR m.event_time = ?)
         AND m.expires_at IS ? AND m.valid_from IS ? AND m.valid_to IS ?
         AND d.status NOT IN ('superseded', 'contradicted') AND (m.expires_at IS NULL OR m.expires_at > ?)
         AND d.generation_no IS NULL LIMIT ${TWINS_COMPARED}`,
    )
    .all(
      keptHash(key.contentHash),
      key.userNo,
      key.sessionId,
      key.eventTime === null ? 0 : 1,
      key.eventTime,
      key.expiresAt,
      key.validFrom,
      key.validTo,
      now,
    ) as Twin[];
  return twins.find(({ content }) => contentHash(content).equals(key.contentHash));
}

/**
 * An expired memory gives its external id back: what is about to be erased must not swallow a new add. One that was superseded or
 * decided against keeps it: a source that is read in again says nothing new, and must not bring it back.
 */
export function findByExternalId(
  store: Store,
  key: { externalId: string; userNo: number },
  now: number,
): Twin | undefined {
  return store
    .prepare(
      `${TWIN} FROM memories m JOIN memory_dynamics d ON d.seq = m.seq
       WHERE m.external_id = ? AND m.external_id <> '' AND m.user_no = ? AND (m.expires_at IS NULL OR m.expires_at > ?)
       ORDER BY m.seq LIMIT 1`,
    )
    .get(key.externalId, key.userNo, now) as Twin | undefined;
}

export function sectorStats(store: Store, now: number): SectorStats[] {
  const rows = store
    .prepare(
      `SELECT primary_sector AS sector, count(*) AS count,
         avg(salience * exp(-decay_lambda * max(0, ? - salience_at) / 86400000.0)) AS averageSalience
       FROM memory_dynamics GROUP BY primary_sector`,
    )
    .all(now) as SectorStats[];
  const found = new Map(rows.map((row) => [row.sector, row]));
  return SECTORS.map((sector) => found.get(sector) ?? { sector, count: 0, averageSalience: 0 });
}

/**
 * Plain data, whatever is asked for later: V8 gives an object literal with a getter a hidden class of its own each time, outside the young
 * heap, and that holds what the getter sees, the whole row, until the next full collection. Queries left 14 KB each behind so.
 */
export function toMemory(row: MemoryRow, now: number): Memory {
  return {
    id: row.id,
    userId: row.user_id,
    sessionId: row.session_id,
    content: row.content,
    title: row.title,
    gist: row.gist,
    entities: JSON.parse(row.entities) as string[],
    type: row.type,
    tags: JSON.parse(row.tags) as string[],
    files: JSON.parse(row.files) as string[],
    metadata: JSON.parse(row.metadata) as Metadata,
    primarySector: row.primary_sector,
    sectors: sectorsFromBits(row.sectors, row.primary_sector),
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
    version: row.version,
  };
}

export function countByState(store: Store): Record<MemoryState, number> {
  const unready = store
    .prepare(`SELECT state, count(*) AS n FROM memory_dynamics WHERE state <> 'ready' GROUP BY state`)
    .all() as { state: MemoryState; n: number }[];
  const all = (store.prepare('SELECT count(*) AS n FROM memory_dynamics').get() as { n: number }).n;
  const counts = { queued: 0, ready: all, failed: 0 };
  for (const { state, n } of unready) {
    counts[state] = n;
    counts.ready -= n;
  }
  return counts;
}
