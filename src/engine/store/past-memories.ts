/**
 * Reads memories as they were at an earlier time. What a memory was then may be much longer than what it is now, so its
 * size is measured in its revisions before it is read.
 */

import { assert } from '../errors.ts';
import type { Json, Memory, Metadata } from '../types.ts';
import { type MemoryRow, readMemoryRows, toMemory } from './memories.ts';
import type { Store } from './open-store.ts';
import { columnOf, JSON_COLUMNS } from './revisions.ts';
import { parseStored } from './stored-json.ts';
import { jsonWeight, MOST, withinBytes } from './text-sizes.ts';

/**
 * Reads memories by number as they were recorded at an earlier time: text, title, tags and all other fields that
 * revisions keep. A memory that was stored later is returned as it was first stored. It keeps what it has learnt about
 * the revisions of a memory, so it is used on one snapshot only.
 */
export interface PastReader {
  /**
   * Returns as many of the first numbers as have texts, values and metadata of at most `bytes` together, at the earlier
   * time and now, since both are read; at least the first one. Values and metadata count by their weight
   * (`jsonWeight`).
   */
  within(memoryNos: readonly number[], bytes: number): number[];
  /** Returns the numbers of memories whose content and title have not changed since: their vectors are of this text. */
  ofSameText(memoryNos: readonly number[]): number[];
  /** Reads rows, by memory number; unknown numbers are left out. */
  readRows(memoryNos: readonly number[]): Map<number, MemoryRow>;
  /** Reads memories, with salience and strength as of `now` (Unix ms); unknown numbers are left out. */
  read(memoryNos: readonly number[], now: number): Map<number, Memory>;
}

/**
 * Makes a reader of memories as they were at an earlier time.
 * @param at the earlier time, Unix ms; a change made exactly then is included
 */
export function createPastReader(store: Store, at: number): PastReader {
  const known = new Map<number, readonly LaterRevision[]>();
  const laterOf = (memoryNos: readonly number[]): LaterRevision[] => {
    const unknown = memoryNos.filter((memoryNo) => !known.has(memoryNo));
    const found = unknown.length === 0 ? [] : listLater(store, unknown, at);
    const byMemory = Map.groupBy(found, ({ memory }) => memory);
    for (const memoryNo of unknown) known.set(memoryNo, byMemory.get(memoryNo) ?? []);
    return memoryNos.flatMap((memoryNo) => known.get(memoryNo)!);
  };
  const readRows = (memoryNos: readonly number[]) => restoredRows(store, memoryNos, laterOf(memoryNos));
  return {
    within: (memoryNos, bytes) => withinBytes(store, memoryNos, bytes, pastWeights(store, laterOf(memoryNos), bytes)),
    ofSameText(memoryNos) {
      const changed = new Set(laterOf(memoryNos).flatMap(({ memory, fields }) => (TEXT.test(fields) ? [memory] : [])));
      return memoryNos.filter((memoryNo) => !changed.has(memoryNo));
    },
    readRows,
    read: (memoryNos, now) =>
      new Map([...readRows(memoryNos)].map(([memoryNo, row]) => [memoryNo, toMemory(row, now)])),
  };
}

/** Columns of a `LaterRevision`, of the alias `r`. SQLite knows the size of a text without reading it. */
const LATER_COLUMNS = `r.memory, r.version, r.fields, octet_length(r.snapshot) AS bytes,
  (SELECT p.replaced_at FROM memory_revisions p WHERE p.memory = r.memory AND p.version = r.version - 1) AS writtenAt`;

function listLater(store: Store, memoryNos: readonly number[], at: number): LaterRevision[] {
  return store
    .prepare(
      `SELECT ${LATER_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN memory_revisions r ON r.memory = wanted.value
       WHERE r.replaced_at > ? ORDER BY r.memory, r.version`,
    )
    .all(JSON.stringify(memoryNos), at) as LaterRevision[];
}

/**
 * Measures, by memory number, what has to be read of the later revisions of memories to restore them: bytes, or the
 * weight (`jsonWeight`) of revisions with a value or metadata.
 * @param later sorted by memory and version
 * @param most size beyond which it does not matter how large they are
 */
function pastWeights(store: Store, later: readonly LaterRevision[], most: number): Map<number, number> {
  const weights = new Map<number, number>();
  const add = (memory: number, bytes: number) => void weights.set(memory, (weights.get(memory) ?? 0) + bytes);
  const wide: LaterRevision[] = [];
  for (const revisions of Map.groupBy(later, ({ memory }) => memory).values()) {
    for (const { revision } of decisive(revisions)) {
      add(revision.memory, revision.bytes);
      if (WIDE.test(revision.fields)) wide.push(revision);
    }
  }
  // Snapshots are looked into only if they could weigh too much, and only as many as could be taken at all.
  const greatest = wide.reduce((sum, { bytes }) => sum + MOST * bytes, 0);
  if (greatest <= most) return weights;
  let left = most;
  const measured = wide.filter(({ bytes }) => {
    const isReached = left >= 0;
    left -= bytes;
    return isReached;
  });
  for (const { memory, weight } of readWeights(store, measured)) add(memory, weight);
  return weights;
}

