import { decayed, initialSalience, sectorsFromBits } from '../dynamics.ts';
import { MAX_RELABELLED } from '../store/chains.ts';
import { setSalience } from '../store/dynamics.ts';
import { listStatedBy, listSuccessors } from '../store/edges.ts';
import { hasManyTrips } from '../store/foresight.ts';
import { keptHash } from '../store/duplicates.ts';
import { setItemTtl } from '../store/items.ts';
import { readMemoryRows, type MemoryColumns, type MemoryRow } from '../store/memories.ts';
import {
  type FormerSearch,
  type FormerValues,
  listChangedBy,
  searchFormer,
  undoerOf,
  type UndoRoom,
  valuesBefore,
} from '../store/undo-revisions.ts';
import { contentBytes } from '../store/text-sizes.ts';
import { indexedBytes, MAX_INDEXED_BYTES } from '../store/word-index/memory-text.ts';
import { findWriter } from '../store/writers.ts';
import { contentHash } from '../text/content-hash.ts';
import { changeMemory, endsTooMany, prepareChange } from './patch.ts';
import { removeLink } from './relate.ts';
import { ownEndOf, settleStatus, startOf } from './settle-status.ts';
import type { WriteContext } from './write-context.ts';

/** Result of one slice of `undoLinks`. */
export interface UndoneLinks {
  /** Number of links that were removed. */
  readonly edges: number;
  /** True if no link of the writer is left. */
  readonly isDone: boolean;
}

/** Result of one slice of `undoChanges`. */
export interface UndoneChanges {
  /** Number of memories that have their former values again. */
  readonly restored: number;
  /**
   * Number of memories that keep their values: somebody else has changed them since, or they supersede over 200 others,
   * which would end anew.
   */
  readonly unrestored: number;
  /**
   * `memoryNo` of the last memory of the slice, after which the next slice begins. It is the given `after` if only a
   * part of the changes for the first memory was written; null if no memory is left.
   */
  readonly last: number | null;
  /** The search for the former values of the memory after `last`, for the next slice; left out if none was begun. */
  readonly begun?: FormerSearch;
  /** Whether the caller must archive the reflections on the memory of `begun` before the next slice. */
  readonly hasManyReflections?: boolean;
}

/** Greatest number of revisions that one commit looks at; each takes a microsecond or two. */
const SEARCHED_REVISIONS = 2_000;
/**
 * Size of the values (bytes) of revisions that one commit passes over. SQLite follows the pages of a long value to find
 * the writer behind it, which takes some 25 ms for this many.
 */
const PASSED_BYTES = 32 * 1024 * 1024;
/**
 * Size of texts and values (bytes) of memories whose status follows from removed links, after which one commit removes
 * no further link: the row of each is rewritten with them.
 */
const SETTLED_BYTES = 2 * 1024 * 1024;
/** Number of round trips that settling a memory takes in PostgreSQL; rather too many. */
const SETTLING_TRIPS = 5;
/**
 * Size of former values (bytes) after which one commit restores no further memory: parsing them and indexing their
 * words takes up to half a second for each MiB.
 */
const READ_BYTES = 256 * 1024;

/**
 * Removes at most `limit` links that an API key stated, and restores the status of memories that these links had
 * changed. It removes fewer if long chains are split, if their memories have long texts, or in PostgreSQL if more would
 * take over 150 round trips.
 */
export function undoLinks(
  context: WriteContext,
  { writtenBy, limit }: { readonly writtenBy: string; readonly limit: number },
): UndoneLinks {
  const writerNo = findWriter(context.store, writtenBy);
  const links = writerNo === undefined ? [] : listStatedBy(context.store, writerNo, limit);
  const bytesOf = contentBytes(
    context.store,
    links.flatMap(({ src, dst }) => [src, dst]),
  );
  const unsettled = new Set<number>();
  let [edges, moved, left] = [0, 0, SETTLED_BYTES];
  for (const link of links) {
    moved += removeLink(context, link, (memoryNo) => {
      if (!unsettled.has(memoryNo)) left -= bytesOf.get(memoryNo) ?? 0;
      unsettled.add(memoryNo);
    });
    edges += 1;
    if (moved >= MAX_RELABELLED || left <= 0) break;
    if (hasManyTrips(context.store, unsettled.size * SETTLING_TRIPS)) break;
  }
  for (const memoryNo of unsettled) settleStatus(context, memoryNo);
  return { edges, isDone: edges === links.length && links.length < limit };
}

/**
 * Restores the former values of memories that an API key changed, in one slice of at most `limit` memories with a
 * `memoryNo` above `after`; fewer if they have many revisions or long values, or if much text is indexed anew for them.
 * Restoring is a change like any other, and leaves a revision, whose writer is `undoerOf` the key. Changes that were
 * undone before count as not made, and a memory of which nothing else is left to undo is not counted. A memory that
 * somebody else has changed since keeps its values, and so does one whose start of validity would move although it
 * supersedes more than 200 others.
 * @param asked.begun what the previous slice returned as `begun`
 * @param asked.archivedTo as for `archiveReflectionsOn`, of the memory of `begun`
 */
