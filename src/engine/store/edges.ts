/**
 * Links between memories, indexed in both directions. A waypoint is an automatic link to the nearest memory; the schema
 * allows at most one automatic waypoint from each memory. The other automatic links are `contradicts` and `supports`,
 * from a comparison of texts, and `derived_from`, from a reflection or consolidation, or from a memory whose add named
 * its sources.
 */

import { RECALL_WAYPOINT_BOOST } from '../dynamics.ts';
import type { EdgeType, Link } from '../types.ts';
import { IS_SHOWN } from './document-generations.ts';
import type { Store } from './open-store.ts';
import { writerOf } from './writers.ts';

/** Automatic link from the memory `src` to the nearest other memory `dst`, both by number. */
export interface Waypoint {
  readonly src: number;
  readonly dst: number;
  /** Cosine of the two memories' vectors when the link was made. */
  readonly similarity: number;
}

/**
 * SQL that selects the automatic waypoint (link to the nearest memory) of a memory; its parameter is the memory's
 * number.
 */
export const SELECT_WAYPOINT = `SELECT src, dst, similarity FROM edges
  WHERE src = ? AND type = 'waypoint' AND automatic = 1`;

/** Finds the automatic waypoint of a memory, the link to its nearest memory; undefined if there is none. */
export function findWaypoint(store: Store, src: number): Waypoint | undefined {
  return store.prepare(SELECT_WAYPOINT).get(src) as Waypoint | undefined;
}

/**
 * Stores the automatic waypoint of the memory `waypoint.src`, in place of an earlier one. Its weight is the similarity,
 * at most 1. If a caller stated a waypoint from `src` to `dst`, that one stays, and no automatic one is stored. Call
 * inside a write.
 */
export function putWaypoint(store: Store, waypoint: Waypoint, now: number): void {
  deleteWaypoint(store, waypoint.src);
  store
    .prepare(
      `INSERT INTO edges (src, dst, type, similarity, weight, automatic, created_at, updated_at)
       VALUES (?, ?, 'waypoint', ?, ?, 1, ?, ?) ON CONFLICT (src, dst, type) DO NOTHING`,
    )
    .run(waypoint.src, waypoint.dst, waypoint.similarity, Math.min(1, waypoint.similarity), now, now);
}

/** Deletes the automatic waypoint of a memory, the link to its nearest memory, if there is one. Call inside a write. */
export function deleteWaypoint(store: Store, src: number): void {
  if (findWaypoint(store, src) === undefined) return;
  store.prepare(`DELETE FROM edges WHERE src = ? AND type = 'waypoint' AND automatic = 1`).run(src);
}

/**
 * For each memory that is changed or deleted, the greatest number of memories whose waypoint leads to it and that get
 * another waypoint.
 */
export const MAX_LINKED_ANEW = 100;
/** SQL that selects memories whose automatic waypoint leads to a memory; its parameter is the number of that memory. */
export const SELECT_WAYPOINT_SOURCES = `SELECT src FROM edges
  WHERE dst = ? AND type = 'waypoint' AND automatic = 1 LIMIT ${MAX_LINKED_ANEW}`;

/**
 * Lists for each of these memories at most `MAX_LINKED_ANEW` others whose automatic waypoint leads to it. They need
 * another waypoint when it changes or is deleted. Further memories keep theirs, or have none, until they themselves
 * change. Call inside a transaction.
 */
export function listWaypointSources(store: Store, memoryNos: readonly number[]): number[] {
  store.ahead?.ask(
    SELECT_WAYPOINT_SOURCES,
    memoryNos.map((memoryNo) => [memoryNo]),
  );
  const select = store.prepare(SELECT_WAYPOINT_SOURCES).pluck();
  return memoryNos.flatMap((memoryNo) => select.all(memoryNo) as number[]);
}

/**
 * Raises the weights of the waypoints (links to a nearest memory) between two memories, in both directions, by 0.05
 * (RECALL_WAYPOINT_BOOST), to at most 1. Call inside a write.
 */
export function strengthenWaypoint(store: Store, from: number, to: number, now: number): void {
  store
    .prepare(
      `UPDATE edges SET weight = min(1.0, weight + ${RECALL_WAYPOINT_BOOST}), updated_at = max(updated_at, :now)
       WHERE type = 'waypoint' AND ((src = :from AND dst = :to) OR (src = :to AND dst = :from))`,
    )
    .run({ from, to, now });
}

/** Counts all waypoints (links from a memory to its nearest one), automatic and stated ones. */
export function countWaypoints(store: Store): number {
  return (store.prepare(`SELECT count(*) AS n FROM edges WHERE type = 'waypoint'`).get() as { n: number }).n;
}

