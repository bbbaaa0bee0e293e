/**
 * Reads the sources of memories: a `derived_from` edge leads from a memory to another one from which it was derived.
 */

import type { CompiledFilter } from './filter.ts';
import { foundByTheWay } from './found-by-the-way.ts';
import type { Store } from './open-store.ts';

/** Greatest number of `derived_from` steps that are followed from a memory to its root. */
const ROOT_DEPTH = 8;
/** Greatest number of `derived_from` steps that `sourcesOf` follows from a memory to its sources. */
const SOURCE_DEPTH = 3;

/**
 * How a memory is connected by `derived_from` links: what it was derived from, and whether others were derived from it.
 * A memory without such links has no Origin.
 */
export interface Origin {
  /**
   * `memoryNo` of the memory that is reached when sources are followed to the end, in at most 8 steps; the memory's own
   * number if it has no sources.
   */
  readonly root: number;
  /**
   * Whether other memories are derived from the memory. Rely on it only for a memory without sources, whose `root` is
   * its own number; for one with sources it may have either value.
   */
  readonly isSource: boolean;
  /**
   * Whether the link to the memory's first source is automatic, as it is for a reflection, a consolidation, and a
   * memory whose add named its sources. False for a part of a document, and for a link that a caller stated later.
   */
  readonly hasAutomaticSource: boolean;
}

/**
 * Finds the origins of memories as `originsOf` does, but follows sources whatever their status. The root of a
 * document's chunk is the document's root memory; a memory outside of documents may have another memory as its root.
 */
export function unfilteredOriginsOf(store: Store, memoryNos: readonly number[]): Map<number, Origin> {
  return originsOf(store, memoryNos, null);
}

/**
 * Finds the root of each memory by following its sources (`derived_from` links) in at most 8 steps. Of several sources,
 * the one with the lowest number is followed.
 * @param visible filter that a source must pass to be followed; null follows all
 * @returns origins by memory number; a memory is left out if none of its sources is followed and no other memory is
 *   derived from it
 */
export function originsOf(
  store: Store,
  memoryNos: readonly number[],
  visible: CompiledFilter | null,
): Map<number, Origin> {
  const { underived } = foundByTheWay(store);
  const open = memoryNos.filter((memoryNo) => !underived.has(memoryNo));
  if (open.length === 0) return new Map();
  const numbers = JSON.stringify(open);
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
       SELECT origin, root, concluded FROM (
         SELECT origin, node AS root, concluded, row_number() OVER (PARTITION BY origin ORDER BY depth DESC) AS place
         FROM chain)
       WHERE place = 1
       UNION ALL
       SELECT value, NULL, 0 FROM json_each(?)
       WHERE EXISTS (SELECT 1 FROM edges WHERE dst = value AND type = 'derived_from')`,
    )
    .all(numbers, ...filtered, ...filtered, numbers) as { origin: number; root: number | null; concluded: 0 | 1 }[];
  const origins = new Map<number, Origin>();
  for (const { origin, root, concluded } of rows) {
    const earlier = origins.get(origin) ?? { root: origin, isSource: true, hasAutomaticSource: false };
    origins.set(
      origin,
      root === null ? { ...earlier, isSource: true } : { root, isSource: false, hasAutomaticSource: concluded === 1 },
    );
  }
  return origins;
}

/**
 * Lists for each memory the visible memories that it is derived from in at most 3 steps over visible memories, nearest
 * first, then by ascending number; at most `most` for each.
 * @returns numbers of the sources by memory number; an empty list for a memory without visible sources
 */
export function sourcesOf(
  store: Store,
  memoryNos: readonly number[],
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
    .all(JSON.stringify(memoryNos), ...visible.parameters) as { origin: number; source: number }[];
  const sources = new Map<number, number[]>(memoryNos.map((memoryNo) => [memoryNo, []]));
  for (const { origin, source } of rows) {
    const listed = sources.get(origin)!;
    if (listed.length < most) listed.push(source);
  }
  return sources;
}

/**
 * Returns the SQL that selects the direct sources of a memory by ascending number, the order of the primary key.
 * @param memory SQL expression for the number of the memory
 * @param visible filter that a source must pass; null for none
 */
function sourcesFrom(memory: string, visible: CompiledFilter | null): string {
  const joined =
    visible === null ? '' : 'CROSS JOIN memories m ON m.seq = s.dst CROSS JOIN memory_dynamics d ON d.seq = s.dst';
  return `SELECT s.dst FROM edges s ${joined}
    WHERE s.src = ${memory} AND s.type = 'derived_from' AND ${visible?.sql ?? 'TRUE'} ORDER BY s.dst`;
}
