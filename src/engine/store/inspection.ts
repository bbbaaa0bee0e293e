import type { FilterCondition } from './filter.ts';
import type { Store } from './open-store.ts';

/** Lists the times (Unix ms) of the latest changes of a memory, at most `limit`, newest first. */
export function listChangeTimes(store: Store, memoryNo: number, limit: number): number[] {
  return store
    .prepare('SELECT replaced_at FROM memory_revisions WHERE memory = ? ORDER BY version DESC LIMIT ?')
    .pluck()
    .all(memoryNo, limit) as number[];
}

/** Tells for each condition of a filter, in order, whether the memory meets it. The memory must exist. */
export function meetsConditions(store: Store, memoryNo: number, conditions: readonly FilterCondition[]): boolean[] {
  if (conditions.length === 0) return [];
  const columns = conditions.map(({ sql }, place) => `(${sql}) IS TRUE AS met_${place}`).join(',\n  ');
  const row = store
    .prepare(`SELECT ${columns} FROM memories m CROSS JOIN memory_dynamics d ON d.seq = m.seq WHERE m.seq = ?`)
    .get(...conditions.flatMap(({ parameters }) => parameters), memoryNo) as Record<string, number>;
  return conditions.map((_, place) => row[`met_${place}`] === 1);
}