/** Counts the links from and to these memories; one between two of them once. */
export function countEdgesOf(store: Store, memoryNos: readonly number[]): number {
  const wanted = JSON.stringify(memoryNos);
  return store
    .prepare(
      `SELECT (SELECT count(*) FROM json_each(?) AS w CROSS JOIN edges e ON e.src = w.value)
         + (SELECT count(*) FROM json_each(?) AS w CROSS JOIN edges e ON e.dst = w.value
            WHERE e.src NOT IN (SELECT value FROM json_each(?)))`,
    )
    .pluck()
    .get(wanted, wanted, wanted) as number;
}

/**
 * Identity of a link: the numbers of its two memories, from `src` to `dst`, and its type. At most one link has them.
 */
export interface EdgeKey {
  readonly src: number;
  readonly dst: number;
  readonly type: EdgeType;
}

/** A link, automatic or stated: a row of `edges`. */
export interface Edge extends EdgeKey {
  /** Cosine similarity when a job made the link; null if none was measured, as for a link that only a caller stated. */
  readonly similarity: number | null;
  /** Weight of the link, 0..1. */
  readonly weight: number;
  /** Whether Cairn made the link and no caller has stated it since; a `derived_from` link stays automatic then. */
  readonly automatic: boolean;
  /**
   * Number of the memory that was decided to be right in a contradiction; null if it is undecided, or for another link
   * type.
   */
  readonly winner: number | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  /**
   * Public id of the key that stated the link, or that decided the contradiction last; null if no caller did or the key
   * is not known.
   */
  readonly writtenBy: string | null;
}

/**
 * Finds the link of a type from the memory `src` to the memory `dst`, automatic or stated; undefined if there is none.
 */
export function findEdge(store: Store, { src, dst, type }: EdgeKey): Edge | undefined {
  const row = store
    .prepare(
      `SELECT src, dst, type, similarity, weight, automatic, winner, created_at AS createdAt, updated_at AS updatedAt,
         ${writerOf('edges.writer_no')} AS writtenBy
       FROM edges WHERE src = ? AND dst = ? AND type = ?`,
    )
    .get(src, dst, type) as (Omit<Edge, 'automatic'> & { automatic: number }) | undefined;
  return row && { ...row, automatic: row.automatic === 1 };
}

/**
 * Stores a link that a caller stated. An existing link gets this weight (0..1) and is no longer automatic; one that was
 * stated before keeps its writer. An automatic `derived_from` link stays automatic and without a writer, since the
 * memory `src` is erased together with its source as long as it is. Call inside a write.
 * @param writerNo number of the writer (key) who stated it, as `ensureWriter` returns it
 */
export function putStatedEdge(
  store: Store,
  { src, dst, type }: EdgeKey,
  weight: number,
  now: number,
  writerNo: number | null = null,
): void {
  store.prepare(type === 'derived_from' ? PUT_DERIVED : PUT_STATED).run(src, dst, type, weight, now, now, writerNo);
}

const PUT_DERIVED = `INSERT INTO edges (src, dst, type, similarity, weight, automatic, created_at, updated_at,
    writer_no)
  VALUES (?, ?, ?, NULL, ?, 0, ?, ?, ?)
  ON CONFLICT (src, dst, type) DO UPDATE SET weight = excluded.weight,
    updated_at = max(updated_at, excluded.updated_at)`;
const PUT_STATED = `${PUT_DERIVED}, automatic = 0,
    writer_no = CASE WHEN automatic = 1 THEN excluded.writer_no ELSE writer_no END`;

/**
 * Stores an automatic link that is no waypoint: one that a language model concluded, one that a rule found in the form
 * of two texts (`similarity` is then null), or a `derived_from` link to a source. An existing link of this type,
 * automatic or stated, stays as it is. Call inside a write.
 */
export function putConcludedEdge(
  store: Store,
  { src, dst, type }: EdgeKey,
  { similarity, weight }: { readonly similarity: number | null; readonly weight: number },
  now: number,
): void {
  store
    .prepare(
      `INSERT INTO edges (src, dst, type, similarity, weight, automatic, created_at, updated_at)
       VALUES (?, ?, ?, ?, ?, 1, ?, ?)
       ON CONFLICT (src, dst, type) DO NOTHING`,
    )
    .run(src, dst, type, similarity, weight, now, now);
}

/**
 * Deletes at most `limit` automatic `contradicts` and `supports` links of a memory, in both directions: they were
 * concluded from its text. Call inside a write.
 * @returns the number of deleted links
 */
