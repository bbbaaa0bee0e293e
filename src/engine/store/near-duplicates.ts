/**
 * Finds memories that say nearly the same, by their waypoints (links to the nearest memory); `edges.ts` writes these.
 */

import { countingRows } from './counted-rows.ts';
import { IS_SHOWN, isShown } from './document-generations.ts';
import type { Store } from './open-store.ts';
import { readUntilWorkEnds } from './work-budget.ts';

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
 * connects, most similar first, without parts of documents that queries do not find. It examines every waypoint, or
 * with `userId` every memory of the user, and stops when it has used its share of the work budget.
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
  const [from, ofUser, user] =
    userId === undefined
      ? ['edges e INDEXED BY edges_one_waypoint CROSS JOIN memories m ON m.seq = e.src', 'TRUE', []]
      : [
          'memories m INDEXED BY memories_by_user CROSS JOIN edges e INDEXED BY edges_one_waypoint ON e.src = m.seq',
          'm.user_no = (SELECT user_no FROM users WHERE user_id = ?)',
          [userId],
        ];
  const passes = `d.status = 'active' AND o.status = 'active' AND ${IS_SHOWN} AND ${isShown('o')}
    AND (m.expires_at IS NULL OR m.expires_at > ?) AND (n.expires_at IS NULL OR n.expires_at > ?)`;
  const statement = store.prepare(
    `SELECT e.src, e.dst, e.similarity FROM ${from}
       CROSS JOIN memory_dynamics d ON d.seq = e.src CROSS JOIN memory_dynamics o ON o.seq = e.dst
       CROSS JOIN memories n ON n.seq = e.dst
     WHERE ${countingRows(store, passes)} AND e.type = 'waypoint' AND e.automatic = 1 AND ${ofUser}`,
  );
  const { rows, isCut } = readUntilWorkEnds(function* () {
    for (const waypoint of statement.iterate(now, now, ...user) as Iterable<Waypoint>)
      if (waypoint.similarity >= leastSimilarity) yield waypoint;
  }, share);
  const found = new Map<string, NearDuplicate>();
  for (const { src, dst, similarity } of rows) {
    const [earlier, later] = src < dst ? [src, dst] : [dst, src];
    // Where both lead to each other, they are one pair, with the waypoint of the later one.
    const pair = `${earlier} ${later}`;
    if (src === later || !found.has(pair)) found.set(pair, { earlier, later, similarity });
  }
  return { pairs: mostSimilar(found), isCut };
}

function mostSimilar(found: ReadonlyMap<string, NearDuplicate>): NearDuplicate[] {
  return [...found.values()].sort((a, b) => b.similarity - a.similarity || b.later - a.later || b.earlier - a.earlier);
}
