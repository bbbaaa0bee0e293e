import type { EdgeType } from '../types.ts';
import type { CompiledFilter } from './filter.ts';
import type { Store } from './open-store.ts';
import { createRowReader, type RowReader } from './ranking-rows.ts';

/** A step over a link, in either of its directions. */
export interface Step {
  /** Number of the memory that the step begins at. */
  readonly origin: number;
  /** Number of the memory at the other end of the link. */
  readonly reached: number;
  readonly type: EdgeType;
  /** Weight of the link, 0..1. */
  readonly weight: number;
}

/**
 * Links of one origin that are read in each direction, strongest first. It bounds the cost of a hub, whatever the
 * filter leaves of it.
 */
const LINKS_READ = 2_000;

/**
 * Most links of all origins together that are read whole and chosen in JavaScript. That takes a third of the time of
 * the statement that chooses in SQL, if there are no hubs.
 */
const FEW_LINKS = 400;

/** Limits of the memories that a step may lead to. */
export interface Allowed {
  readonly filter: CompiledFilter;
  /** Numbers of all memories that pass the filter, if they are known already; this spares applying the filter. */
  readonly passing?: ReadonlySet<number> | undefined;
  /** Memories that are known to pass the filter, by number, where others may pass, too. */
  readonly known?: { has(memoryNo: number): boolean } | undefined;
  /** Applies the filter and keeps the rows of the memories that pass. */
  readonly rows?: RowReader | undefined;
}

/**
 * Reads the strongest links of each origin to memories that pass the filter, at most `perOrigin` for each.
 * `contradicts` links are not followed: a memory that contradicts a hit is no hit for that.
 * @returns steps by origin, strongest first; ties by the number of the memory reached
 */
export function stepsFrom(store: Store, origins: readonly number[], allowed: Allowed, perOrigin: number): Step[] {
  const links = listLinksOf(store, origins, FEW_LINKS + 1);
  return links.length > FEW_LINKS
    ? strongestSteps(store, origins, allowed.filter, perOrigin)
    : chooseSteps(store, links, allowed, perOrigin);
}

/** At most `limit` links of these memories, in both directions. */
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

/** Finds the memories reached that pass the filter. */
function passingOf(
  store: Store,
  steps: readonly Step[],
  { filter, known, rows = createRowReader(store) }: Allowed,
): ReadonlySet<number> {
  const reached = new Set(steps.map((step) => step.reached));
  const unknown = [...reached].filter((memoryNo) => known?.has(memoryNo) !== true);
  const passing = new Set(rows.listPassingOf(filter, unknown));
  for (const memoryNo of reached) if (known?.has(memoryNo)) passing.add(memoryNo);
  return passing;
}

/**
 * Chooses the strongest links in SQL, for origins with many: no more links are read than are wanted, however many a hub
 * has.
 */
function strongestSteps(store: Store, origins: readonly number[], filter: CompiledFilter, perOrigin: number): Step[] {
  const numbers = JSON.stringify(origins);
  return store
    .prepare(
      `WITH step AS (
         ${strongestLinks('src', 'dst', filter)}
         UNION ALL
         ${strongestLinks('dst', 'src', filter)}
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
 * SQL for the links of one direction. SQLite joins laterally only to a table-valued function, so the links that pass
 * leave the index as JSON and are looked up again. Rows leave the inner SELECT in the order of the index, so reading
 * ends with the last link that is wanted.
 */
function strongestLinks(from: 'src' | 'dst', to: 'src' | 'dst', filter: CompiledFilter): string {
  return `SELECT o.value AS origin, e.${to} AS reached, e.type, e.weight
         FROM json_each(?) AS o CROSS JOIN json_each((
           SELECT json_group_array(json_array(reached, type)) FROM (
             SELECT near.reached, near.type FROM (
               SELECT ${to} AS reached, type FROM edges WHERE ${from} = o.value
               ORDER BY weight DESC, ${to}, type LIMIT ${LINKS_READ}
             ) AS near CROSS JOIN memories m ON m.seq = near.reached
               CROSS JOIN memory_dynamics d ON d.seq = near.reached
             WHERE near.type <> 'contradicts' AND ${filter.sql} LIMIT ?
           ))) AS strong
           CROSS JOIN edges e ON e.${from} = o.value AND e.${to} = CAST(strong.value ->> 0 AS INTEGER)
             AND e.type = strong.value ->> 1`;
}