export function deleteConcludedRelations(store: Store, memoryNo: number, limit = Number.MAX_SAFE_INTEGER): number {
  const concluded = `SELECT src, dst, type FROM edges WHERE type IN ('contradicts', 'supports') AND automatic = 1`;
  const found = store
    .prepare(`${concluded} AND src = :memory UNION ALL ${concluded} AND dst = :memory LIMIT :limit`)
    .all({ memory: memoryNo, limit }) as EdgeKey[];
  for (const key of found) deleteEdge(store, key);
  return found.length;
}

/**
 * Stores that a contradiction, a `contradicts` link, was decided in favour of one of its two memories, the one with the
 * number `winner`. Call inside a write.
 * @param decision.writerNo number of the writer (key) who decided it, and who counts as its writer from now on, so that
 *   an undo of this key takes the decision back; with null the link keeps its writer
 */
export function putWinner(
  store: Store,
  { src, dst }: EdgeKey,
  { winner, writerNo, now }: { readonly winner: number; readonly writerNo: number | null; readonly now: number },
): void {
  store
    .prepare(
      `UPDATE edges SET winner = ?, updated_at = max(updated_at, ?), writer_no = coalesce(?, writer_no)
       WHERE src = ? AND dst = ? AND type = 'contradicts'`,
    )
    .run(winner, now, writerNo, src, dst);
}

/** Deletes the link of a type from the memory `src` to the memory `dst`, if there is one. Call inside a write. */
export function deleteEdge(store: Store, { src, dst, type }: EdgeKey): void {
  store.prepare('DELETE FROM edges WHERE src = ? AND dst = ? AND type = ?').run(src, dst, type);
}

/** Lists the numbers of the memories that directly superseded the memory `old`, highest first. */
export function listSuccessors(store: Store, old: number): number[] {
  const rows = store
    .prepare(`SELECT src FROM edges WHERE dst = ? AND type = 'supersedes' ORDER BY src DESC`)
    .all(old) as { src: number }[];
  return rows.map((row) => row.src);
}

/** A memory that was superseded by another one, both by number. */
export interface Supersession {
  readonly older: number;
  readonly newer: number;
}

/** Greatest number of links that one call of `listSupersessions` follows, for all chains together. */
const MAX_CHAIN_LINKS = 10_000;

/**
 * Lists the supersessions on the paths from these memories to the live ends of their chains (the memories that no other
 * supersedes), nearest first, at most 10,000. A link that several paths have in common is listed once, so a cycle ends
 * the walk.
 */
export function listSupersessions(store: Store, memoryNos: readonly number[]): Supersession[] {
  return store
    .prepare(
      `WITH RECURSIVE step (older, newer) AS (
         SELECT e.dst, e.src FROM json_each(?) AS s CROSS JOIN edges e ON e.dst = s.value AND e.type = 'supersedes'
         UNION
         SELECT e.dst, e.src FROM step CROSS JOIN edges e ON e.dst = step.newer AND e.type = 'supersedes'
       ) SELECT older, newer FROM step LIMIT ${MAX_CHAIN_LINKS}`,
    )
    .all(JSON.stringify(memoryNos)) as Supersession[];
}

/** Lists the numbers above `after` of the memories that `newer` directly superseded, ascending; at most `limit`. */
export function listSuperseded(
  store: Store,
  newer: number,
  { after = 0, limit }: { readonly after?: number; readonly limit: number },
): number[] {
  return store
    .prepare(`SELECT dst FROM edges WHERE src = ? AND type = 'supersedes' AND dst > ? ORDER BY dst LIMIT ?`)
    .pluck()
    .all(newer, after, limit) as number[];
}

/**
 * SQL condition that a contradiction was decided against a memory; its parameter is the memory's number. It is written
 * as the index `edges_lost` has it: of a hub with any number of contradictions only the lost ones are read.
 */
const IS_LOST_BY = `type = 'contradicts' AND winner IS NOT NULL AND (CASE winner WHEN src THEN dst ELSE src END) = ?`;

/** Tells whether a contradiction of this memory was decided in favour of the other memory. */
export function hasLostContradiction(store: Store, memoryNo: number): boolean {
  return store.prepare(`SELECT 1 FROM edges WHERE ${IS_LOST_BY} LIMIT 1`).get(memoryNo) !== undefined;
}

/** Lists at most `limit` contradictions of a memory that were decided in favour of the other memory. */
export function listLostContradictions(store: Store, memoryNo: number, limit: number): EdgeKey[] {
  const rows = store.prepare(`SELECT src, dst FROM edges WHERE ${IS_LOST_BY} LIMIT ?`).all(memoryNo, limit) as Pick<
    EdgeKey,
    'src' | 'dst'
  >[];
  return rows.map((ends) => ({ ...ends, type: 'contradicts' }));
}

