import { PRUNE_BELOW_WEIGHT } from '../dynamics.ts';
import type { Sector } from '../types.ts';
import type { Store } from './open-store.ts';

/** A waypoint (link from a memory to its nearest one), by the numbers of the two memories. */
export interface WaypointKey {
  readonly src: number;
  readonly dst: number;
}

/**
 * Lists at most `limit` waypoints, automatic and stated ones, whose weight is below 0.05 (PRUNE_BELOW_WEIGHT), ordered
 * by their memories. It examines all links, so call it outside of a write.
 * @param after the last waypoint of the list before; null for the first list
 */
export function listWeakWaypoints(store: Store, after: WaypointKey | null, limit: number): WaypointKey[] {
  return store
    .prepare(
      `SELECT src, dst FROM edges WHERE (src, dst) > (?, ?) AND type = 'waypoint' AND weight < ?
       ORDER BY src, dst LIMIT ?`,
    )
    .all(after?.src ?? -1, after?.dst ?? -1, PRUNE_BELOW_WEIGHT, limit) as WaypointKey[];
}

/**
 * Deletes those of the given waypoints whose weight is still below 0.05 (PRUNE_BELOW_WEIGHT). Call inside a write.
 * @returns the number of deleted waypoints
 */
export function pruneWaypoints(store: Store, weak: readonly WaypointKey[]): number {
  const remove = store.prepare(`DELETE FROM edges WHERE src = ? AND dst = ? AND type = 'waypoint' AND weight < ?`);
  return weak.reduce((sum, { src, dst }) => sum + remove.run(src, dst, PRUNE_BELOW_WEIGHT).changes, 0);
}

/**
 * Selects automatic waypoints that are too weak: those with a cosine similarity less than `below`, of memories with one
 * of these primary sectors.
 */
export interface WeakSimilarity {
  readonly below: number;
  readonly sectors: readonly Sector[];
}

/**
 * Lists memories with an automatic waypoint of too low a similarity: at most `limit`, with numbers above `after`,
 * ascending. It may examine all waypoints, so call it outside of a write.
 */
export function listDissimilar(
  store: Store,
  { below, sectors }: WeakSimilarity,
  { after, limit }: { readonly after: number; readonly limit: number },
): number[] {
  return store
    .prepare(
      `SELECT e.src FROM edges e JOIN memory_dynamics d ON d.seq = e.src
       WHERE e.src > ? AND e.type = 'waypoint' AND e.automatic = 1 AND e.similarity < ?
         AND d.primary_sector IN (SELECT value FROM json_each(?)) ORDER BY e.src LIMIT ?`,
    )
    .pluck()
    .all(after, below, JSON.stringify(sectors), limit) as number[];
}

/** Deletes the automatic waypoints of these memories whose similarity is below `below`. Call inside a write. */
export function deleteDissimilar(store: Store, memoryNos: readonly number[], below: number): void {
  store
    .prepare(
      `DELETE FROM edges WHERE type = 'waypoint' AND automatic = 1 AND similarity < ?
         AND src IN (SELECT value FROM json_each(?))`,
    )
    .run(below, JSON.stringify(memoryNos));
}
