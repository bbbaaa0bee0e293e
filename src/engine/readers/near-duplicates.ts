import { listNearDuplicateNos } from '../store/near-duplicates.ts';
import { createWorkBudget, runWithin } from '../store/work-budget.ts';
import type { NearDuplicates } from '../types.ts';
import { readPairs } from './memory-pairs.ts';
import type { ReadContext } from './read-context.ts';
import { workLimits } from './work-limits.ts';

/**
 * Lists pairs of memories that say nearly the same, the most similar first. `isCut` tells whether pairs may be missing,
 * since the work budget was used up or a list would be too long.
 */
export function readNearDuplicates(
  { open, clock, config }: ReadContext,
  asked: { readonly userId: string | undefined; readonly leastSimilarity: number; readonly limit: number },
): NearDuplicates {
  const { store } = open();
  return runWithin(createWorkBudget(workLimits(config)), () =>
    store.read(() => {
      const { pairs, isCut } = listNearDuplicateNos(store, asked);
      const read = readPairs(store, pairs, clock.now());
      return { items: read.items, isCut: isCut || read.isCut };
    }),
  );
}
