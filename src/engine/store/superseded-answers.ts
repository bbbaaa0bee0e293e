/** Finds the answers of standing queries (stored queries) that newer memories supersede. */

import type { Store } from './open-store.ts';

/**
 * Makes a function that finds the answers of standing queries which a memory directly superseded, for the memories
 * `memoryNos`. For each query with a number above `afterQuery` that has such an answer, it returns the newest one, a
 * memory's number, by the number of the query; of the first `limit` queries, by ascending number.
 * @param limit one more than the caller takes, so that it knows whether there are more
 */
export function createSupersededFinder(
  store: Store,
  memoryNos: readonly number[],
  limit: number,
): (memoryNo: number, afterQuery: number) => ReadonlyMap<number, number> {
  const superseding = listSuperseding(store, memoryNos);
  const find = store.prepare(
    `SELECT a.query_no AS queryNo, max(a.memory) AS supersedes FROM edges e
     CROSS JOIN standing_answers a ON a.memory = e.dst AND a.query_no > ?
     WHERE e.src = ? AND e.type = 'supersedes' GROUP BY a.query_no ORDER BY a.query_no LIMIT ?`,
  );
  return (memoryNo, afterQuery) => {
    const rows = superseding.has(memoryNo) ? find.all(afterQuery, memoryNo, limit) : [];
    return new Map((rows as { queryNo: number; supersedes: number }[]).map((row) => [row.queryNo, row.supersedes]));
  };
}

/** Lists which of these memories supersede a memory that is an answer of a standing query. */
function listSuperseding(store: Store, memoryNos: readonly number[]): ReadonlySet<number> {
  const rows = store
    .prepare(
      `SELECT DISTINCT e.src FROM json_each(?) AS w CROSS JOIN edges e ON e.src = w.value AND e.type = 'supersedes'
       WHERE EXISTS (SELECT 1 FROM standing_answers a WHERE a.memory = e.dst)`,
    )
    .pluck()
    .all(JSON.stringify(memoryNos)) as number[];
  return new Set(rows);
}
