/**
 * Finds memories that say nearly the same, by their waypoints (links to the nearest memory); `edges.ts` writes these.
 */

import type { Store } from './open-store.ts';
import { readUntilWorkEnds, ROW_BYTES, spendWork } from './work-budget.ts';

/**
 * Two similar memories by number, the one that was added earlier first, with the cosine similarity of their waypoint.
 */
export interface NearDuplicate {
  readonly earlier: number;
  readonly later: number;
  readonly similarity: number;
}

interface Waypoint {
  readonly src: number;
  readonly dst: number;
  readonly similarity: number;
}

/**
 * Lists pairs of active memories that an automatic waypoint (link to the nearest memory) of at least this similarity
 * connects, most similar first. It examines every waypoint, and stops when it has used its share of the work budget.
 * @param asked.userId lists only memories of this user; undefined for those of all users
 * @param asked.leastSimilarity least cosine similarity of a pair
 * @param asked.now the present, Unix ms; memories that have expired are left out
 * @param asked.share greatest share of the remaining work budget that it may use, 0..1
 * @returns `isCut`: whether it stopped early, so that pairs may be missing
 */
export function listNearDuplicateNos(
  store: Store,
  {
    userId,
    leastSimilarity,
    now,
    share,
  }: {
    readonly userId?: string | undefined;
    readonly leastSimilarity: number;
    readonly now: number;
    readonly share: number;
  },
): { readonly pairs: readonly NearDuplicate[]; readonly isCut: boolean } {
  const statement = store.prepare(
    `SELECT e.src, e.dst, e.similarity FROM edges e INDEXED BY edges_one_waypoint
       CROSS JOIN memory_dynamics d ON d.seq = e.src CROSS JOIN memory_dynamics o ON o.seq = e.dst
       CROSS JOIN memories m ON m.seq = e.src CROSS JOIN memories n ON n.seq = e.dst
     WHERE e.type = 'waypoint' AND e.automatic = 1
       AND (:user IS NULL OR m.user_no = (SELECT user_no FROM users WHERE user_id = :user))
       AND d.status = 'active' AND o.status = 'active'
       AND (m.expires_at IS NULL OR m.expires_at > :now) AND (n.expires_at IS NULL OR n.expires_at > :now)`,
  );
  const { rows, isCut } = readUntilWorkEnds(function* () {
    for (const waypoint of statement.iterate({ user: userId ?? null, now }) as Iterable<Waypoint>) {
      spendWork(ROW_BYTES);
      if (waypoint.similarity >= leastSimilarity) yield waypoint;
    }
  }, share);
  const found = new Map<string, NearDuplicate>();
  for (const { src, dst, similarity } of rows) {
    const [earlier, later] = src < dst ? [src, dst] : [dst, src];
    // Where both lead to each other, they are one pair.
    found.set(`${earlier} ${later}`, { earlier, later, similarity });
  }
  return { pairs: mostSimilar(found), isCut };
}

function mostSimilar(found: ReadonlyMap<string, NearDuplicate>): NearDuplicate[] {
  return [...found.values()].sort((a, b) => b.similarity - a.similarity || b.later - a.later || b.earlier - a.earlier);
}
