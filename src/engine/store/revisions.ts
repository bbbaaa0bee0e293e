import { assert } from '../errors.ts';
import type { Json, Memory, MemoryStatus, Metadata, Revision } from '../types.ts';
import { setStatus } from './dynamics.ts';
import { type MemoryColumns, type MemoryRow, readMemoryRows, toMemory, updateMemory } from './memories.ts';
import type { Store } from './open-store.ts';

/**
 * Changes a memory and keeps what it replaces, under a version of its own; nothing is written where nothing changes. Record time never
 * falls, also where the clock was set back: what replaced a version came after it.
 */
export function replaceMemory(
  store: Store,
  before: MemoryRow,
  {
    columns,
    status,
    byLink = false,
    now,
  }: {
    readonly columns: MemoryColumns;
    readonly status: MemoryStatus | undefined;
    /** A link that came or went changes it, not someone's PATCH. */
    readonly byLink?: boolean;
    readonly now: number;
  },
): void {
  if (Object.keys(columns).length === 0 && status === undefined) return;
  const replaced = replacedFields(before, columns, status);
  store
    .prepare(
      `INSERT INTO memory_revisions (memory, version, replaced_at, fields, by_link, status, event_time, valid_from, valid_to, snapshot)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      before.seq,
      before.version,
      Math.max(before.updated_at, now),
      Object.keys(replaced).join(','),
      byLink ? 1 : 0,
      before.status,
      before.event_time,
      before.valid_from,
      before.valid_to,
      JSON.stringify(replaced),
    );
  updateMemory(store, before.seq, columns, now);
  if (status !== undefined) setStatus(store, before.seq, status);
}

/** How a version stood, apart from what it said. */
export interface Standing {
  readonly status: MemoryStatus;
  readonly validTo: number | null;
  /** Whether a link changed it to the next. */
  readonly byLink: boolean;
}

/** Of the versions that were replaced, newest first; their texts are not read. */
export function listStandings(store: Store, memory: number): Standing[] {
  const rows = store
    .prepare(
      `SELECT status, valid_to AS validTo, by_link AS byLink FROM memory_revisions WHERE memory = ? ORDER BY version DESC`,
    )
    .all(memory) as (Omit<Standing, 'byLink'> & { byLink: number })[];
  return rows.map((row) => ({ ...row, byLink: row.byLink === 1 }));
}

/** Newest first. */
export function listRevisions(store: Store, memory: number): Revision[] {
  const rows = store
    .prepare('SELECT version, replaced_at, snapshot FROM memory_revisions WHERE memory = ? ORDER BY version DESC')
    .all(memory) as { version: number; replaced_at: number; snapshot: string }[];
  return rows.map((row) => ({
    version: row.version,
    replacedAt: row.replaced_at,
    replaced: JSON.parse(row.snapshot) as Metadata,
  }));
}

export function countRevisions(store: Store, memory: number): number {
  return (store.prepare('SELECT count(*) AS n FROM memory_revisions WHERE memory = ?').get(memory) as { n: number }).n;
}

/** Snapshots name fields as `Memory` does. The other columns have the same name there. */
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
const JSON_COLUMNS: ReadonlySet<string> = new Set(['tags', 'files', 'entities', 'metadata']);

/** What a revision keeps of a memory of which these columns, and with `newStatus` the status, are about to change. */
function replacedFields(before: MemoryRow, columns: MemoryColumns, newStatus: MemoryStatus | undefined): Metadata {
  const replaced = new Map<string, Json>();
  for (const column of Object.keys(columns)) {
    if (column === 'content_hash' || column === 'event_time_given') continue;
    const value = before[column as keyof MemoryRow];
    replaced.set(
      FIELD_OF_COLUMN[column] ?? column,
      JSON_COLUMNS.has(column) ? (JSON.parse(value as string) as Json) : value,
    );
  }
  if (newStatus !== undefined) replaced.set('status', before.status);
  return Object.fromEntries(replaced);
}

/**
 * Memories by `seq` as they stood at a time of recording: text, title, tags and all else that revisions keep. One that was stored
 * later is shown as it was first stored. What fades is as of `now`; unknown numbers are left out.
 * @param at Unix ms
 */
export function readMemoriesAsOf(
  store: Store,
  seqs: readonly number[],
  { at, now }: { readonly at: number; readonly now: number },
): Map<number, Memory> {
  const rows = new Map(readMemoryRows(store, seqs).map((row) => [row.seq, row]));
  const later = store
    .prepare(
      `SELECT r.memory, r.version, r.fields,
         (SELECT p.replaced_at FROM memory_revisions p WHERE p.memory = r.memory AND p.version = r.version - 1) AS writtenAt
       FROM json_each(?) AS wanted CROSS JOIN memory_revisions r ON r.memory = wanted.value
       WHERE r.replaced_at > ? ORDER BY r.memory, r.version`,
    )
    .all(JSON.stringify(seqs), at) as LaterRevision[];
  for (const [seq, revisions] of Map.groupBy(later, ({ memory }) => memory)) {
    const row = rows.get(seq);
    assert(row !== undefined, 'a revision belongs to a memory');
    rows.set(seq, rowBefore(store, row, revisions));
  }
  return new Map([...rows].map(([seq, row]) => [seq, toMemory(row, now)]));
}

interface LaterRevision {
  readonly memory: number;
  readonly version: number;
  readonly fields: string;
  /** null for the first version. */
  readonly writtenAt: number | null;
}

/**
 * The row as it was before the changes that left these revisions, the oldest first. Of each field the first of them that names it
 * tells, so that few of many snapshots are read.
 */
function rowBefore(store: Store, row: MemoryRow, revisions: readonly LaterRevision[]): MemoryRow {
  const before = new Map<string, Json>();
  for (const { version, fields } of revisions) {
    const missing = fields.split(',').filter((field) => !before.has(columnOf(field)));
    if (missing.length === 0) continue;
    const snapshot = readSnapshot(store, row.seq, version);
    for (const field of missing) {
      const column = columnOf(field);
      const value = snapshot[field] as Json;
      before.set(column, JSON_COLUMNS.has(column) ? JSON.stringify(value) : value);
    }
  }
  const [first] = revisions as readonly [LaterRevision];
  const replaced = Object.fromEntries(before) as Partial<MemoryRow>;
  return { ...row, ...replaced, version: first.version, updated_at: first.writtenAt ?? row.created_at };
}

function columnOf(field: string): string {
  return COLUMN_OF_FIELD[field] ?? field;
}

function readSnapshot(store: Store, memory: number, version: number): Metadata {
  const { snapshot } = store
    .prepare('SELECT snapshot FROM memory_revisions WHERE memory = ? AND version = ?')
    .get(memory, version) as { snapshot: string };
  return JSON.parse(snapshot) as Metadata;
}

/** The statuses at a time of recording (Unix ms) of those of these memories that were changed since. */
export function readStatusesAsOf(store: Store, seqs: readonly number[], at: number): Map<number, MemoryStatus> {
  const rows = store
    .prepare(
      `SELECT r.memory, r.status, min(r.version)
       FROM json_each(?) AS wanted CROSS JOIN memory_revisions r ON r.memory = wanted.value
       WHERE r.replaced_at > ? GROUP BY r.memory`,
    )
    .all(JSON.stringify(seqs), at) as { memory: number; status: MemoryStatus }[];
  return new Map(rows.map(({ memory, status }) => [memory, status]));
}

/** Archives at most `limit` of one slice of active memories that faded, each as a revision. @returns how many */
export function archiveFaded(
  store: Store,
  { afterSeq, last, below, limit, now }: { afterSeq: number; last: number; below: number; limit: number; now: number },
): number {
  const slice = { after: afterSeq, last, below, limit };
  const faded = `SELECT seq FROM memory_dynamics WHERE seq > :after AND seq <= :last AND status = 'active' AND salience_now < :below
    ORDER BY seq LIMIT :limit`;
  store
    .prepare(
      `INSERT INTO memory_revisions (memory, version, replaced_at, fields, by_link, status, event_time, valid_from, valid_to, snapshot)
       SELECT seq, version, max(updated_at, :now), 'status', 0, 'active', event_time, valid_from, valid_to, '{"status":"active"}'
       FROM memories WHERE seq IN (${faded})`,
    )
    .run({ ...slice, now });
  store
    .prepare(`UPDATE memories SET version = version + 1, updated_at = max(updated_at, :now) WHERE seq IN (${faded})`)
    .run({ ...slice, now });
  return store.prepare(`UPDATE memory_dynamics SET status = 'archived' WHERE seq IN (${faded})`).run(slice).changes;
}
