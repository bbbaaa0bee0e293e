import type { Store } from '../store/open-store.ts';
import { listPassingOf, listSuperseded, type VectorRank } from '../store/search.ts';
import type { DenseResult } from './dense.ts';
import type { LexicalHit, LexicalResult } from './lexical.ts';
import type { QueryPlan } from './plan.ts';

/** What the searches by words and by vectors found. */
export interface Lists {
  readonly lexical: LexicalResult;
  /** One a model. */
  readonly dense: readonly DenseResult[];
}

/** Above this share of superseded memories a list is searched for once more, without them. */
const CROWDED = 0.5;

/**
 * Something that is told anew every day has hundreds of superseded versions that fit a query alike. They lead to one memory and would
 * fill the lists alone. @returns the plan to search by once more, for what lives; undefined where there is room
 */
export function planForRoom(store: Store, plan: QueryPlan, { lexical, dense }: Lists): QueryPlan | undefined {
  if (plan.filter === plan.liveFilter) return undefined;
  const found: (readonly { readonly seq: number }[])[] = [lexical.hits, ...dense.map(({ hits }) => hits)];
  const lists = found.map((hits) => hits.map(({ seq }) => seq));
  const superseded = new Set(listSuperseded(store, [...new Set(lists.flat())]));
  if (!lists.some((seqs) => seqs.filter((seq) => superseded.has(seq)).length > CROWDED * seqs.length)) return undefined;
  const { liveFilter: filter, scope } = plan;
  if (scope.kind === 'wide') return { ...plan, filter };
  return { ...plan, filter, scope: { ...scope, seqs: listPassingOf(store, filter, scope.seqs) } };
}

/** Both searches' hits, each once, best first; ties by ascending number. */
export function mergeLists(first: Lists, second: Lists): Lists {
  const byWords = (a: LexicalHit, b: LexicalHit) => b.bm25 - a.bm25;
  const byVectors = (a: VectorRank, b: VectorRank) => b.similarity - a.similarity;
  return {
    lexical: { ...first.lexical, hits: merge(first.lexical.hits, second.lexical.hits, byWords) },
    dense: first.dense.map((one, model) => ({ ...one, hits: merge(one.hits, second.dense[model]!.hits, byVectors) })),
  };
}

function merge<T extends { readonly seq: number }>(
  first: readonly T[],
  second: readonly T[],
  compare: (a: T, b: T) => number,
): T[] {
  const known = new Set(first.map(({ seq }) => seq));
  const others = second.filter(({ seq }) => !known.has(seq));
  return others.length === 0 ? [...first] : [...first, ...others].sort((a, b) => compare(a, b) || a.seq - b.seq);
}
