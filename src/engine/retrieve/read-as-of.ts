import { readStatusesAsOf } from '../store/revisions.ts';
import type { Store } from '../store/open-store.ts';
import type { RankingRow, RowReader } from '../store/ranking-rows.ts';
import type { MemoryQuery } from '../types.ts';

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
