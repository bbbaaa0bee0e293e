import { PRUNE_BELOW_WEIGHT, RECALL_WAYPOINT_BOOST } from '../dynamics.ts';
import type { EdgeType, Link } from '../types.ts';
import { IS_SHOWN } from './documents.ts';
import type { Store } from './open-store.ts';

/**
 * Links between memories, indexed both ways. At most one automatic waypoint leaves a memory; the schema says so too. Other automatic links
 * are what a language model concluded: `contradicts` and `supports` from a comparison, `derived_from` of a reflection.
 */

export interface Waypoint {
  readonly src: number;
  readonly dst: number;
  readonly similarity: number;
}

export function findWaypoint(store: Store, src: number): Waypoint | undefined {
  return store
    .prepare(`SELECT src, dst, similarity FROM edges WHERE src = ? AND type = 'waypoint' AND automatic = 1`)
    .get(src) as Waypoint | undefined;
}

/** Replaces the automatic waypoint of `src`. An edge that someone stated between the two stays as it is. */
export function putWaypoint(store: Store, waypoint: Waypoint, now: number): void {
  deleteWaypoint(store, waypoint.src);
  store
    .prepare(
      `INSERT INTO edges (src, dst, type, similarity, weight, automatic, created_at, updated_at)
       VALUES (?, ?, 'waypoint', ?, ?, 1, ?, ?) ON CONFLICT (src, dst, type) DO NOTHING`,
    )
    .run(waypoint.src, waypoint.dst, waypoint.similarity, Math.min(1, waypoint.similarity), now, now);
}

export function deleteWaypoint(store: Store, src: number): void {
  store.prepare(`DELETE FROM edges WHERE src = ? AND type = 'waypoint' AND automatic = 1`).run(src);
}

/** Memories whose automatic waypoint leads to this one: they need another when it changes or goes. */
export function listWaypointSources(store: Store, dst: number): number[] {
  const rows = store
    .prepare(`SELECT src FROM edges WHERE dst = ? AND type = 'waypoint' AND automatic = 1`)
    .all(dst) as { src: number }[];
  return rows.map((row) => row.src);
}

/** What a recall does to a waypoint that it walked, whichever way. */
export function strengthenWaypoint(store: Store, from: number, to: number, now: number): void {
  store
    .prepare(
      `UPDATE edges SET weight = min(1.0, weight + ${RECALL_WAYPOINT_BOOST}), updated_at = max(updated_at, :now)
       WHERE type = 'waypoint' AND ((src = :from AND dst = :to) OR (src = :to AND dst = :from))`,
    )
    .run({ from, to, now });
}

export function pruneWaypoints(store: Store): number {
  return store.prepare(`DELETE FROM edges WHERE type = 'waypoint' AND weight < ?`).run(PRUNE_BELOW_WEIGHT).changes;
}

export function countWaypoints(store: Store): number {
  return (store.prepare(`SELECT count(*) AS n FROM edges WHERE type = 'waypoint'`).get() as { n: number }).n;
}

export function countEdgesOf(store: Store, memory: number): number {
  return (
    store.prepare('SELECT count(*) AS n FROM edges WHERE src = :memory OR dst = :memory').get({ memory }) as {
      n: number;
    }
  ).n;
}

/** A link by its ends and type, of which there is at most one. */
export interface EdgeKey {
  readonly src: number;
  readonly dst: number;
  readonly type: EdgeType;
}

