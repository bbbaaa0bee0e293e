import type { Store } from '../store/open-store.ts';
import { listPassingOf } from '../store/passing-memories.ts';
import type { VectorRank } from '../store/vector-ranks.ts';
import type { DenseResult } from './dense.ts';
import type { LexicalHit, LexicalResult } from './lexical.ts';
import type { QueryPlan } from './plan.ts';

/** The results of the searches by words and by vectors. */
export interface Lists {
  readonly lexical: LexicalResult;
  /** One result for each of the query's vectors, in their order. */
  readonly dense: readonly DenseResult[];
}

/**
 * Share of a list of hits that superseded memories may fill. Above this share, the searches run once more without
 * superseded memories.
 */
const CROWDED = 0.5;

/**
 * Decides whether superseded memories fill too much of the lists of hits. A fact that changes every day has hundreds of
 * superseded versions that match a query equally well. All of them lead to one memory, and they could fill the lists
 * alone.
 * @returns the plan of a second search without superseded memories, if they are more than half of any list; else
 *   undefined. Also undefined if the plan does not replace superseded memories by their successors, since `liveFilter`
 *   is then `filter`.
 */
export function planForRoom(store: Store, plan: QueryPlan, { lexical, dense }: Lists): QueryPlan | undefined {
  if (plan.filter === plan.liveFilter) return undefined;
  const hitLists: (readonly { readonly memoryNo: number }[])[] = [lexical.hits, ...dense.map(({ hits }) => hits)];
  const lists = hitLists.map((hits) => hits.map(({ memoryNo }) => memoryNo));
  const rows = plan.rows.read([...new Set(lists.flat())]);
  const superseded = new Set(rows.filter(({ status }) => status === 'superseded').map(({ memoryNo }) => memoryNo));
  if (
    !lists.some(
      (memoryNos) => memoryNos.filter((memoryNo) => superseded.has(memoryNo)).length > CROWDED * memoryNos.length,
    )
  )
    return undefined;
  const { liveFilter: filter, scope } = plan;
  if (scope.kind === 'wide') return { ...plan, filter };
  return { ...plan, filter, scope: { ...scope, memoryNos: listPassingOf(store, filter, scope.memoryNos) } };
}

/**
 * Merges the results of two runs of the searches for one query: each memory once, best first; of equally good ones, the
 * one with the lower `memoryNo` first. All fields other than the hits, such as the notes, are taken from `first`.
 */
export function mergeLists(first: Lists, second: Lists): Lists {
  const byWords = (a: LexicalHit, b: LexicalHit) => b.bm25 - a.bm25;
  const byVectors = (a: VectorRank, b: VectorRank) => b.similarity - a.similarity;
  return {
    lexical: { ...first.lexical, hits: merge(first.lexical.hits, second.lexical.hits, byWords) },
    dense: first.dense.map((result, model) => ({
      ...result,
      hits: merge(result.hits, second.dense[model]!.hits, byVectors),
    })),
  };
}

function merge<T extends { readonly memoryNo: number }>(
  first: readonly T[],
  second: readonly T[],
  compare: (a: T, b: T) => number,
): T[] {
  const inFirst = new Set(first.map(({ memoryNo }) => memoryNo));
  const others = second.filter(({ memoryNo }) => !inFirst.has(memoryNo));
  return others.length === 0
    ? [...first]
    : [...first, ...others].sort((a, b) => compare(a, b) || a.memoryNo - b.memoryNo);
}
