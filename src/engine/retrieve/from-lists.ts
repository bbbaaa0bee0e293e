/** The stages that lead from the lists of both searches to the memories that are scored. */

import type { Store } from '../store/open-store.ts';
import type { Arrival } from './candidate.ts';
import type { DenseResult } from './dense.ts';
import { augment } from './entity-graph.ts';
import { expand } from './expand.ts';
import { fuseByRank, type Fused } from './fuse.ts';
import type { LexicalResult } from './lexical.ts';
import type { CompleteQuery } from './options.ts';
import { listsOf, type Parts } from './parts.ts';
import type { QueryPlan } from './plan.ts';

/** Fuses the hits by words, of the whole message and of its asking sentences, with those by vectors; best first. */
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
  { maxHops, decayPerHop }: CompleteQuery,
): Map<number, Arrival> {
  const best = fused[0]?.score ?? 1;
  const activated = fused.map(({ memoryNo, score }) => ({ memoryNo, activation: score / best }));
  const passing = plan.scope.kind === 'narrow' ? new Set(plan.scope.memoryNos) : undefined;
  return expand(store, activated, { filter: plan.filter, passing, rows: plan.rows, maxHops, decayPerHop });
}

/** Finds memories about entities that are related to those of the query, as `augment` says. */
export function augmentQuery(store: Store, { filter }: QueryPlan, query: CompleteQuery): Arrival[] {
  return augment(store, query.query, { filter, userIds: query.filter.userIds, decayPerHop: query.decayPerHop });
}