export interface Edge extends EdgeKey {
  readonly similarity: number | null;
  readonly weight: number;
  readonly automatic: boolean;
  /** Of a contradiction: which of the two was said to be right; null while that is open, and for every other type. */
  readonly winner: number | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export function findEdge(store: Store, { src, dst, type }: EdgeKey): Edge | undefined {
  const row = store
    .prepare(
      `SELECT src, dst, type, similarity, weight, automatic, winner, created_at AS createdAt, updated_at AS updatedAt
       FROM edges WHERE src = ? AND dst = ? AND type = ?`,
    )
    .get(src, dst, type) as (Omit<Edge, 'automatic'> & { automatic: number }) | undefined;
  return row && { ...row, automatic: row.automatic === 1 };
}

/** Writes what someone stated: a link that is there already takes the weight, and is automatic no more. */
export function putStatedEdge(store: Store, { src, dst, type }: EdgeKey, weight: number, now: number): void {
  store
    .prepare(
      `INSERT INTO edges (src, dst, type, similarity, weight, automatic, created_at, updated_at)
       VALUES (?, ?, ?, NULL, ?, 0, ?, ?)
       ON CONFLICT (src, dst, type) DO UPDATE SET weight = excluded.weight, automatic = 0,
         updated_at = max(updated_at, excluded.updated_at)`,
    )
    .run(src, dst, type, weight, now, now);
}

/** Writes what a language model concluded. A link that is there already stays as it is, the more so if somebody stated it. */
export function putConcludedEdge(
  store: Store,
  { src, dst, type }: EdgeKey,
  { similarity, weight }: { readonly similarity: number | null; readonly weight: number },
  now: number,
): void {
  store
    .prepare(
      `INSERT INTO edges (src, dst, type, similarity, weight, automatic, created_at, updated_at) VALUES (?, ?, ?, ?, ?, 1, ?, ?)
       ON CONFLICT (src, dst, type) DO NOTHING`,
    )
    .run(src, dst, type, similarity, weight, now, now);
}

/** Removes what was concluded from comparing this memory's text with others, whichever of them was compared. */
export function deleteConcludedRelations(store: Store, memory: number): void {
  for (const side of ['src', 'dst']) {
    store
      .prepare(`DELETE FROM edges WHERE ${side} = ? AND type IN ('contradicts', 'supports') AND automatic = 1`)
      .run(memory);
  }
}

export function putWinner(store: Store, { src, dst }: EdgeKey, winner: number, now: number): void {
  store
    .prepare(
      `UPDATE edges SET winner = ?, updated_at = max(updated_at, ?) WHERE src = ? AND dst = ? AND type = 'contradicts'`,
    )
    .run(winner, now, src, dst);
}

export function deleteEdge(store: Store, { src, dst, type }: EdgeKey): void {
  store.prepare('DELETE FROM edges WHERE src = ? AND dst = ? AND type = ?').run(src, dst, type);
}

/** What directly superseded a memory, the latest first. */
export function listSuccessors(store: Store, old: number): number[] {
  const rows = store
    .prepare(`SELECT src FROM edges WHERE dst = ? AND type = 'supersedes' ORDER BY src DESC`)
    .all(old) as { src: number }[];
  return rows.map((row) => row.src);
}

export interface Supersession {
  readonly older: number;
  readonly newer: number;
}

/** Links that a walk along chains of supersessions reads at most, all chains together. */
const CHAIN_LINKS_MOST = 10_000;

/**
 * Every supersession on the way from these memories to the live ends of their chains, the nearest first. Chains that meet are
 * read once from there on, and so a circle ends.
 */
export function listSupersessions(store: Store, seqs: readonly number[]): Supersession[] {
  return store
    .prepare(
      `WITH RECURSIVE step (older, newer) AS (
         SELECT e.dst, e.src FROM json_each(?) AS s CROSS JOIN edges e ON e.dst = s.value AND e.type = 'supersedes'
         UNION
         SELECT e.dst, e.src FROM step CROSS JOIN edges e ON e.dst = step.newer AND e.type = 'supersedes'
         LIMIT ${CHAIN_LINKS_MOST}
       ) SELECT older, newer FROM step`,
    )
    .all(JSON.stringify(seqs)) as Supersession[];
}

/** True if `later` superseded `earlier`, directly or over others; however long the chain. */
export function isOnTheWay(store: Store, earlier: number, later: number): boolean {
  return (
    store
      .prepare(
        `WITH RECURSIVE step (seq) AS (
           SELECT ?
           UNION
           SELECT e.src FROM step CROSS JOIN edges e ON e.dst = step.seq AND e.type = 'supersedes'
         ) SELECT 1 FROM step WHERE seq = ? LIMIT 1`,
      )
      .get(earlier, later) !== undefined
  );
}

/** What a memory directly superseded. */
export function listSuperseded(store: Store, newer: number): number[] {
  const rows = store.prepare(`SELECT dst FROM edges WHERE src = ? AND type = 'supersedes' ORDER BY dst`).all(newer) as {
    dst: number;
  }[];
  return rows.map((row) => row.dst);
}

/** True if a contradiction of this memory was decided for the other side. */
export function hasLostContradiction(store: Store, memory: number): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM edges WHERE dst = :memory AND type = 'contradicts' AND winner <> :memory
         UNION ALL
         SELECT 1 FROM edges WHERE src = :memory AND type = 'contradicts' AND winner <> :memory LIMIT 1`,
      )
      .get({ memory }) !== undefined
  );
}

export interface Contradiction {
  readonly a: number;
  readonly b: number;
  /** 1 where a language model found it and nobody stated it. */
  readonly automatic: 0 | 1;
}

const CONTRADICTIONS_MOST = 1_000;

/** Pairs among these memories that were said to contradict each other, by `saidBy` (Unix ms). */
export function listContradictions(store: Store, seqs: readonly number[], saidBy: number): Contradiction[] {
  const numbers = JSON.stringify(seqs);
  // The plus keeps the second list from the index, which would be searched for every pair.
  return store
    .prepare(
      `SELECT e.src AS a, e.dst AS b, e.automatic
       FROM json_each(?) AS c CROSS JOIN edges e INDEXED BY edges_contradicting ON e.dst = c.value AND e.type = 'contradicts'
       WHERE +e.src IN (SELECT value FROM json_each(?)) AND e.created_at <= ? LIMIT ${CONTRADICTIONS_MOST}`,
    )
    .all(numbers, numbers, saidBy) as Contradiction[];
}

/** A memory that gave way to one that is about to be erased. */
export interface Released {
  readonly memory: number;
  /** What comes next in its chain and stays; null where nothing does, and for a contradiction that it lost. */
  readonly heir: number | null;
}

/** What the erasing of these memories sets free: the memories that they superseded, and those that lost a contradiction to them. */
export function listReleased(store: Store, erased: readonly number[]): Released[] {
  const numbers = JSON.stringify(erased);
  return store
    .prepare(
      `WITH RECURSIVE erased (seq) AS MATERIALIZED (SELECT value FROM json_each(?)),
       heirs (memory, heir) AS (
         SELECT e.dst, e.src FROM erased CROSS JOIN edges e ON e.src = erased.seq AND e.type = 'supersedes'
         WHERE e.dst NOT IN (SELECT seq FROM erased)
         UNION
         SELECT heirs.memory, e.src FROM heirs CROSS JOIN edges e ON e.dst = heirs.heir AND e.type = 'supersedes'
         WHERE heirs.heir IN (SELECT seq FROM erased)
       )
       SELECT memory, max(CASE WHEN heir IN (SELECT seq FROM erased) THEN NULL ELSE heir END) AS heir
       FROM heirs GROUP BY memory
       UNION ALL
       SELECT CASE e.winner WHEN e.src THEN e.dst ELSE e.src END, NULL
       FROM json_each(?) AS w CROSS JOIN edges e ON (e.src = w.value OR e.dst = w.value)
       WHERE e.type = 'contradicts' AND e.winner = w.value`,
    )
    .all(numbers, numbers) as Released[];
}

/** Strongest first, ties by id and type. */
export function listLinks(store: Store, memory: number): Link[] {
  const rows = store
    .prepare(
      `SELECT m.id, e.type AS type, 'out' AS direction, e.similarity, e.weight, e.automatic, e.created_at, e.updated_at
         FROM edges e JOIN memories m ON m.seq = e.dst JOIN memory_dynamics d ON d.seq = m.seq
         WHERE e.src = :memory AND ${IS_SHOWN}
       UNION ALL
       SELECT m.id, e.type, 'in', e.similarity, e.weight, e.automatic, e.created_at, e.updated_at
         FROM edges e JOIN memories m ON m.seq = e.src JOIN memory_dynamics d ON d.seq = m.seq
         WHERE e.dst = :memory AND ${IS_SHOWN}
       ORDER BY weight DESC, id, type LIMIT 1000`,
    )
    .all({ memory }) as {
    id: string;
    type: EdgeType;
    direction: 'out' | 'in';
    similarity: number | null;
    weight: number;
    automatic: number;
    created_at: number;
    updated_at: number;
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
  }));
}
