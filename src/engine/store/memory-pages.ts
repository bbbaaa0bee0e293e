/**
 * Pages of memories in the order in which they were added, or of their event times. A page begins after a position in
 * this order, so its cost does not grow with the number of pages before it.
 */

import type { AsOf, ListOrder, MemoryFilter, Page } from '../types.ts';
import { compileFilter } from './filter.ts';
import { MEMORIES_OF_FILES } from './labels.ts';
import { createSealer, openCursor } from './list-cursor.ts';
import { placesOf, type PlacedSlice, type SliceWanted, LOOKED_AT_ONCE } from './placed.ts';
import type { Store } from './open-store.ts';
import { firstPassingWithin } from './passing-memories.ts';
import { findUserNo } from './users.ts';

/** Which memories a list has, and how it is sorted. */
export interface PageOrder {
  readonly filter: MemoryFilter;
  readonly order: ListOrder;
  /** Earlier time for which the filter is evaluated; the present by default. */
  readonly asOf?: AsOf | undefined;
}

/** A memory in the order of a list. `eventTime` (Unix ms) is 0 if the list is not sorted by it. */
interface Ordered {
  readonly memoryNo: number;
  readonly eventTime: number;
}

/**
 * Lists the next memories that pass a filter, with the defaults of `compileFilter`; with `asOf` also superseded ones
 * that held then. At most 2,000 memories are
 * examined, fewer if their tags or metadata take long, so there may be fewer than `limit`, or none, before the end of
 * the list.
 * @throws EngineError `invalid` for a cursor of another list or order, and for a filter that `compileFilter` refuses
 */
export function listMemoryPlaces(store: Store, page: PageOrder, wanted: SliceWanted): PlacedSlice {
  const { filter, order, asOf } = page;
  const list = `memories.${order.by}.${order.direction}`;
  // As in a query, the validity of superseded memories says whether they held at the earlier time.
  const passes = compileFilter(filter, wanted.now, asOf ? { asOf, statuses: ['active', 'superseded'] } : {});
  const after =
    wanted.cursor === undefined
      ? undefined
      : openCursor<[number, number]>(store, list, wanted.cursor, ['number', 'number']);
  const found = listInOrder(store, page, after);
  const seal = createSealer(store, list);
  return placesOf(store, {
    ...{ found, wanted, ...firstPassingWithin(store, passes, found, wanted.limit) },
    cursorAfter: ({ memoryNo, eventTime }) => seal([eventTime, memoryNo]),
  });
}

/**
 * A page that `limit` and `offset` (the number of passing memories that are skipped) select, or the part of it that is
 * still to be listed.
 */
export interface PagePart extends Page {
  /** Number of a memory below which the part begins; the newest memory by default. */
  readonly below?: number | undefined;
}

/**
 * Lists the numbers of one page of the memories that pass a filter, with the defaults of `compileFilter`, highest
 * number first. No text is read. If the filter parses tags, metadata or values, at most 2,000 memories are examined,
 * fewer if that takes long.
 * @returns `more`: the part of the page that is still to be listed; null if there is none
 */
export function listMemoryNos(
  store: Store,
  filter: MemoryFilter,
  { limit, offset, below }: PagePart,
  now: number,
): { readonly memoryNos: number[]; readonly more: PagePart | null } {
  const passes = compileFilter(filter, now);
  if (!passes.countsWork) {
    const statement = store.prepare(
      `SELECT m.seq FROM memories m CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE ${passes.sql} ORDER BY m.seq DESC LIMIT ? OFFSET ?`,
    );
    return { memoryNos: statement.pluck().all(...passes.parameters, limit, offset) as number[], more: null };
  }
  const page = { filter, order: { by: 'id', direction: 'desc' } } as const;
  const found = listInOrder(store, page, below === undefined ? undefined : [0, below]);
  const { looked, passing } = firstPassingWithin(store, passes, found, offset + limit);
  const memoryNos = passing.slice(offset).map(({ memoryNo }) => memoryNo);
  const isEnd = looked.length === found.length && found.length < LOOKED_AT_ONCE;
  const skipped = Math.min(offset, passing.length);
  return {
    memoryNos,
    more:
      isEnd || memoryNos.length === limit
        ? null
        : { limit: limit - memoryNos.length, offset: offset - skipped, below: looked.at(-1)!.memoryNo },
  };
}

/**
 * Lists the next 2,000 memories in the order of the list, before the whole filter is applied. Memories of one user are
 * read from an index by user. A condition on files or external ids is read from an index of its own, and the few rows
 * that it finds are sorted.
 */
function listInOrder(
  store: Store,
  { filter, order, asOf }: PageOrder,
  after: readonly [eventTime: number, memoryNo: number] | undefined,
): Ordered[] {
  if (filter.userIds?.length === 0) return [];
  const narrow = narrowSources(filter, asOf);
  const userNos = filter.userIds?.length === 1 ? [findUserNo(store, filter.userIds[0]!) ?? -1] : [];
  const isOfUser = userNos.length === 1;
  const byTime = order.by === 'event_time';

  const index = byTime
    ? `INDEXED BY ${isOfUser ? 'memories_by_time' : 'memories_by_event_time'}`
    : isOfUser
      ? 'INDEXED BY memories_by_user'
      : 'NOT INDEXED';
  const [beyond, direction] = order.direction === 'asc' ? ['>', 'ASC'] : ['<', 'DESC'];
  const conditions = [
    ...(isOfUser ? ['m.user_no = ?'] : []),
    ...(after === undefined ? [] : [byTime ? `(m.event_time, m.seq) ${beyond} (?, ?)` : `m.seq ${beyond} ?`]),
    ...narrow.map(({ sql }) => sql),
  ];
  const place = after === undefined ? [] : byTime ? after : [after[1]];
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
  return store
    .prepare(
      `SELECT m.seq AS memoryNo, ${byTime ? 'm.event_time' : '0'} AS eventTime
       FROM memories m ${narrow.length > 0 ? 'NOT INDEXED' : index}
       ${where} ORDER BY ${byTime ? `m.event_time ${direction}, ` : ''}m.seq ${direction} LIMIT ?`,
    )
    .all(...userNos, ...place, ...narrow.map(({ wanted }) => JSON.stringify(wanted)), LOOKED_AT_ONCE) as Ordered[];
}

/** Makes the conditions that select memories by an index which has few rows for each value, with the values. */
function narrowSources(
  { externalIds, files }: MemoryFilter,
  asOf: AsOf | undefined,
): { readonly sql: string; readonly wanted: readonly string[] }[] {
  // Which files a memory had earlier is in no index.
  const filesNow = asOf?.recorded === undefined ? files : undefined;
  return [
    ...(externalIds === undefined ? [] : [{ sql: `m.seq IN (${MEMORIES_OF_EXTERNAL_IDS})`, wanted: externalIds }]),
    ...(filesNow === undefined ? [] : [{ sql: `m.seq IN (${MEMORIES_OF_FILES})`, wanted: filesNow }]),
  ];
}

const MEMORIES_OF_EXTERNAL_IDS = `SELECT e.seq FROM json_each(?) AS wanted
  CROSS JOIN memories e INDEXED BY memories_by_external ON e.external_id = wanted.value AND e.external_id <> ''`;
