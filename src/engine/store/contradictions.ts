/** Reads the links between memories that contradict each other; `edges.ts` writes them. */

import { countingRows } from './counted-rows.ts';
import { IS_SHOWN, isShown } from './document-generations.ts';
import { createFirstEntries } from './first-entries.ts';
import type { Store } from './open-store.ts';
import { outerOrder } from './outer-order.ts';
import { readUntilWorkEnds } from './work-budget.ts';

/** A link between two memories that contradict each other, from `a` to `b`, both by number. */
export interface Contradiction {
  readonly a: number;
  readonly b: number;
  /**
   * Who found the contradiction: a `caller` stated it, a language `model` concluded it, or a rule found it in the
   * `form` of the two texts.
   */
  readonly by: 'caller' | 'model' | 'form';
}

/**
 * A contradiction that no caller has stated or decided: the numbers of its two memories, their cosine similarity
 * (-1..1), which is null if a rule found the contradiction, and the time at which it was found, Unix ms.
 */
export interface ProposedContradiction {
  readonly earlier: number;
  readonly later: number;
  readonly by: 'model' | 'form';
  readonly similarity: number | null;
  readonly createdAt: number;
}

/**
 * Lists at most `limit` contradictions between active memories that a language model or a rule proposes and no caller
 * has stated or decided, latest first. Memories that have expired at `now` (Unix ms), and parts of documents that
 * queries do not find, have none. It examines every contradiction, and those are missing that come after the end of the
 * work budget.
 * @param asked.userId lists only those of this user; undefined for those of all users
 * @param asked.limit undefined for all that half of the remaining work budget suffices for
 */
export function listProposed(
  store: Store,
  {
    userId,
    limit,
    now,
  }: { readonly userId: string | undefined; readonly limit: number | undefined; readonly now: number },
): ProposedContradiction[] {
  const passes = `e.automatic = 1 AND e.winner IS NULL
    AND (m.expires_at IS NULL OR m.expires_at > :now) AND (n.expires_at IS NULL OR n.expires_at > :now)
    AND (:user IS NULL OR m.user_no = (SELECT user_no FROM users WHERE user_id = :user))
    AND d.status = 'active' AND o.status = 'active' AND ${IS_SHOWN} AND ${isShown('o')}`;
  const statement = store.prepare(
    `SELECT e.src AS earlier, e.dst AS later, CASE WHEN e.similarity IS NULL THEN 'form' ELSE 'model' END AS by,
         e.similarity, e.created_at AS createdAt
       FROM edges e INDEXED BY edges_contradicting
         CROSS JOIN memories m ON m.seq = e.dst CROSS JOIN memory_dynamics d ON d.seq = e.dst
         CROSS JOIN memories n ON n.seq = e.src CROSS JOIN memory_dynamics o ON o.seq = e.src
       WHERE ${countingRows(store, passes)} AND e.type = 'contradicts'`,
  );
  // Sorted here, so that those that were read are known when the work ends.
  const latest = createFirstEntries<ProposedContradiction>(
    limit ?? Infinity,
    (one, other) => other.createdAt - one.createdAt || other.later - one.later || other.earlier - one.earlier,
  );
  const share = limit === undefined ? 0.5 : 1;
  readUntilWorkEnds(function* (): Generator<never> {
    const rows = statement.iterate({ user: userId ?? null, now }) as Iterable<ProposedContradiction>;
    for (const row of rows) latest.add(row);
  }, share);
  return [...latest.list()];
}

/** Greatest number of contradictions that `listContradictions` returns. */
const MAX_CONTRADICTIONS = 1_000;

/**
 * Lists the contradictions between two of these memories that were recorded by the time `saidBy` (Unix ms, included),
 * at most 1,000, in the order of the second of each pair in `memoryNos`.
 */
export function listContradictions(store: Store, memoryNos: readonly number[], saidBy: number): Contradiction[] {
  const numbers = JSON.stringify(memoryNos);
  // The plus keeps SQLite from searching an index for the second list, for every pair.
  return store
    .prepare(
      `SELECT e.src AS a, e.dst AS b,
         CASE WHEN e.automatic = 0 THEN 'caller' WHEN e.similarity IS NULL THEN 'form' ELSE 'model' END AS by
       FROM json_each(?) AS c
       CROSS JOIN edges e INDEXED BY edges_contradicting ON e.dst = c.value AND e.type = 'contradicts'
       WHERE +e.src IN (SELECT value FROM json_each(?)) AND e.created_at <= ?
       ${outerOrder(store, 'c.key, e.src')} LIMIT ${MAX_CONTRADICTIONS}`,
    )
    .all(numbers, numbers, saidBy) as Contradiction[];
}
