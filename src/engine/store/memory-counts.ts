import { type MemoryState, SECTORS, type SectorStats } from '../types.ts';
import { SALIENCE_AT } from './faded-sql.ts';
import type { Store } from './open-store.ts';

/**
 * Counts all memories of the file, even those that queries do not find or that have expired. Unlike the highest
 * `memoryNo`, the count falls when a memory is erased.
 */
export function countMemories(store: Store): number {
  return (store.prepare('SELECT sum(memories) AS memories FROM users').get() as { memories: number }).memories;
}

/**
 * Returns the highest `memoryNo` if it is at most `most`; otherwise the number of memories, which is never higher. The
 * caller only asks whether there are more than `most`, and a `memoryNo` takes no count of all users.
 */
export function countMemoriesUpTo(store: Store, most: number): number {
  const last = lastMemory(store);
  return last <= most ? last : countMemories(store);
}

/** Counts the memories with numbers above `memoryNo`. */
export function countMemoriesAfter(store: Store, memoryNo: number): number {
  return (store.prepare('SELECT count(*) AS n FROM memories WHERE seq > ?').get(memoryNo) as { n: number }).n;
}

/** Returns the highest number of a memory in the file; 0 if there is none. */
export function lastMemory(store: Store): number {
  return (store.prepare('SELECT max(seq) AS last FROM memories').get() as { last: number | null }).last ?? 0;
}

/**
 * Finds users by id, by ascending user number, each with the number of its memories. Users without memories are left
 * out, except for the user '', which always exists.
 */
export function findUsers(
  store: Store,
  userIds: readonly string[],
): { readonly userNo: number; readonly memories: number }[] {
  return store
    .prepare(
      `SELECT user_no AS userNo, memories FROM users WHERE user_id IN (SELECT value FROM json_each(?))
       ORDER BY user_no`,
    )
    .all(JSON.stringify(userIds)) as { userNo: number; memories: number }[];
}

/** Counts memories by state. It groups only those that are not ready, and counts the ready ones as the rest. */
export function countByState(store: Store): Record<MemoryState, number> {
  const unready = store
    .prepare(`SELECT state, count(*) AS n FROM memory_dynamics WHERE state <> 'ready' GROUP BY state`)
    .all() as { state: MemoryState; n: number }[];
  const all = (store.prepare('SELECT count(*) AS n FROM memory_dynamics').get() as { n: number }).n;
  const counts = { queued: 0, ready: all, failed: 0 };
  for (const { state, n } of unready) {
    counts[state] = n;
    counts.ready -= n;
  }
  return counts;
}

/**
 * Counts the memories of each primary sector and computes their mean salience as of `now` (Unix ms). There is one entry
 * for each sector, in the order of SECTORS; the mean is 0 for a sector without memories.
 */
export function sectorStats(store: Store, now: number): SectorStats[] {
  const rows = store
    .prepare(
      `SELECT primary_sector AS sector, count(*) AS count,
         avg(${SALIENCE_AT}) AS averageSalience
       FROM memory_dynamics d GROUP BY primary_sector`,
    )
    .all(now) as SectorStats[];
  const statsOf = new Map(rows.map((row) => [row.sector, row]));
  return SECTORS.map((sector) => statsOf.get(sector) ?? { sector, count: 0, averageSalience: 0 });
}
