/** The stages between the searches by words and by vectors and the scoring: fusion, links and related entities. */

import type { Store } from '../store/open-store.ts';
import type { Arrival } from './candidate.ts';
import type { DenseResult } from './dense.ts';
import { augment } from './entity-graph.ts';
import { type Activated, expand, type ExpandOptions, prefetchLinks } from './expand.ts';
import { fuseByRank, type Fused } from './fuse.ts';
import type { LexicalResult } from './lexical.ts';
import type { CompleteQuery } from './options.ts';
import { listsOf, type Parts } from './parts.ts';
import type { QueryPlan } from './plan.ts';

/**
 * Fuses the hits of the word searches, of the whole message and of its asking sentences, with the hits of the vector
 * search; best first.
 */
export function fuseLists(
  lexical: LexicalResult,
  asked: Parts,
  { dense, vectorWeight }: { readonly dense: DenseResult; readonly vectorWeight: number },
): Fused[] {
  return fuseByRank([
    ...listsOf(lexical, asked, 1 - vectorWeight),
    { memoryNos: dense.hits.map(({ memoryNo }) => memoryNo), weight: vectorWeight },
  ]);
}

/** Spreads activation from fused hits over links, as `expand` says. */
export function expandFused(
  store: Store,
  fused: readonly Fused[],
  plan: QueryPlan,
  query: CompleteQuery,
): Map<number, Arrival> {
  return expand(store, activatedBy(fused), expandOptions(plan, query));
}

/** Reads the links that `expandFused` follows first, as `prefetchLinks` says. */
export function prefetchFusedLinks(store: Store, fused: readonly Fused[], plan: QueryPlan, query: CompleteQuery): void {
  prefetchLinks(store, activatedBy(fused), expandOptions(plan, query));
}

function activatedBy(fused: readonly Fused[]): Activated[] {
  const best = fused[0]?.score ?? 1;
  return fused.map(({ memoryNo, score }) => ({ memoryNo, activation: score / best }));
}

function expandOptions(plan: QueryPlan, { maxHops, decayPerHop }: CompleteQuery): ExpandOptions {
  const passing = plan.scope.kind === 'narrow' ? new Set(plan.scope.memoryNos) : undefined;
  return { filter: plan.filter, passing, rows: plan.rows, maxHops, decayPerHop };
}

/** Finds memories about entities that are related to entities of the query, as `augment` says. */
export function augmentQuery(store: Store, { filter }: QueryPlan, query: CompleteQuery): Arrival[] {
  return augment(store, query.query, { filter, userIds: query.filter.userIds, decayPerHop: query.decayPerHop });
}
