/**
 * Reads the sources of memories: a `derived_from` edge leads from a memory to another one from which it was derived.
 */

import type { MemoryFilter } from '../types.ts';
import { type CompiledFilter, compileFilter } from './filter.ts';
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

/** Which memories are seen where origins are looked for. */
interface Seen {
  /** Filter that a source must pass to be followed. */
  readonly followed: CompiledFilter;
  /** Filter of the memories that a caller may see, whatever their status. Only these count as derived from another. */
  readonly bounds: CompiledFilter;
}

/** Compiles a filter of the memories that a query's users and the tags of its key let a caller see. */
export function boundsOf({ userIds, withinTags }: MemoryFilter): CompiledFilter {
  return compileFilter({ userIds, withinTags }, 0, { includeHidden: true });
}

/**
 * Finds the root of each memory by following its sources (`derived_from` links) in at most 8 steps. Of several sources,
 * the one with the lowest number is followed. The root of a document's chunk is the document's root memory.
 * @returns origins by memory number; a memory is left out if none of its sources is followed and no other memory that
 *   counts is derived from it
 */
export function originsOf(store: Store, memoryNos: readonly number[], { followed, bounds }: Seen): Map<number, Origin> {
  const { underived } = foundByTheWay(store);
  const open = memoryNos.filter((memoryNo) => !underived.has(memoryNo));
  if (open.length === 0) return new Map();
  const numbers = JSON.stringify(open);
  const filtered = followed.parameters;
  const rows = store
    .prepare(
      `WITH RECURSIVE chain (origin, node, depth, concluded) AS (
         SELECT c.value, e.dst, 1, e.automatic FROM json_each(?) AS c CROSS JOIN edges e
           ON e.src = c.value AND e.dst = (${sourcesFrom('c.value', followed)} LIMIT 1) AND e.type = 'derived_from'
         UNION ALL
         SELECT c.origin, e.dst, c.depth + 1, c.concluded FROM chain c CROSS JOIN edges e
           ON e.src = c.node AND e.dst = (${sourcesFrom('c.node', followed)} LIMIT 1) AND e.type = 'derived_from'
         WHERE c.depth < ${ROOT_DEPTH}
       )
       SELECT origin, root, concluded FROM (
         SELECT origin, node AS root, concluded, row_number() OVER (PARTITION BY origin ORDER BY depth DESC) AS place
         FROM chain)
       WHERE place = 1
       UNION ALL
       SELECT c.value, NULL, 0 FROM json_each(?) AS c
       WHERE EXISTS (SELECT 1 FROM edges s ${memoryAt('s.src', bounds)}
                     WHERE s.dst = c.value AND s.type = 'derived_from' AND ${bounds.sql})`,
    )
    .all(numbers, ...filtered, ...filtered, numbers, ...bounds.parameters) as {
    origin: number;
    root: number | null;
    concluded: 0 | 1;
  }[];
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
 * @param visible filter that a source must pass
 */
function sourcesFrom(memory: string, visible: CompiledFilter): string {
  return `SELECT s.dst FROM edges s ${memoryAt('s.dst', visible)}
    WHERE s.src = ${memory} AND s.type = 'derived_from' AND ${visible.sql} ORDER BY s.dst`;
}

/** Returns the SQL that joins the memory with this number, as a filter reads it; '' for a filter without conditions. */
function memoryAt(number: string, { conditions }: CompiledFilter): string {
  if (conditions.length === 0) return '';
  return `CROSS JOIN memories m ON m.seq = ${number} CROSS JOIN memory_dynamics d ON d.seq = ${number}`;
}
