import type { Json } from '../types.ts';
import type { MemoryColumns, MemoryRow } from './memories.ts';
import type { Store } from './open-store.ts';
import { writerOf } from './writers.ts';
import { type Aside, columnsOf, parseSnapshot, readOwnEnd, readSnapshots } from './revisions.ts';

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
 * Begins the name of the writer of a revision by which the changes of a key were undone; the key's public id follows.
 * No key has such an id.
 */
const UNDO = 'undo:';

/** Returns the name of the writer of revisions by which the changes of a key are undone. */
export function undoerOf(keyId: string): string {
  return UNDO + keyId;
}

/**
 * A search through the revisions of a memory for the values that it had before the unbroken series of one writer's
 * changes at the end of its history. It reads no values, only which fields each revision replaced, and may be continued
 * in another commit. Changes that links caused are ignored, and so are changes that were undone, with their undoing,
 * and changes of the status that Cairn made by itself. Only if it archived the memory after the writer had changed the
 * importance, by which it decides that, the former status is restored with the importance.
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
  /** Keys whose undone changes are being passed over. The next ones are those of the last key. */
  readonly undone: readonly string[];
  /** Version of the oldest change by which Cairn archived the memory since the writer's changes; null for none. */
  readonly archived: number | null;
  /** Whether others made the last changes. The search then only tells whether a change of the writer is left. */
  readonly isByOthers: boolean;
  /** Whether others have changed the memory since the last change of the writer that was not undone. */
  readonly isChangedSince: boolean;
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
    writtenBy,
    begun,
    room,
  }: { readonly writtenBy: string; readonly begun: FormerSearch | null; readonly room: UndoRoom },
): FormerSearch {
  const { memoryNo, version } = row;
  const isContinued = begun?.memoryNo === memoryNo && begun.version === version;
  if (isContinued && begun.isDone) return begun;
  let below = isContinued ? begun.below : Number.MAX_SAFE_INTEGER;
  const oldest = new Map(isContinued ? Object.entries(begun.oldest) : []);
  const undone = isContinued ? [...begun.undone] : [];
  let archived = isContinued ? begun.archived : null;
  let isByOthers = isContinued && begun.isByOthers;
  let isChangedSince = false;
  const limit = Math.max(1, room.revisions);
  const changes = store
    .prepare(
      `SELECT version, fields, status, by_link AS byLink, ${writerOf('memory_revisions.writer_no')} AS writtenBy,
         octet_length(snapshot) AS bytes
       FROM memory_revisions WHERE memory = ? AND version < ? ORDER BY version DESC LIMIT ?`,
    )
    .iterate(memoryNo, below, limit) as IterableIterator<SearchedRevision>;
  let seen = 0;
  for (const change of changes) {
    if (change.byLink === 0 && change.writtenBy === null && change.fields === 'status') {
      if (change.status === 'active') archived = change.version;
    } else if (change.byLink === 0 && !wasUndone(undone, change)) {
      isChangedSince = isByOthers && change.writtenBy === writtenBy;
      isByOthers ||= change.writtenBy !== writtenBy;
      if (isChangedSince || (isByOthers && oldest.size > 0)) break;
      const fields = isByOthers ? [] : change.fields.split(',');
      if (fields.includes('importance') && archived !== null)
        oldest.set('status', Math.min(archived, oldest.get('status') ?? archived));
      for (const field of fields) oldest.set(field, change.version);
    }
    seen += 1;
    below = change.version;
    room.revisions -= 1;
    room.passedBytes -= change.bytes;
    if (room.passedBytes <= 0) break;
  }
  const isDone = seen < limit && room.passedBytes > 0;
  const found = { below, oldest: Object.fromEntries(oldest), undone, archived, isByOthers, isChangedSince };
  return { memoryNo, version, ...found, isDone };
}

/**
 * Tells whether a revision undoes changes, or is one of those that were undone; older revisions are passed later.
 * @param undone keys whose changes were undone at this place; it is brought up to the revision
 */
function wasUndone(undone: string[], { writtenBy }: SearchedRevision): boolean {
  if (writtenBy?.startsWith(UNDO)) return undone.push(writtenBy.slice(UNDO.length)) > 0;
  while (undone.length > 0 && undone.at(-1) !== writtenBy) undone.pop();
  return undone.length > 0;
}

interface SearchedRevision {
  readonly version: number;
  readonly fields: string;
  /** Status that was replaced, or that the memory kept. */
  readonly status: MemoryRow['status'];
  readonly byLink: number;
  readonly writtenBy: string | null;
  readonly bytes: number;
}

/** Values that a memory had before its latest changes, if one writer made all of them. */
export interface FormerValues {
  /** The former values by column, for the columns whose present value is different. */
  readonly columns: MemoryColumns;
  /** The former status; undefined if it is the present one. */
  readonly status: MemoryRow['status'] | undefined;
  /** The former lifetime of an item whose expiry was changed, as `Aside` has it. */
  readonly ttlMs: Aside['ttlMs'];
  /**
   * The former salience of a memory whose importance was changed, as `Aside` has it, and the time of the first of these
   * changes (Unix ms). Undefined if the importance was not changed.
   */
  readonly salience: { readonly former: Aside['salience']; readonly replacedAt: number } | undefined;
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
  let ttlMs: Aside['ttlMs'];
  let salience: FormerValues['salience'];
  for (const { version, status, snapshot, replacedAt } of readSnapshots(store, row.memoryNo, [...found.keys()])) {
    room.readBytes -= Buffer.byteLength(snapshot);
    const { replaced, aside } = parseSnapshot(snapshot);
    if (version === oldest.expiresAt) ({ ttlMs } = aside);
    if (version === oldest.importance) salience = { former: aside.salience, replacedAt };
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
    ttlMs,
    salience,
  };
}
