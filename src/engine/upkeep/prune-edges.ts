import { listWeakWaypoints, pruneWaypoints, type WaypointKey } from '../store/weak-waypoints.ts';
import type { Metrics } from '../metrics.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';

/** Greatest number of waypoints (links from a memory to its nearest one) that one commit deletes. */
const SLICE = 500;

/**
 * Deletes waypoints (links from a memory to its nearest one), automatic and stated ones, whose weight (0..1) is below
 * 0.05, in short commits. They are found by reads between the commits.
 * @param yieldTurn called after each commit, so that others can write; it rejects if the work was aborted
 */
export async function pruneEdges(
  context: { readonly open: () => OpenTenant; readonly metrics: Metrics },
  yieldTurn: () => Promise<void>,
): Promise<void> {
  for (let after: WaypointKey | null = null; ;) {
    const { store } = context.open();
    const weak = listWeakWaypoints(store, after, SLICE);
    if (weak.length === 0) return;
    context.metrics.prunedWaypoints.inc(store.write(() => pruneWaypoints(store, weak)));
    after = weak.at(-1)!;
    await yieldTurn();
  }
}
