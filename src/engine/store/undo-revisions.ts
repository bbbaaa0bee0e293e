import { parseStored } from './stored-json.ts';
import type { Json, Metadata } from '../types.ts';
import type { MemoryColumns, MemoryRow } from './memories.ts';
import type { Store } from './open-store.ts';
import { columnsOf, readOwnEnd, readSnapshots } from './revisions.ts';

/** Lists the lowest numbers above `after` of memories that a writer (key) changed, at most `limit`. */
export function listChangedBy(
  store: Store,
  writerNo: number,
  { after, limit }: { readonly after: number; readonly limit: number },
): number[] {
  return store
    .prepare(
      `SELECT DISTINCT memory FROM memory_revisions
       WHERE writer_no = ? AND writer_no > 0 AND memory > ? ORDER BY memory LIMIT ?`,
    )
    .pluck()
    .all(writerNo, after, limit) as number[];
}

/**
 * A search through the revisions of a memory for the values that it had before the unbroken series of one writer's
 * changes at the end of its history. It reads no values, only which fields each revision replaced, and may be continued
 * in another commit. Changes that links caused are ignored.
 */
export interface FormerSearch {
  readonly memoryNo: number;
  /** Version of the memory when the search began; a search of another version is of no use. */
  readonly version: number;
  /**
   * Version of the last revision that was looked at; the search goes on with lower versions. Above all versions before
   * the first look.
   */
  readonly below: number;
  /** The oldest version of the series that has a value of the field, by the name of the field in `Memory`. */
  readonly oldest: Readonly<Record<string, number>>;
  readonly isDone: boolean;
}

/**
 * What one commit may still look at and read; `searchFormer` and `valuesBefore` subtract what they take, so that a
 * number may end below 0. Only `searchFormer` stops where there is no room left, after one revision at the earliest;
 * before it calls `valuesBefore`, the caller checks that `readBytes` is above 0.
 */
export interface UndoRoom {
  /** Number of revisions that may be looked at. */
  revisions: number;
  /** Size of the replaced values (bytes) that may be passed over without reading them. */
  passedBytes: number;
  /** Size of the replaced values (bytes) that may be read. */
  readBytes: number;
}

/**
 * Searches the revisions of a memory, newest first, as far as there is room; at least one of them.
 * @param begun the search so far; it is begun anew if it was for another memory or version
 */
export function searchFormer(
  store: Store,
  row: MemoryRow,
  {
    writerNo,
    begun,
    room,
  }: { readonly writerNo: number; readonly begun: FormerSearch | null; readonly room: UndoRoom },
): FormerSearch {
  const { memoryNo, version } = row;
  const isContinued = begun?.memoryNo === memoryNo && begun.version === version;
  if (isContinued && begun.isDone) return begun;
  let below = isContinued ? begun.below : Number.MAX_SAFE_INTEGER;
  const oldest = new Map(isContinued ? Object.entries(begun.oldest) : []);
  const limit = Math.max(1, room.revisions);
  const changes = store
    .prepare(
      `SELECT version, fields, by_link AS byLink, writer_no AS writerNo, octet_length(snapshot) AS bytes
       FROM memory_revisions WHERE memory = ? AND version < ? ORDER BY version DESC LIMIT ?`,
    )
    .iterate(memoryNo, below, limit) as IterableIterator<SearchedRevision>;
  let seen = 0;
  for (const change of changes) {
    if (change.byLink === 0 && change.writerNo !== writerNo) break;
    seen += 1;
    below = change.version;
    room.revisions -= 1;
    room.passedBytes -= change.bytes;
    if (change.byLink === 0) for (const field of change.fields.split(',')) oldest.set(field, change.version);
    if (room.passedBytes <= 0) break;
  }
  const isDone = seen < limit && room.passedBytes > 0;
  return { memoryNo, version, below, oldest: Object.fromEntries(oldest), isDone };
}

interface SearchedRevision {
  readonly version: number;
  readonly fields: string;
  readonly byLink: number;
  readonly writerNo: number | null;
  readonly bytes: number;
}

/** Values that a memory had before its latest changes, if one writer made all of them. */
export interface FormerValues {
  /** The former values by column, for the columns whose present value is different. */
  readonly columns: MemoryColumns;
  /** The former status; undefined if it is the present one. */
  readonly status: MemoryRow['status'] | undefined;
}

/**
 * Reads the values that a search has found, and of the revisions only those that have them: one for each field at most.
 * An end of validity that came from a successor is no former value: the memory's own end at that time is.
 * @param row the memory, with its own end of validity
 * @returns undefined if another writer made the last change, or if nothing was changed
 */
export function valuesBefore(
  store: Store,
  row: MemoryRow,
  { oldest }: FormerSearch,
  room: UndoRoom,
): FormerValues | undefined {
  const found = Map.groupBy(Object.entries(oldest), ([, version]) => version);
  if (found.size === 0) return undefined;
  const values = new Map<string, Json>();
  let isEndOfLink = false;
  for (const { version, status, snapshot } of readSnapshots(store, row.memoryNo, [...found.keys()])) {
    room.readBytes -= Buffer.byteLength(snapshot);
    const replaced = parseStored(snapshot) as Metadata;
    for (const [field] of found.get(version)!) values.set(field, replaced[field]!);
    if (version === oldest.validTo) isEndOfLink = status === 'superseded';
  }
  const ownEnd = isEndOfLink ? readOwnEnd(store, row.memoryNo, oldest.validTo) : undefined;
  if (ownEnd !== undefined) values.set('validTo', ownEnd);
  const { status, ...fields } = Object.fromEntries(values);
  const columns = Object.entries(columnsOf(fields)).filter(([name, value]) => row[name as keyof MemoryRow] !== value);
  return {
    columns: Object.fromEntries(columns),
    status: status === row.status ? undefined : (status as MemoryRow['status'] | undefined),
  };
}
