import type { CompiledFilter } from './filter.ts';
import type { Store } from './open-store.ts';

/** What memories are made from: `derived_from` leads from knowledge to its source. */

/** Sources of sources are followed so far. */
const ROOT_DEPTH = 8;
const SOURCE_DEPTH = 3;

/** Where a memory stands among its sources; those that are neither derived nor a source stand nowhere. */
export interface Origin {
  /** The memory at the end of its sources; itself without any. */
  readonly root: number;
  /** Whether others are derived from it. */
  readonly isSource: boolean;
  /** Whether it is no part of its source, but what a language model concluded from several. */
  readonly isConclusion: boolean;
}

/** What each memory is a part of, by number: the document or memory that it is derived from in the end. */
export function documentsOf(store: Store, seqs: readonly number[]): Map<number, Origin> {
  return originsOf(store, seqs, null);
}

/**
 * Where memories come from in the end. Of several sources the oldest leads on.
 * @param visible sources that do not pass it count as absent; null for any
 */
export function originsOf(store: Store, seqs: readonly number[], visible: CompiledFilter | null): Map<number, Origin> {
  const numbers = JSON.stringify(seqs);
  const filtered = visible?.parameters ?? [];
  const rows = store
    .prepare(
      `WITH RECURSIVE chain (origin, node, depth, concluded) AS (
         SELECT c.value, e.dst, 1, e.automatic FROM json_each(?) AS c CROSS JOIN edges e
           ON e.src = c.value AND e.dst = (${sourcesFrom('c.value', visible)} LIMIT 1) AND e.type = 'derived_from'
         UNION ALL
         SELECT c.origin, e.dst, c.depth + 1, c.concluded FROM chain c CROSS JOIN edges e
           ON e.src = c.node AND e.dst = (${sourcesFrom('c.node', visible)} LIMIT 1) AND e.type = 'derived_from'
         WHERE c.depth < ${ROOT_DEPTH}
       )
       SELECT origin, node AS root, max(depth) AS depth, concluded FROM chain GROUP BY origin
       UNION ALL
       SELECT value, NULL, 0, 0 FROM json_each(?)
       WHERE EXISTS (SELECT 1 FROM edges WHERE dst = value AND type = 'derived_from')`,
    )
    .all(numbers, ...filtered, ...filtered, numbers) as { origin: number; root: number | null; concluded: 0 | 1 }[];
  const origins = new Map<number, Origin>();
  for (const { origin, root, concluded } of rows) {
    const known = origins.get(origin) ?? { root: origin, isSource: true, isConclusion: false };
    origins.set(
      origin,
      root === null ? { ...known, isSource: true } : { root, isSource: false, isConclusion: concluded === 1 },
    );
  }
  return origins;
}

/** At most `most` visible memories that each is derived from, nearest first, then oldest first. */
export function sourcesOf(
  store: Store,
  seqs: readonly number[],
  { visible, most }: { readonly visible: CompiledFilter; readonly most: number },
): Map<number, number[]> {
  const rows = store
    .prepare(
      `WITH RECURSIVE tree (origin, node, depth) AS (
         SELECT value, value, 0 FROM json_each(?)
         UNION
         SELECT t.origin, e.dst, t.depth + 1 FROM tree t CROSS JOIN edges e
           ON e.src = t.node AND e.dst IN (${sourcesFrom('t.node', visible)} LIMIT ${most}) AND e.type = 'derived_from'
         WHERE t.depth < ${SOURCE_DEPTH}
       )
       SELECT origin, node AS source, min(depth) AS depth FROM tree WHERE node <> origin GROUP BY origin, node
       ORDER BY origin, depth, source`,
    )
    .all(JSON.stringify(seqs), ...visible.parameters) as { origin: number; source: number }[];
  const sources = new Map<number, number[]>(seqs.map((seq) => [seq, []]));
  for (const { origin, source } of rows) {
    const found = sources.get(origin)!;
    if (found.length < most) found.push(source);
  }
  return sources;
}

/** Numbers of the sources of a memory, oldest first, which is the order of the primary key. */
function sourcesFrom(memory: string, visible: CompiledFilter | null): string {
  const joined =
    visible === null ? '' : 'CROSS JOIN memories m ON m.seq = s.dst CROSS JOIN memory_dynamics d ON d.seq = s.dst';
  return `SELECT s.dst FROM edges s ${joined}
    WHERE s.src = ${memory} AND s.type = 'derived_from' AND ${visible?.sql ?? '1'} ORDER BY s.dst`;
}
