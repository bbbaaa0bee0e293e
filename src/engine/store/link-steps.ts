import type { EdgeType } from '../types.ts';
import type { CompiledFilter } from './filter.ts';
import { foundByTheWay } from './found-by-the-way.ts';
import type { Store } from './open-store.ts';
import { outerOrder } from './outer-order.ts';
import { createRowReader, type RowReader } from './ranking-rows.ts';

/** A step from a memory over a link to another memory, in either direction of the link. */
export interface Step {
  /** Number of the memory from which the step leads. */
  readonly origin: number;
  /** Number of the memory at the other end of the link. */
  readonly reached: number;
  readonly type: EdgeType;
  /** Weight of the link, 0..1. */
  readonly weight: number;
}

/**
 * Greatest number of links of one memory that are read in each direction, strongest first. It limits the cost of
 * memories with very many links.
 */
const LINKS_READ = 2_000;

/**
 * Greatest number of links, of all origins together, for which all links are read and the strongest are chosen in
 * JavaScript. This takes a third of the time of choosing in SQL, which is used for more links.
 */
const FEW_LINKS = 400;

/** Conditions on the memories to which a step may lead. */
export interface Allowed {
  readonly filter: CompiledFilter;
  /**
   * Numbers of all memories that pass the filter, if they are known already. The filter is then not applied, unless
   * there are more than 400 links.
   */
  readonly passing?: { has(memoryNo: number): boolean } | undefined;
  /** Numbers of memories that are known to pass the filter. Other memories may pass as well. */
  readonly known?: { has(memoryNo: number): boolean } | undefined;
  /** Applies the filter, and caches the rows of the memories that pass; by default a new reader is made. */
  readonly rows?: RowReader | undefined;
}

/**
 * Reads the strongest links of each memory to memories that pass the filter, at most `perOrigin` for each. Links of the
 * type `contradicts` are not followed, since what contradicts a hit does not answer the query. If the memories have
 * more than 400 links together, only the 2,000 strongest of each memory and direction are examined.
 * @returns steps sorted by `origin`, strongest first; ties by the number of the memory reached, then by type
 */
export function stepsFrom(store: Store, origins: readonly number[], allowed: Allowed, perOrigin: number): Step[] {
  const links = listLinksOf(store, origins, FEW_LINKS + 1);
  if (links.length > FEW_LINKS) return strongestSteps(store, origins, allowed.filter, perOrigin);
  noteUnderived(store, origins, links);
  return chooseSteps(store, links, allowed, perOrigin);
}

/** Notes which of these memories no `derived_from` link begins or ends at. @param links all links of the memories */
function noteUnderived(store: Store, memoryNos: readonly number[], links: readonly Step[]): void {
  const { underived } = foundByTheWay(store);
  const derived = new Set(links.filter(({ type }) => type === 'derived_from').map(({ origin }) => origin));
  for (const memoryNo of memoryNos) if (!derived.has(memoryNo)) underived.add(memoryNo);
}

/** Lists at most `limit` links of these memories, in both directions and in no certain order. */
function listLinksOf(store: Store, origins: readonly number[], limit: number): Step[] {
  const numbers = JSON.stringify(origins);
  return store
    .prepare(
      `SELECT e.src AS origin, e.dst AS reached, e.type, e.weight
       FROM json_each(?) AS o CROSS JOIN edges e INDEXED BY edges_by_src_weight ON e.src = o.value
       UNION ALL
       SELECT e.dst, e.src, e.type, e.weight
       FROM json_each(?) AS o CROSS JOIN edges e INDEXED BY edges_by_dst_weight ON e.dst = o.value
       LIMIT ?`,
    )
    .all(numbers, numbers, limit) as Step[];
}

function chooseSteps(store: Store, links: readonly Step[], allowed: Allowed, perOrigin: number): Step[] {
  const steps = links.filter(({ type }) => type !== 'contradicts');
  if (steps.length === 0) return [];
  const passing = allowed.passing ?? passingOf(store, steps, allowed);
  const inOrder = steps
    .filter(({ reached }) => passing.has(reached))
    .sort((a, b) => a.origin - b.origin || b.weight - a.weight || a.reached - b.reached || (a.type < b.type ? -1 : 1));
  const first = new Map<number, number>();
  return inOrder.filter(({ origin }, place) => {
    if (!first.has(origin)) first.set(origin, place);
    return place - first.get(origin)! < perOrigin;
  });
}

/** Returns the numbers of the memories reached by these steps that pass the filter. */
function passingOf(
  store: Store,
  steps: readonly Step[],
  { filter, known, rows = createRowReader(store) }: Allowed,
): { has(memoryNo: number): boolean } {
  const reached = new Set(steps.map((step) => step.reached));
  const unknown = [...reached].filter((memoryNo) => known?.has(memoryNo) !== true);
  const passing = new Set(rows.listPassingOf(filter, unknown));
  for (const memoryNo of reached) if (known?.has(memoryNo)) passing.add(memoryNo);
  return passing;
}

/**
 * Chooses the strongest links in SQL, for memories with many links, so that no more links are looked up than are
 * wanted.
 */
function strongestSteps(store: Store, origins: readonly number[], filter: CompiledFilter, perOrigin: number): Step[] {
  const numbers = JSON.stringify(origins);
  return store
    .prepare(
      `WITH step AS (
         ${strongestLinks(store, ['src', 'dst'], filter)}
         UNION ALL
         ${strongestLinks(store, ['dst', 'src'], filter)}
       ), numbered AS (
         SELECT origin, reached, type, weight,
           row_number() OVER (PARTITION BY origin ORDER BY weight DESC, reached, type) AS place
         FROM step
       )
       SELECT origin, reached, type, weight FROM numbered WHERE place <= ? ORDER BY origin, place`,
    )
    .all(numbers, ...filter.parameters, perOrigin, numbers, ...filter.parameters, perOrigin, perOrigin) as Step[];
}

/**
 * Returns the SQL for the links of one direction. SQLite has a lateral join only with a table-valued function, so the
 * links that pass the filter are collected as JSON and expanded again. Rows come in the order of the index, so reading
 * ends with the last wanted link.
 */
function strongestLinks(
  store: Store,
  [from, to]: readonly ['src' | 'dst', 'src' | 'dst'],
  filter: CompiledFilter,
): string {
  return `SELECT o.value AS origin, e.${to} AS reached, e.type, e.weight
         FROM json_each(?) AS o CROSS JOIN json_each((
           SELECT json_group_array(json_array(reached, type)) FROM (
             SELECT near.reached, near.type FROM (
               SELECT ${to} AS reached, type, weight FROM edges WHERE ${from} = o.value
               ORDER BY weight DESC, ${to}, type LIMIT ${LINKS_READ}
             ) AS near CROSS JOIN memories m ON m.seq = near.reached
               CROSS JOIN memory_dynamics d ON d.seq = near.reached
             WHERE near.type <> 'contradicts' AND ${filter.sql}
             ${outerOrder(store, 'near.weight DESC, near.reached, near.type')} LIMIT ?
           ))) AS strong
           CROSS JOIN edges e ON e.${from} = o.value AND e.${to} = CAST(strong.value ->> 0 AS INTEGER)
             AND e.type = strong.value ->> 1`;
}
