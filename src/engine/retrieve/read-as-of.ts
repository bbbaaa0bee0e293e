import { readMemoriesAsOf, readStatusesAsOf } from '../store/revisions.ts';
import type { Store } from '../store/open-store.ts';
import type { RankingRow, RowReader } from '../store/ranking-rows.ts';
import type { Memory, MemoryQuery } from '../types.ts';
import type { RetrieveContext } from './retrieve-context.ts';

/**
 * Returns a function that reads memories by `memoryNo`: in their recorded state at the time `asOf.recorded`, or in
 * their present state if that is not set. Memories that have been erased are left out.
 * @param now time for which salience and strength are computed, Unix ms
 */
export function createMemoryReader(
  context: RetrieveContext,
  { asOf }: Pick<MemoryQuery, 'asOf'>,
  now: number,
): (memoryNos: readonly number[]) => ReadonlyMap<number, Memory> {
  const at = asOf?.recorded;
  return at === undefined
    ? (memoryNos) => context.readMemories(context.store, memoryNos, now)
    : (memoryNos) => readMemoriesAsOf(context.store, memoryNos, { at, now });
}

/**
 * Reads the rows that ranking needs of distinct memories, in no order. With `asOf.recorded`, the status is the one
 * recorded at that time. With any `asOf`, a superseded memory gets the status `active`: since it passed the filter, it
 * was still valid at that time.
 */
export function readRankingRowsAsOf(
  store: Store,
  reader: RowReader,
  memoryNos: readonly number[],
  { asOf }: Pick<MemoryQuery, 'asOf'>,
): RankingRow[] {
  const rows = reader.read(memoryNos);
  if (asOf === undefined) return rows;
  const then = asOf.recorded === undefined ? undefined : readStatusesAsOf(store, memoryNos, asOf.recorded);
  return rows.map((row) => {
    const status = then?.get(row.memoryNo) ?? row.status;
    return { ...row, status: status === 'superseded' ? 'active' : status };
  });
}
