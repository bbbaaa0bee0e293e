import { parseStored } from './stored-json.ts';
import type { Json, MemoryStatus, Metadata, Revision } from '../types.ts';
import { setStatus } from './dynamics.ts';
import { type MemoryColumns, type MemoryRow, updateMemory } from './memories.ts';
import type { Store } from './open-store.ts';
import { withinBytes } from './text-sizes.ts';
import { writerOf } from './writers.ts';

/**
 * Changes columns and status of a memory, and keeps the replaced values as a revision. Without columns and status
 * nothing is written; an equal value counts as a change. The time of the revision is never earlier than that of the
 * previous change, even if the clock was set back. The caller must update the word index and the vectors. Call inside a
 * write.
 * @param before the row of the memory as it is stored now
 */
export function replaceMemory(
  store: Store,
  before: MemoryRow,
  {
    columns,
    status,
    byLink = false,
    writerNo = null,
    now,
  }: {
    readonly columns: MemoryColumns;
    readonly status: MemoryStatus | undefined;
    /**
     * Whether the change is caused by a link that was made or removed, or by a change of what a reflection rests on,
     * and not by a caller's update.
     */
    readonly byLink?: boolean;
    /** Number of the writer (key) who makes the change, as `ensureWriter` returns it; null if no caller does. */
    readonly writerNo?: number | null;
    readonly now: number;
  },
): void {
  if (Object.keys(columns).length === 0 && status === undefined) return;
  const replaced = replacedFields(before, columns, status);
  store
    .prepare(
      `INSERT INTO memory_revisions (memory, version, replaced_at, fields, by_link, status, event_time, valid_from,
         valid_to, snapshot, writer_no)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      before.memoryNo,
      before.version,
      Math.max(before.updated_at, now),
      Object.keys(replaced).join(','),
      byLink ? 1 : 0,
      before.status,
      before.event_time,
      before.valid_from,
      before.valid_to,
      JSON.stringify({ ...replaced, ...asideOf(before, columns) }),
      writerNo,
    );
  updateMemory(store, before.memoryNo, columns, now);
  if (status !== undefined) setStatus(store, before.memoryNo, status);
}

/** Name under which a snapshot keeps its `Aside`. */
const ASIDE = 'aside';

/**
 * What a revision keeps of a memory beside the former values of its fields, since they cannot be restored without it.
 * Revisions of version 0.1.0 have none of it.
 */
export interface Aside {
  /** Lifetime of an item before its expiry changed (ms); null for none. Undefined for a memory without a key. */
  readonly ttlMs?: number | null;
  /** Salience of a memory before its importance changed, as of the time `at` (Unix ms). */
  readonly salience?: { readonly value: number; readonly at: number };
}

function asideOf(before: MemoryRow, columns: MemoryColumns): { readonly [ASIDE]?: Aside } {
  const aside: Aside = {
    ...(columns.expires_at !== undefined && before.external_id !== null ? { ttlMs: before.ttl_ms } : {}),
    ...(columns.importance === undefined ? {} : { salience: { value: before.salience, at: before.salience_at } }),
  };
  return Object.keys(aside).length === 0 ? {} : { [ASIDE]: aside };
}

/** Takes the snapshot of a revision apart: the former values of the fields of `Memory`, and what was kept beside. */
export function parseSnapshot(snapshot: string): { readonly replaced: Metadata; readonly aside: Aside } {
  const { [ASIDE]: aside = {}, ...replaced } = parseStored(snapshot) as Metadata & { readonly [ASIDE]?: Aside };
  return { replaced, aside };
}

/**
 * Reads the latest status that an earlier version of a memory had and that no link determined. Its cost does not grow
 * with the number of revisions.
 * @returns undefined if no such version is kept
 */
export function readOwnStatus(store: Store, memoryNo: number): 'active' | 'archived' | undefined {
  const row = store
    .prepare(
      `SELECT status FROM memory_revisions
       WHERE memory = :memory AND version = (SELECT max(version) FROM (${latestOf('active', 'archived')}))`,
    )
    .get({ memory: memoryNo, below: Number.MAX_SAFE_INTEGER }) as { status: 'active' | 'archived' } | undefined;
  return row?.status;
}

/**
 * Reads the own end of validity of a superseded memory: the one that it had in its latest version that was not
 * superseded, or that a caller has set since. Its cost does not grow with the number of revisions.
 * @param version of the memory, if it is to be read as it was in an earlier one, in which it was superseded, too
 * @returns Unix ms, excluded; null means no end. Undefined if it is the end that the memory has in that version
 */
export function readOwnEnd(
  store: Store,
  memoryNo: number,
  version: number = Number.MAX_SAFE_INTEGER,
): number | null | undefined {
  return store
    .prepare(
      `SELECT valid_to FROM memory_revisions
       WHERE memory = :memory AND version = (SELECT max(version) FROM (
         ${latestOf('active', 'archived', 'contradicted')}
         UNION ALL SELECT max(version) + 1 FROM memory_revisions
         WHERE memory = :memory AND version < :below AND by_link = 0 AND fields LIKE '%validTo%'))`,
    )
    .pluck()
    .get({ memory: memoryNo, below: version }) as number | null | undefined;
}

/** A query of the latest version of `:memory` before `:below` with each of these statuses: a look at an index each. */
function latestOf(...statuses: readonly MemoryStatus[]): string {
  return statuses
    .map(
      (status) =>
        `SELECT max(version) AS version FROM memory_revisions
         WHERE memory = :memory AND status = '${status}' AND version < :below`,
    )
    .join(' UNION ALL ');
}

/** Greatest number of revisions of a memory that one read returns. */
const SLICE_REVISIONS = 128;
/**
 * Greatest number of bytes of replaced values that one call of `readRevisionSlice` returns, except for a single larger
 * revision.
 */
const SLICE_BYTES = 512 * 1024;

/** A slice of the revisions of a memory, newest first, and whether older ones follow. */
export interface RevisionSlice {
  readonly items: readonly Revision[];
  readonly hasMore: boolean;
}

/**
 * Reads the newest revisions of a memory that replaced a version below `before`: at most `limit` (1 or more) and 128,
 * with at most 512 KiB of values but at least one revision.
 */
export function readRevisionSlice(
  store: Store,
  memoryNo: number,
  { before, limit }: { readonly before: number; readonly limit: number },
): RevisionSlice {
  const near = store
    .prepare(
      `SELECT version, octet_length(snapshot) AS bytes FROM memory_revisions
       WHERE memory = ? AND version < ? ORDER BY version DESC LIMIT ?`,
    )
    .all(memoryNo, before, Math.min(limit, SLICE_REVISIONS) + 1) as { version: number; bytes: number }[];
  let bytes = 0;
  const beyond = near.findIndex((revision, place) => {
    bytes += revision.bytes;
    return place > 0 && (bytes > SLICE_BYTES || place === Math.min(limit, SLICE_REVISIONS));
  });
  const taken = beyond === -1 ? near.length : beyond;
  const rows = store
    .prepare(
      `SELECT version, replaced_at, snapshot, ${writerOf('memory_revisions.writer_no')} AS written_by
       FROM memory_revisions WHERE memory = ? AND version < ? ORDER BY version DESC LIMIT ?`,
    )
    .all(memoryNo, before, taken) as {
    version: number;
    replaced_at: number;
    snapshot: string;
    written_by: string | null;
  }[];
  const items = rows.map((row) => ({
    version: row.version,
    replacedAt: row.replaced_at,
    writtenBy: row.written_by,
    replaced: parseSnapshot(row.snapshot).replaced,
  }));
  return { items, hasMore: beyond !== -1 };
}

/** Counts the revisions of these memories. */
export function countRevisions(store: Store, memoryNos: readonly number[]): number {
  return store
    .prepare('SELECT count(*) FROM memory_revisions WHERE memory IN (SELECT value FROM json_each(?))')
    .pluck()
    .get(JSON.stringify(memoryNos)) as number;
}

/**
 * Name of the field of `Memory` for a column of `memories`. Revisions name their values by these fields; a column that
 * is not listed has the name of its field.
 */
const FIELD_OF_COLUMN: Readonly<Record<string, string>> = {
  event_time: 'eventTime',
  valid_from: 'validFrom',
  valid_to: 'validTo',
  expires_at: 'expiresAt',
  session_id: 'sessionId',
};
const COLUMN_OF_FIELD: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(FIELD_OF_COLUMN).map(([column, field]) => [field, column]),
);
/** The columns of `memories` that hold JSON. */
export const JSON_COLUMNS: ReadonlySet<string> = new Set(['tags', 'files', 'entities', 'metadata', 'value']);

/** Returns the column of `memories` for a field of a revision. */
export function columnOf(field: string): string {
  return COLUMN_OF_FIELD[field] ?? field;
}

/** Converts values of a revision, which are named as the fields of `Memory`, to columns of `memories`. */
export function columnsOf(values: Metadata): MemoryColumns {
  const columns = Object.entries(values).map(([field, value]): [string, unknown] => {
    const column = columnOf(field);
    return [column, JSON_COLUMNS.has(column) && value !== null ? JSON.stringify(value) : value];
  });
  return Object.fromEntries(columns);
}

/**
 * Returns the values that a revision keeps: the present values of the columns that change, and the status if it
 * changes, named as the fields of `Memory`.
 */
function replacedFields(before: MemoryRow, columns: MemoryColumns, newStatus: MemoryStatus | undefined): Metadata {
  const replaced = new Map<string, Json>();
  for (const column of Object.keys(columns)) {
    if (column === 'content_hash' || column === 'event_time_given') continue;
    const value = before[column as keyof MemoryRow];
    replaced.set(
      FIELD_OF_COLUMN[column] ?? column,
      JSON_COLUMNS.has(column) && value !== null ? (parseStored(value as string) as Json) : value,
    );
  }
  if (newStatus !== undefined) replaced.set('status', before.status);
  return Object.fromEntries(replaced);
}

/**
 * Reads the statuses that memories had at an earlier time, by memory number. A memory that was not changed later is
 * left out, since it had its present status.
 * @param at the earlier time, Unix ms; a change made exactly then is included
 */
export function readStatusesAsOf(store: Store, memoryNos: readonly number[], at: number): Map<number, MemoryStatus> {
  const rows = store
    .prepare(
      `SELECT memory, status FROM (
         SELECT r.memory, r.status, row_number() OVER (PARTITION BY r.memory ORDER BY r.version) AS place
         FROM json_each(?) AS wanted CROSS JOIN memory_revisions r ON r.memory = wanted.value
         WHERE r.replaced_at > ?)
       WHERE place = 1`,
    )
    .all(JSON.stringify(memoryNos), at) as { memory: number; status: MemoryStatus }[];
  return new Map(rows.map(({ memory, status }) => [memory, status]));
}

/**
 * Greatest size of the texts, values and metadata of memories that one commit archives (bytes), since each row is
 * rewritten with them. A single memory may have more.
 */
export const ARCHIVED_BYTES = 2 * 1024 * 1024;

/**
 * Archives faded memories, those whose salience has become low: at most `limit` active memories with a `salience_now`
 * (as `refreshSalience` wrote it) below `below`, and of at most 2 MiB together but at least one, each with a revision.
 * It examines memories with numbers above `afterMemoryNo` up to `last`, included. Call inside a write.
 * @returns the number of archived memories; 0 if none is left
 */
export function archiveFaded(
  store: Store,
  {
    afterMemoryNo,
    last,
    below,
    limit,
    now,
  }: { afterMemoryNo: number; last: number; below: number; limit: number; now: number },
): number {
  const found = store
    .prepare(
      `SELECT seq FROM memory_dynamics
       WHERE seq > ? AND seq <= ? AND status = 'active' AND salience_now < ? ORDER BY seq LIMIT ?`,
    )
    .pluck()
    .all(afterMemoryNo, last, below, limit) as number[];
  if (found.length === 0) return 0;
  const faded = JSON.stringify(withinBytes(store, found, ARCHIVED_BYTES));
  const ofFaded = 'seq IN (SELECT value FROM json_each(:faded))';
  store
    .prepare(
      `INSERT INTO memory_revisions (memory, version, replaced_at, fields, by_link, status, event_time, valid_from,
         valid_to, snapshot)
       SELECT seq, version, max(updated_at, :now), 'status', 0, 'active', event_time, valid_from, valid_to,
         '{"status":"active"}'
       FROM memories WHERE ${ofFaded}`,
    )
    .run({ faded, now });
  store
    .prepare(`UPDATE memories SET version = version + 1, updated_at = max(updated_at, :now) WHERE ${ofFaded}`)
    .run({ faded, now });
  return store.prepare(`UPDATE memory_dynamics SET status = 'archived' WHERE ${ofFaded}`).run({ faded }).changes;
}

/**
 * Yields the status of these versions of a memory, and their replaced values as JSON, in no particular order. The
 * connection cannot write until the iteration has ended.
 */
export function readSnapshots(
  store: Store,
  memoryNo: number,
  versions: readonly number[],
): Iterable<{
  readonly version: number;
  readonly status: MemoryStatus;
  readonly snapshot: string;
  /** Time of the change that replaced the values, Unix ms. */
  readonly replacedAt: number;
}> {
  return store
    .prepare(
      `SELECT version, status, snapshot, replaced_at AS replacedAt FROM memory_revisions
       WHERE memory = ? AND version IN (SELECT value FROM json_each(?))`,
    )
    .iterate(memoryNo, JSON.stringify(versions)) as ReturnType<typeof readSnapshots>;
}

/** Deletes all revisions of a memory. Call inside a write. */
export function deleteRevisions(store: Store, memoryNo: number): void {
  store.prepare('DELETE FROM memory_revisions WHERE memory = ?').run(memoryNo);
}

/**
 * Yields the values that the newest 128 changes of a memory replaced (`SLICE_REVISIONS`), each as JSON, the newest
 * first. Older revisions are not read.
 */
export function* iterateSnapshots(store: Store, memoryNo: number): Generator<string> {
  const read = store.prepare(SELECT_SNAPSHOT).pluck();
  for (const version of newestVersions(store, memoryNo)) yield read.get(memoryNo, version) as string;
}

/** Prefetches what `iterateSnapshots` reads of these memories, which must be small together. Call inside a write. */
export function prefetchSnapshots(store: Store, memoryNos: readonly number[]): void {
  const { ahead } = store;
  if (ahead === null) return;
  ahead.ask(
    SELECT_NEWEST_VERSIONS,
    memoryNos.map((memoryNo) => [memoryNo, SLICE_REVISIONS]),
  );
  for (const memoryNo of memoryNos)
    ahead.ask(
      SELECT_SNAPSHOT,
      newestVersions(store, memoryNo).map((version) => [memoryNo, version]),
    );
}

const SELECT_NEWEST_VERSIONS = 'SELECT version FROM memory_revisions WHERE memory = ? ORDER BY version DESC LIMIT ?';
const SELECT_SNAPSHOT = 'SELECT snapshot FROM memory_revisions WHERE memory = ? AND version = ?';

const newestVersions = (store: Store, memoryNo: number): number[] =>
  store.prepare(SELECT_NEWEST_VERSIONS).pluck().all(memoryNo, SLICE_REVISIONS) as number[];
