import { listNearDuplicateNos } from '../store/near-duplicates.ts';
import { createWorkBudget, hasWorkEnded, runWithin } from '../store/work-budget.ts';
import type { NearDuplicates, PairsWanted } from '../types.ts';
import { firstWithinTags, readPairs } from './memory-pairs.ts';
import type { ReadContext } from './read-context.ts';
import { workLimits } from './work-limits.ts';

/**
 * Lists pairs of memories that say nearly the same, the most similar first. `isCut` tells whether pairs may be missing,
 * since the work budget was used up or a list would be too long.
 */
export function readNearDuplicates(
  { open, clock, config }: ReadContext,
  { userId, leastSimilarity, ...wanted }: PairsWanted & { readonly leastSimilarity: number },
): NearDuplicates {
  const { store } = open();
  return runWithin(createWorkBudget(workLimits(config)), () =>
    store.read(() => {
      const now = clock.now();
      // What remains of the budget is for the judgement by tags.
      const share = wanted.withinTags?.length ? 0.5 : 1;
      const { pairs, isCut } = listNearDuplicateNos(store, { userId, leastSimilarity, now, share });
      const read = readPairs(store, firstWithinTags(store, pairs, { ...wanted, now }), now);
      return { items: read.items, isCut: isCut || hasWorkEnded() || read.isCut };
    }),
  );
}
