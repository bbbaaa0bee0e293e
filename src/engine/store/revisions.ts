import { assert } from '../errors.ts';
import type { Json, Memory, MemoryStatus, Metadata, Revision } from '../types.ts';
import { type MemoryColumns, type MemoryRow, readMemoryRows, toMemory } from './memories.ts';
import type { Store } from './open-store.ts';

export function insertRevision(store: Store, memory: number, revision: Revision): void {
  store
    .prepare('INSERT INTO memory_revisions (memory, version, replaced_at, snapshot) VALUES (?, ?, ?, ?)')
    .run(memory, revision.version, revision.replacedAt, JSON.stringify(revision.replaced));
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
};
const COLUMN_OF_FIELD: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(FIELD_OF_COLUMN).map(([column, field]) => [field, column]),
);
const JSON_COLUMNS: ReadonlySet<string> = new Set(['tags', 'files', 'entities', 'metadata']);

/** What a revision keeps of a memory of which these columns, and with `newStatus` the status, are about to change. */
export function replacedFields(
  before: MemoryRow,
  columns: MemoryColumns,
  newStatus: MemoryStatus | undefined,
): Metadata {
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
      `SELECT r.memory, r.version, r.snapshot,
         (SELECT p.replaced_at FROM memory_revisions p WHERE p.memory = r.memory AND p.version = r.version - 1) AS writtenAt
       FROM json_each(?) AS wanted CROSS JOIN memory_revisions r ON r.memory = wanted.value
       WHERE r.replaced_at > ? ORDER BY r.memory, r.version DESC`,
    )
    .iterate(JSON.stringify(seqs), at) as IterableIterator<LaterRevision>;
  for (const revision of later) {
    const row = rows.get(revision.memory);
    assert(row !== undefined, 'a revision belongs to a memory');
    rows.set(row.seq, rowBefore(row, revision));
  }
  return new Map([...rows].map(([seq, row]) => [seq, toMemory(row, now)]));
}

interface LaterRevision {
  readonly memory: number;
  readonly version: number;
  readonly snapshot: string;
  /** null for the first version. */
  readonly writtenAt: number | null;
}

/** The row as it was before the change that left this revision. */
function rowBefore(row: MemoryRow, { version, snapshot, writtenAt }: LaterRevision): MemoryRow {
  const replaced = Object.entries(JSON.parse(snapshot) as Metadata).map(([field, value]) => {
    const column = COLUMN_OF_FIELD[field] ?? field;
    return [column, JSON_COLUMNS.has(column) ? JSON.stringify(value) : value];
  });
  const before = Object.fromEntries(replaced) as Partial<MemoryRow>;
  return { ...row, ...before, version, updated_at: writtenAt ?? row.created_at };
}

/** The statuses at a time of recording (Unix ms) of those of these memories whose status changed since. */
export function readStatusesAsOf(store: Store, seqs: readonly number[], at: number): Map<number, MemoryStatus> {
  const rows = store
    .prepare(
      `SELECT memory, status, min(version) FROM (
         SELECT r.memory, r.version, json_extract(r.snapshot, '$.status') AS status
         FROM json_each(?) AS wanted CROSS JOIN memory_revisions r ON r.memory = wanted.value WHERE r.replaced_at > ?)
       WHERE status IS NOT NULL GROUP BY memory`,
    )
    .all(JSON.stringify(seqs), at) as { memory: number; status: MemoryStatus }[];
  return new Map(rows.map(({ memory, status }) => [memory, status]));
}
