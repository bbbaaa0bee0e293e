import { listProposed } from '../store/contradictions.ts';
import type { Proposal } from '../types.ts';
import { readPairs } from './memory-pairs.ts';
import type { ReadContext } from './read-context.ts';

/**
 * Lists proposed contradictions, latest first. Pairs with an expired memory, and the pairs beyond 4 MiB of text, are
 * left out.
 */
export function readProposals(
  { open, clock }: ReadContext,
  { userId, limit }: { readonly userId: string | undefined; readonly limit: number },
): Proposal[] {
  const { store } = open();
  return store.read(() => readPairs(store, listProposed(store, userId, limit), clock.now()).items);
}