/**
 * A memory whose status may change because a memory is about to be erased that directly superseded it, or that won a
 * contradiction with it.
 */
export interface Released {
  readonly memory: number;
  /**
   * Number of the memory that supersedes `memory` after the erasure: the next later one in its chain that is not
   * erased, the one with the highest number if there are several. Null if there is none, and for a contradiction.
   */
  readonly successor: number | null;
}

/**
 * Lists the memories whose status may change when these memories are erased: those that the erased ones directly
 * superseded and that are not erased themselves, and those that lost a contradiction with an erased one, even if they
 * are erased, too. Each memory is listed once, however many of the erased ones it lost to.
 */
export function listReleased(store: Store, erased: readonly number[]): Released[] {
  const numbers = JSON.stringify(erased);
  const rows = store
    .prepare(
      `WITH RECURSIVE erased (seq) AS MATERIALIZED (SELECT value FROM json_each(?)),
       successors (memory, successor) AS (
         SELECT e.dst, e.src FROM erased CROSS JOIN edges e ON e.src = erased.seq AND e.type = 'supersedes'
         WHERE e.dst NOT IN (SELECT seq FROM erased)
         UNION
         SELECT s.memory, e.src FROM successors s CROSS JOIN edges e ON e.dst = s.successor AND e.type = 'supersedes'
         WHERE s.successor IN (SELECT seq FROM erased)
       )
       SELECT memory, max(CASE WHEN successor IN (SELECT seq FROM erased) THEN NULL ELSE successor END) AS successor
       FROM successors GROUP BY memory
       UNION ALL
       SELECT CASE e.winner WHEN e.src THEN e.dst ELSE e.src END, NULL
       FROM json_each(?) AS w CROSS JOIN edges e ON (e.src = w.value OR e.dst = w.value)
       WHERE e.type = 'contradicts' AND e.winner = w.value`,
    )
    .all(numbers, numbers) as Released[];
  const successors = new Map<number, number | null>();
  for (const { memory, successor } of rows) successors.set(memory, successor ?? successors.get(memory) ?? null);
  return [...successors].map(([memory, successor]) => ({ memory, successor }));
}

/** Greatest number of links that `listLinks` returns. */
const MAX_LISTED_LINKS = 1_000;
/** SQL that selects the strongest links of a memory in one direction, in the order of the index: no others are read. */
const strongestLinks = (direction: 'out' | 'in') => {
  const [here, there] = direction === 'out' ? ['src', 'dst'] : ['dst', 'src'];
  return `SELECT m.id, e.${there} AS other, e.type AS type, '${direction}' AS direction, e.similarity, e.weight,
      e.automatic, e.created_at, e.updated_at, ${writerOf('e.writer_no')} AS written_by
    FROM edges e INDEXED BY edges_by_${here}_weight CROSS JOIN memories m ON m.seq = e.${there}
      CROSS JOIN memory_dynamics d ON d.seq = e.${there}
    WHERE e.${here} = :memory AND ${IS_SHOWN}
    ORDER BY e.weight DESC, e.${there}, e.type LIMIT ${MAX_LISTED_LINKS}`;
};

/**
 * Lists the links of a memory in both directions, by falling weight, then by the number of the other memory (the one
 * added first comes first), then by type; at most 1,000. Links to parts of documents that queries do not find are left
 * out.
 */
export function listLinks(store: Store, memoryNo: number): Link[] {
  const rows = store
    .prepare(
      `SELECT * FROM (${strongestLinks('out')}) UNION ALL SELECT * FROM (${strongestLinks('in')})
       ORDER BY weight DESC, other, type LIMIT ${MAX_LISTED_LINKS}`,
    )
    .all({ memory: memoryNo }) as {
    id: string;
    type: EdgeType;
    direction: 'out' | 'in';
    similarity: number | null;
    weight: number;
    automatic: number;
    created_at: number;
    updated_at: number;
    written_by: string | null;
  }[];
  return rows.map((row) => ({
    id: row.id,
    type: row.type,
    direction: row.direction,
    similarity: row.similarity,
    weight: row.weight,
    automatic: row.automatic === 1,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    writtenBy: row.written_by,
  }));
}

/** Lists at most `limit` stated links: those that a writer (key) stated, and contradictions that it decided last. */
export function listStatedBy(store: Store, writerNo: number, limit: number): EdgeKey[] {
  return store
    .prepare('SELECT src, dst, type FROM edges WHERE writer_no = ? AND writer_no > 0 AND automatic = 0 LIMIT ?')
    .all(writerNo, limit) as EdgeKey[];
}
