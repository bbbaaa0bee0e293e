import type { FilterCondition } from './filter.ts';
import type { Store } from './open-store.ts';

/** When a memory was changed last, newest first (Unix ms). */
export function listChangeTimes(store: Store, seq: number, limit: number): number[] {
  return store
    .prepare('SELECT replaced_at FROM memory_revisions WHERE memory = ? ORDER BY version DESC LIMIT ?')
    .pluck()
    .all(seq, limit) as number[];
}

/** Which of these conditions the memory meets, in their order. */
export function meetsConditions(store: Store, seq: number, conditions: readonly FilterCondition[]): boolean[] {
  if (conditions.length === 0) return [];
  const columns = conditions.map(({ sql }, place) => `(${sql}) IS TRUE AS met_${place}`).join(',\n  ');
  const row = store
    .prepare(`SELECT ${columns} FROM memories m CROSS JOIN memory_dynamics d ON d.seq = m.seq WHERE m.seq = ?`)
    .get(...conditions.flatMap(({ parameters }) => parameters), seq) as Record<string, number>;
  return conditions.map((_, place) => row[`met_${place}`] === 1);
}