export function undoChanges(
  context: WriteContext,
  asked: {
    readonly writtenBy: string;
    readonly after: number;
    readonly limit: number;
    readonly begun?: FormerSearch | undefined;
    readonly archivedTo?: number | undefined;
  },
): UndoneChanges {
  const { store } = context;
  const { writtenBy, after, limit, begun = null, archivedTo } = asked;
  const writerNo = findWriter(store, writtenBy);
  if (writerNo === undefined) return { restored: 0, unrestored: 0, last: null };
  const memoryNos = listChangedBy(store, writerNo, { after, limit });
  const undoing = { ...context, writtenBy: undoerOf(writtenBy) };
  const room = { revisions: SEARCHED_REVISIONS, passedBytes: PASSED_BYTES, readBytes: READ_BYTES };
  let [restored, unrestored] = [0, 0];
  for (const [place, memoryNo] of memoryNos.entries()) {
    const outcome = restore(undoing, readMemoryRows(store, [memoryNo])[0], { writtenBy, begun, room, archivedTo });
    if (typeof outcome === 'object') return { restored, unrestored, last: memoryNos[place - 1] ?? after, ...outcome };
    if (outcome === 'restored') restored += 1;
    if (outcome === 'unrestored') unrestored += 1;
    if (Object.values(room).some((left) => left <= 0) || indexedBytes(store) >= MAX_INDEXED_BYTES)
      return { restored, unrestored, last: memoryNo };
  }
  return { restored, unrestored, last: memoryNos.at(-1) ?? null };
}

/**
 * Restores the values that a memory had before the writer's changes at the end of its history. What its links determine
 * stays: a superseded or contradicted status, and the end of validity.
 * @returns `unrestored` if the memory is gone or keeps its values; `undone` if all changes of the writer were undone
 *   before; the search for the values (`begun`) if only a part of it, or of the necessary changes, was done, because
 *   one commit would be too large
 */
function restore(
  context: WriteContext,
  row: MemoryRow | undefined,
  asked: {
    readonly writtenBy: string;
    readonly begun: FormerSearch | null;
    readonly room: UndoRoom;
    readonly archivedTo: number | undefined;
  },
): 'restored' | 'unrestored' | 'undone' | Pick<UndoneChanges, 'begun' | 'hasManyReflections'> {
  if (row === undefined) return 'unrestored';
  const search = searchFormer(context.store, row, asked);
  if (!search.isDone) return { begun: search };
  if (Object.keys(search.oldest).length === 0) return search.isChangedSince ? 'unrestored' : 'undone';
  // While the memory is superseded, its end may be that of its links, which give it this one again below.
  const ownEnd = ownEndOf(context.store, row);
  const former = valuesBefore(context.store, { ...row, valid_to: ownEnd }, search, asked.room);
  if (former === undefined || endsTooMany(context.store, row, former.columns)) return 'unrestored';
  const { content } = former.columns;
  const hash = content === undefined ? {} : { content_hash: keptHash(contentHash(content)) };
  const end = former.status === undefined || ownEnd === row.valid_to ? {} : { valid_to: ownEnd };
  const columns = { ...end, ...withLifetime(context, row, former), ...hash };
  const archivedTo = asked.begun?.memoryNo === row.memoryNo ? asked.archivedTo : undefined;
  const prepared = prepareChange(context, row, columns, archivedTo);
  if (prepared !== 'done') return { begun: search, ...(prepared === 'begun' ? {} : { hasManyReflections: true }) };
  changeMemory(context, row, { columns, status: former.status, isPrepared: true });
  if (typeof former.ttlMs === 'number') setItemTtl(context.store, row.memoryNo, former.ttlMs);
  restoreSalience(context, row, former);
  const isEndChanged = search.oldest.validTo !== undefined;
  if (former.status !== undefined || 'valid_from' in columns || isEndChanged) settleByLinks(context, row);
  return 'restored';
}

/**
 * Returns the columns to restore. An item that had a lifetime gets a whole one from now on, as if it was just read: but
 * for the change that is undone it would have been renewed. A revision of version 0.1.0 does not tell the lifetime:
 * then an item keeps the end that it has if it has a lifetime, or if its former end has passed.
 */
function withLifetime({ now }: WriteContext, row: MemoryRow, { columns, ttlMs }: FormerValues): MemoryColumns {
  if (typeof ttlMs === 'number') return { ...columns, expires_at: now + ttlMs };
  const { expires_at: end, ...others } = columns;
  const isUnknown = row.external_id !== null && ttlMs === undefined && typeof end === 'number';
  return isUnknown && (row.ttl_ms !== null || end <= now) ? others : columns;
}

/**
 * Gives a memory whose importance is restored the salience that it would have if the importance had not been changed:
 * the former one, with what recalls have added since. If the revision does not tell it, as one of version 0.1.0, a
 * memory without an importance gets the salience of a new one.
 * @param row the memory before its values were restored
 */
function restoreSalience({ store, now }: WriteContext, row: MemoryRow, { columns, salience }: FormerValues): void {
  if (salience === undefined) return;
  const { former, replacedAt } = salience;
  const additional = sectorsFromBits(row.sectors, row.primary_sector).length - 1;
  const byNow = (value: number, at: number) => decayed({ value, at }, row.decay_lambda, now);
  const stated = row.importance === null ? 0 : byNow(row.importance, replacedAt);
  const added = Math.max(0, byNow(row.salience, row.salience_at) - stated);
  if (former !== undefined) setSalience(store, row.memoryNo, Math.min(1, byNow(former.value, former.at) + added), now);
  else if (columns.importance === null) setSalience(store, row.memoryNo, initialSalience(null, additional), now);
}

/** Gives a memory the status, and the end of validity, that its links determine whatever it was before them. */
function settleByLinks(context: WriteContext, { memoryNo }: MemoryRow): void {
  const { store } = context;
  const [successor] = readMemoryRows(store, listSuccessors(store, memoryNo).slice(0, 1));
  settleStatus(context, memoryNo, successor && { endsAt: startOf(successor) });
}
