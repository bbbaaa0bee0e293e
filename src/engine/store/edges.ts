import { PRUNE_BELOW_WEIGHT, RECALL_WAYPOINT_BOOST } from '../dynamics.ts';
import type { EdgeType, Link } from '../types.ts';
import type { Store } from './open-store.ts';

/** Links between memories, indexed both ways. At most one automatic waypoint leaves a memory; the schema says so too. */

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

/** Strongest first, ties by id. */
export function listLinks(store: Store, memory: number): Link[] {
  const rows = store
    .prepare(
      `SELECT m.id, e.type, 'out' AS direction, e.similarity, e.weight, e.automatic, e.created_at, e.updated_at
         FROM edges e JOIN memories m ON m.seq = e.dst WHERE e.src = :memory
       UNION ALL
       SELECT m.id, e.type, 'in', e.similarity, e.weight, e.automatic, e.created_at, e.updated_at
         FROM edges e JOIN memories m ON m.seq = e.src WHERE e.dst = :memory
       ORDER BY weight DESC, id LIMIT 1000`,
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