/** Matches the fields of a revision that has a text or a title. */
const TEXT = /(?:^|,)(?:content|title)(?:,|$)/;
/** Matches the fields of a revision that has a value or metadata. */
const WIDE = /(?:^|,)(?:value|metadata)(?:,|$)/;

/** Reads by how much the weights (`jsonWeight`) of the values of revisions exceed their bytes. */
function readWeights(
  store: Store,
  revisions: readonly LaterRevision[],
): { readonly memory: number; readonly weight: number }[] {
  const wanted = revisions.map(({ memory, version }) => [memory, version]);
  return store
    .prepare(
      `SELECT r.memory, ${jsonWeight('r.snapshot')} - octet_length(r.snapshot) AS weight
       FROM json_each(?) AS wanted CROSS JOIN memory_revisions r
         ON r.memory = CAST(wanted.value ->> 0 AS INTEGER) AND r.version = CAST(wanted.value ->> 1 AS INTEGER)`,
    )
    .all(JSON.stringify(wanted)) as { memory: number; weight: number }[];
}

/**
 * Reads memories as they were in given versions; salience and strength are as of `now` (Unix ms). If the revision with
 * a version is not kept, the memory is returned in the next later version that is, or as it is now. Unknown numbers are
 * left out.
 * @param versions pairs of a memory's number and the wanted version
 */
export function readMemoriesInVersion(
  store: Store,
  versions: readonly (readonly [memoryNo: number, version: number])[],
  now: number,
): Map<number, Memory> {
  const later = store
    .prepare(
      `SELECT ${LATER_COLUMNS} FROM json_each(?) AS wanted
       CROSS JOIN memory_revisions r ON r.memory = CAST(wanted.value ->> 0 AS INTEGER)
       WHERE r.version >= CAST(wanted.value ->> 1 AS INTEGER) ORDER BY r.memory, r.version`,
    )
    .all(JSON.stringify(versions)) as LaterRevision[];
  const memoryNos = versions.map(([memoryNo]) => memoryNo);
  const rows = restoredRows(store, memoryNos, later);
  return new Map([...rows].map(([memoryNo, row]) => [memoryNo, toMemory(row, now)]));
}

/**
 * Reads rows of memories as they were before the changes of these revisions, which are sorted by memory and version.
 */
function restoredRows(
  store: Store,
  memoryNos: readonly number[],
  later: readonly LaterRevision[],
): Map<number, MemoryRow> {
  const rows = new Map(readMemoryRows(store, memoryNos).map((row) => [row.memoryNo, row]));
  for (const [memoryNo, revisions] of Map.groupBy(later, ({ memory }) => memory)) {
    const row = rows.get(memoryNo);
    assert(row !== undefined, 'a revision belongs to a memory');
    rows.set(memoryNo, rowBefore(store, row, revisions));
  }
  return rows;
}

/** A revision that was made after the time of which a memory is read. */
interface LaterRevision {
  readonly memory: number;
  readonly version: number;
  readonly fields: string;
  /** Size of the replaced values that the revision holds, as JSON, in UTF-8 bytes. */
  readonly bytes: number;
  /** Time at which the version was written, Unix ms; null for the first version. */
  readonly writtenAt: number | null;
}

/**
 * Restores a row as it was before the changes that left these revisions, given oldest first. For each field the first
 * revision with a value of it counts, so only few of the snapshots are read.
 */
function rowBefore(store: Store, row: MemoryRow, revisions: readonly LaterRevision[]): MemoryRow {
  const before = new Map<string, Json>();
  for (const { revision, fields } of decisive(revisions)) {
    const snapshot = readSnapshot(store, row.memoryNo, revision.version);
    for (const field of fields) {
      const column = columnOf(field);
      const value = snapshot[field] as Json;
      before.set(column, JSON_COLUMNS.has(column) && value !== null ? JSON.stringify(value) : value);
    }
  }
  const [first] = revisions as readonly [LaterRevision];
  const replaced = Object.fromEntries(before) as Partial<MemoryRow>;
  return { ...row, ...replaced, version: first.version, updated_at: first.writtenAt ?? row.created_at };
}

/**
 * Returns those of a memory's later revisions, given oldest first, that have the value of a field from the earlier
 * time, each with these fields: for each field the first revision with a value of it.
 */
function decisive(revisions: readonly LaterRevision[]): { revision: LaterRevision; fields: string[] }[] {
  const known = new Set<string>();
  return revisions.flatMap((revision) => {
    const fields = revision.fields.split(',').filter((field) => !known.has(field));
    for (const field of fields) known.add(field);
    return fields.length === 0 ? [] : [{ revision, fields }];
  });
}

function readSnapshot(store: Store, memoryNo: number, version: number): Metadata {
  const { snapshot } = store
    .prepare('SELECT snapshot FROM memory_revisions WHERE memory = ? AND version = ?')
    .get(memoryNo, version) as { snapshot: string };
  return parseStored(snapshot) as Metadata;
}
