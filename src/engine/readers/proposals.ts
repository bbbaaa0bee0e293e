import { listProposed } from '../store/contradictions.ts';
import { createWorkBudget, runWithin } from '../store/work-budget.ts';
import type { PairsWanted, Proposal } from '../types.ts';
import { firstWithinTags, readPairs } from './memory-pairs.ts';
import type { ReadContext } from './read-context.ts';
import { workLimits } from './work-limits.ts';

/**
 * Lists proposed contradictions, latest first. Pairs with an expired memory, and the pairs beyond 4 MiB of text, are
 * left out. With `withinTags`, all are looked at, as far as the work budget of one request allows.
 */
export function readProposals(
  { open, clock, config }: ReadContext,
  { userId, limit, withinTags = [] }: PairsWanted,
): Proposal[] {
  const { store } = open();
  const now = clock.now();
  return runWithin(createWorkBudget(workLimits(config)), () =>
    store.read(() => {
      const proposed = listProposed(store, { userId, limit: withinTags.length === 0 ? limit : undefined, now });
      return readPairs(store, firstWithinTags(store, proposed, { withinTags, limit, now }), now).items;
    }),
  );
}
